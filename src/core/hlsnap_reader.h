/* hlsnap_reader.h: what the parts of the reader of .hlsnap files share: a cursor that never leaves its section.
 *
 * The reader trusts nothing in the file. It looks at a section only if its checksum holds. It compares a count with
 * the number of bytes left before it allocates anything, and an index with the number of things. The first violation
 * is kept in the error and moves the cursor to the end. So code that still reads gets zeros and stops.
 *
 * Threading: a reader is local to one call of hl_hlsnap_read_into.
 */
#ifndef HL_HLSNAP_READER_H
#define HL_HLSNAP_READER_H

#include "hlsnap.h"
#include "hlsnap_bytes.h"

#define HL_HLSNAP_MALFORMED "is malformed: "

/* Numbers in the file -> ids in the name table. */
typedef struct {
    uint32_t *ids;
    uint32_t count;
} hl_hlsnap_ids;

typedef struct {
    const uint8_t *start; /* of the file */
    const uint8_t *at, *end;
    hl_moment only; /* snapshots of this moment are read; HL_MOMENTS: all */
    bool has_rows;  /* the file has a snapshot, read or not */
    bool newer;     /* of a newer minor version: sections may end with unknown bytes */
    hl_status status;
    hl_hlsnap_error *error;
    hl_names *names;
    hl_hlsnap_ids files, functions, locations, stacks;
    int known; /* how many of the ordered sections (FILE, FUNC, LOCS, STKS) have been read */
    hl_hlsnap_crc crc;
} hl_hlsnap_reader;

static inline void hl_hlsnap_fail_at(hl_hlsnap_reader *r, const uint8_t *where, const char *what)
{
    if (r->status == HL_OK) {
        r->status = HL_MALFORMED;
        r->error->what = what;
        r->error->where = (size_t)(where - r->start);
    }
    r->at = r->end;
}

static inline void hl_hlsnap_fail(hl_hlsnap_reader *r, const char *what)
{
    hl_hlsnap_fail_at(r, r->at, what);
}

static inline bool hl_hlsnap_is_fine(hl_hlsnap_reader *r, hl_status status)
{
    if (status == HL_FULL) {
        hl_hlsnap_fail(r, "has more strings, locations or stacks than can be held");
    } else if (status != HL_OK && r->status == HL_OK) {
        r->status = status;
        r->at = r->end;
    }
    return r->status == HL_OK;
}

static inline void *hl_hlsnap_allocate(hl_hlsnap_reader *r, size_t count, size_t size)
{
    void *block = r->status == HL_OK ? hl_os_alloc(count, size) : NULL;
    if (block == NULL)
        (void)hl_hlsnap_is_fine(r, HL_NO_MEMORY);
    return block;
}

static inline size_t hl_hlsnap_left(const hl_hlsnap_reader *r)
{
    return (size_t)(r->end - r->at);
}

static inline uint64_t hl_hlsnap_get_varint(hl_hlsnap_reader *r)
{
    const uint8_t *at = r->at;
    if (HL_LIKELY(at != r->end && *at < 0x80)) {
        r->at++;
        return *at;
    }
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (at == r->end) {
            hl_hlsnap_fail(r, HL_HLSNAP_MALFORMED "a number goes beyond its section");
            return 0;
        }
        uint8_t byte = *at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte >= 0x80)
            continue;
        if (byte == 0 || (shift == 63 && byte > 1))
            break;
        r->at = at;
        return value;
    }
    hl_hlsnap_fail(r, HL_HLSNAP_MALFORMED "a number is not written as it should be");
    return 0;
}

/* A number of at most `most`. */
static inline uint64_t hl_hlsnap_get_at_most(hl_hlsnap_reader *r, uint64_t most, const char *otherwise)
{
    const uint8_t *at = r->at;
    uint64_t value = hl_hlsnap_get_varint(r);
    if (HL_LIKELY(value <= most))
        return value;
    hl_hlsnap_fail_at(r, at, otherwise);
    return 0;
}

/* A number of things that take at least `least` bytes each. */
static inline size_t hl_hlsnap_get_count(hl_hlsnap_reader *r, size_t least)
{
    const uint8_t *at = r->at;
    uint64_t count = hl_hlsnap_get_varint(r);
    if (count <= hl_hlsnap_left(r) / least)
        return (size_t)count;
    hl_hlsnap_fail_at(r, at, HL_HLSNAP_MALFORMED "a count goes beyond its section");
    return 0;
}

/* Read the payload of a section into the name table. */
void hl_hlsnap_read_files(hl_hlsnap_reader *r);
void hl_hlsnap_read_functions(hl_hlsnap_reader *r);
void hl_hlsnap_read_locations(hl_hlsnap_reader *r);
void hl_hlsnap_read_stacks(hl_hlsnap_reader *r);

#endif
