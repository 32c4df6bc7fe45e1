/* plain.c: see plain.h. */

#include "plain.h"

#include <string.h>

static void put_counted(hl_hlsnap_buffer *to, char tag, size_t count)
{
    hl_hlsnap_add_bytes(to, &tag, 1);
    hl_hlsnap_add_varint(to, count);
}

void hl_plain_dict(hl_hlsnap_buffer *to, size_t count)
{
    put_counted(to, 'd', count);
}

void hl_plain_list(hl_hlsnap_buffer *to, size_t count)
{
    put_counted(to, 'l', count);
}

void hl_plain_none(hl_hlsnap_buffer *to)
{
    hl_hlsnap_add_bytes(to, "N", 1);
}

void hl_plain_bool(hl_hlsnap_buffer *to, bool value)
{
    hl_hlsnap_add_bytes(to, value ? "T" : "F", 1);
}

void hl_plain_int(hl_hlsnap_buffer *to, int64_t value)
{
    unsigned width = 1;
    while (width < 8 && value >> (8 * width - 1) != 0 && value >> (8 * width - 1) != -1)
        width++;
    put_counted(to, 'i', width);
    hl_hlsnap_add_fixed(to, width, (uint64_t)value);
}

/* How many bytes the character at the beginning of `bytes` has; 0: what stands there is none. */
static size_t character(const unsigned char *bytes, size_t length)
{
    unsigned char first = bytes[0];
    size_t width = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    if (width > length)
        return 0;
    for (size_t i = 1; i < width; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    }
    bool overlong = (first == 0xe0 && bytes[1] < 0xa0) || (first == 0xf0 && bytes[1] < 0x90);
    bool surrogate = first == 0xed && bytes[1] >= 0xa0;
    bool beyond = first == 0xf4 && bytes[1] >= 0x90;
    return width > 1 && (overlong || surrogate || beyond) ? 0 : width;
}

void hl_plain_text(hl_hlsnap_buffer *to, const char *bytes, size_t length)
{
    const unsigned char *from = (const unsigned char *)bytes;
    size_t bad = 0;
    for (size_t at = 0, width; at < length; at += width != 0 ? width : 1) {
        width = character(from + at, length - at);
        bad += width == 0;
    }
    put_counted(to, 'u', length + 2 * bad);
    for (size_t at = 0, width; at < length; at += width != 0 ? width : 1) {
        width = character(from + at, length - at);
        if (width != 0) {
            hl_hlsnap_add_bytes(to, from + at, width);
        } else { /* U+DC80 to U+DCFF */
            const unsigned char escaped[] = {0xed, (unsigned char)(0xb0 | from[at] >> 6),
                                             (unsigned char)(0x80 | (from[at] & 0x3f))};
            hl_hlsnap_add_bytes(to, escaped, sizeof escaped);
        }
    }
}

void hl_plain_word(hl_hlsnap_buffer *to, const char *text)
{
    hl_plain_text(to, text, strlen(text));
}
