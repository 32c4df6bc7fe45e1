/* plain.c: see plain.h. */

#include "plain.h"

#include <string.h>

#include "utf8.h"

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

/* Read what stands at the beginning of `bytes`: a character, or a byte that is part of none, which stands for a lone
 * surrogate, U+DC80 to U+DCFF. A surrogate's own bytes are part of none. Returns how many bytes it has. */
static size_t read_character(const char *bytes, size_t length, uint32_t *character)
{
    size_t width = hl_utf8_decode(bytes, length, character);
    if (width != 0 && !hl_utf8_is_surrogate(*character))
        return width;
    *character = 0xdc00 | (unsigned char)bytes[0];
    return 1;
}

void hl_plain_text(hl_hlsnap_buffer *to, const char *bytes, size_t length)
{
    char encoded[HL_UTF8_MOST];
    uint32_t character;
    size_t total = 0;
    for (size_t at = 0; at < length;) {
        at += read_character(bytes + at, length - at, &character);
        total += hl_utf8_encode(character, encoded);
    }
    put_counted(to, 'u', total);
    for (size_t at = 0; at < length;) {
        at += read_character(bytes + at, length - at, &character);
        hl_hlsnap_add_bytes(to, encoded, hl_utf8_encode(character, encoded));
    }
}

void hl_plain_word(hl_hlsnap_buffer *to, const char *text)
{
    hl_plain_text(to, text, strlen(text));
}
