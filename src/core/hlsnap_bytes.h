/* hlsnap_bytes.h: what the writer and the reader of .hlsnap files share: the constants of the format, the coding of
 * numbers, and the checksum. docs/format.md is the specification.
 *
 * Threading: none needed; nothing here has state of its own.
 */
#ifndef HL_HLSNAP_BYTES_H
#define HL_HLSNAP_BYTES_H

#include "os.h"

/* A transfer that treats the file as text breaks one of these: the high bit, a line end, the end of file of DOS. */
#define HL_HLSNAP_MAGIC "\x89HLS\r\n\x1a\n"

enum {
    HL_HLSNAP_MAJOR = 1,
    HL_HLSNAP_MINOR = 0,
    HL_HLSNAP_HEADER = 16,       /* magic, major, minor, checksum of these */
    HL_HLSNAP_SECTION_HEAD = 12, /* kind, length */
    HL_HLSNAP_CHECKSUM = 4,
    HL_HLSNAP_FRAMES_PER_BYTE = 64, /* frames of all stacks for each byte of the section that holds them */
    HL_HLSNAP_MOST_SHARED = 255,    /* bytes that a file's name may share with the one before */
    HL_HLSNAP_LONGEST_VARINT = 10,
};

/* A number is written as the distance from an expected number, so that small distances make short numbers. All
 * arithmetic is modulo 2^64: 0, -1, 1, -2 ... become 0, 1, 2, 3 ... */
static inline uint64_t hl_hlsnap_zigzag(uint64_t distance)
{
    return distance << 1 ^ (0 - (distance >> 63));
}

static inline uint64_t hl_hlsnap_unzigzag(uint64_t code)
{
    return code >> 1 ^ (0 - (code & 1));
}

/* The CRC-32 of zlib and PNG, eight bytes at a time. Its tables are computed for each file. This takes some
 * microseconds and avoids state that threads would share. */
typedef struct {
    uint32_t at[8][256];
} hl_hlsnap_crc;

void hl_hlsnap_crc_open(hl_hlsnap_crc *crc);
uint32_t hl_hlsnap_crc_of(const hl_hlsnap_crc *crc, const uint8_t *bytes, size_t length);

/* A file is a header and sections. Each has a checksum behind it, and a section has its kind and length in front. */
typedef enum {
    HL_HLSNAP_SOUND,
    HL_HLSNAP_DAMAGED, /* the checksum is wrong */
    HL_HLSNAP_CUT_OFF, /* the file ends before the part does */
} hl_hlsnap_state;

/* The state of the header or section at `at`, where the file has `left` bytes. *length is the whole part's, with its
 * head and checksum. A part that is cut off has the bytes that are left. */
hl_hlsnap_state hl_hlsnap_look_at_header(const hl_hlsnap_crc *crc, const uint8_t *at, size_t left, size_t *length);
hl_hlsnap_state hl_hlsnap_look_at_section(const hl_hlsnap_crc *crc, const uint8_t *at, size_t left, size_t *length);

static inline uint64_t hl_hlsnap_get_fixed(const uint8_t *bytes, unsigned width)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < width; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

static inline void hl_hlsnap_put_fixed(uint8_t *bytes, unsigned width, uint64_t value)
{
    for (unsigned i = 0; i < width; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
}

/* Bytes that grow. When memory runs out, `failed` is set and the rest is discarded. Callers check it once, at the
 * end. */
typedef struct {
    uint8_t *bytes;
    size_t length, room;
    bool failed;
} hl_hlsnap_buffer;

/* Room for `more` bytes at the end, or NULL. */
uint8_t *hl_hlsnap_grow(hl_hlsnap_buffer *to, size_t more);
void hl_hlsnap_add_fixed(hl_hlsnap_buffer *to, unsigned width, uint64_t value);
void hl_hlsnap_add_bytes(hl_hlsnap_buffer *to, const void *bytes, size_t length);
void hl_hlsnap_add_zeros(hl_hlsnap_buffer *to, size_t length);

static inline uint8_t *hl_hlsnap_reserve(hl_hlsnap_buffer *to, size_t more)
{
    return HL_LIKELY(to->room - to->length >= more) ? to->bytes + to->length : hl_hlsnap_grow(to, more);
}

static inline void hl_hlsnap_add_varint(hl_hlsnap_buffer *to, uint64_t value)
{
    uint8_t *at = hl_hlsnap_reserve(to, HL_HLSNAP_LONGEST_VARINT);
    if (at == NULL)
        return;
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    to->length = (size_t)(at - to->bytes);
}

#endif
