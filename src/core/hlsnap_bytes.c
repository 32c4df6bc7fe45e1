/* hlsnap_bytes.c: the checksum of .hlsnap files. See hlsnap_bytes.h. */

#include "hlsnap_bytes.h"

/* at[k][b]: what the byte b does to the checksum when k more bytes follow it. */
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
