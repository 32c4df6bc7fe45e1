/* hlsnap_bytes.c: the checksum of .hlsnap files, how they are divided, and bytes that grow. See hlsnap_bytes.h. */

#include "hlsnap_bytes.h"

#include <string.h>

/* at[k][b]: how the byte b changes the checksum when k more bytes follow it. */
void hl_hlsnap_crc_open(hl_hlsnap_crc *crc)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t value = byte;
        for (int bit = 0; bit < 8; bit++)
            value = value >> 1 ^ (0xedb88320u & (0 - (value & 1)));
        crc->at[0][byte] = value;
    }
    for (uint32_t byte = 0; byte < 256; byte++)
        for (int k = 1; k < 8; k++)
            crc->at[k][byte] = crc->at[k - 1][byte] >> 8 ^ crc->at[0][crc->at[k - 1][byte] & 0xff];
}

uint32_t hl_hlsnap_crc_of(const hl_hlsnap_crc *crc, const uint8_t *bytes, size_t length)
{
    uint32_t value = 0xffffffffu;
    for (; length >= 8; bytes += 8, length -= 8) {
        uint64_t word = hl_hlsnap_get_fixed(bytes, 8) ^ value;
        value = 0;
        for (int k = 0; k < 8; k++)
            value ^= crc->at[7 - k][word >> 8 * k & 0xff];
    }
    for (; length > 0; bytes++, length--)
        value = value >> 8 ^ crc->at[0][(value ^ *bytes) & 0xff];
    return ~value;
}

/* HL_FUZZING: fuzzers do not guess checksums. */
static hl_hlsnap_state compare_checksum(const hl_hlsnap_crc *crc, const uint8_t *bytes, size_t length)
{
#ifdef HL_FUZZING
    (void)crc, (void)bytes, (void)length;
    return HL_HLSNAP_SOUND;
#else
    bool is_right = hl_hlsnap_get_fixed(bytes + length, HL_HLSNAP_CHECKSUM) == hl_hlsnap_crc_of(crc, bytes, length);
    return is_right ? HL_HLSNAP_SOUND : HL_HLSNAP_DAMAGED;
#endif
}

hl_hlsnap_state hl_hlsnap_look_at_header(const hl_hlsnap_crc *crc, const uint8_t *at, size_t left, size_t *length)
{
    *length = left < HL_HLSNAP_HEADER ? left : HL_HLSNAP_HEADER;
    if (left < HL_HLSNAP_HEADER)
        return HL_HLSNAP_CUT_OFF;
    return compare_checksum(crc, at, HL_HLSNAP_HEADER - HL_HLSNAP_CHECKSUM);
}

hl_hlsnap_state hl_hlsnap_look_at_section(const hl_hlsnap_crc *crc, const uint8_t *at, size_t left, size_t *length)
{
    const size_t frame = HL_HLSNAP_SECTION_HEAD + HL_HLSNAP_CHECKSUM;
    uint64_t payload = left < frame ? 0 : hl_hlsnap_get_fixed(at + 4, 8);
    *length = left;
    if (left < frame || payload > left - frame)
        return HL_HLSNAP_CUT_OFF;
    *length = frame + (size_t)payload;
    return compare_checksum(crc, at, HL_HLSNAP_SECTION_HEAD + (size_t)payload);
}

uint8_t *hl_hlsnap_grow(hl_hlsnap_buffer *to, size_t more)
{
    if (to->failed)
        return NULL;
    size_t room = to->room < 1024 ? 1024 : to->room;
    while (room - to->length < more && room <= SIZE_MAX / 2)
        room *= 2;
    uint8_t *bytes = room - to->length < more ? NULL : hl_os_resize(to->bytes, room, 1);
    if (bytes == NULL) {
        to->failed = true;
        return NULL;
    }
    to->bytes = bytes;
    to->room = room;
    return to->bytes + to->length;
}

void hl_hlsnap_add_fixed(hl_hlsnap_buffer *to, unsigned width, uint64_t value)
{
    uint8_t *at = hl_hlsnap_reserve(to, width);
    if (at == NULL)
        return;
    hl_hlsnap_put_fixed(at, width, value);
    to->length += width;
}

void hl_hlsnap_add_bytes(hl_hlsnap_buffer *to, const void *bytes, size_t length)
{
    uint8_t *at = length == 0 ? NULL : hl_hlsnap_reserve(to, length);
    if (at == NULL)
        return;
    memcpy(at, bytes, length);
    to->length += length;
}

void hl_hlsnap_add_zeros(hl_hlsnap_buffer *to, size_t length)
{
    uint8_t *at = length == 0 ? NULL : hl_hlsnap_reserve(to, length);
    if (at == NULL)
        return;
    memset(at, 0, length);
    to->length += length;
}
