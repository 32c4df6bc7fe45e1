/* sums.h: bytes and blocks of a snapshot by a key of the caller's, which locations have: a function, a package.
 *
 * The locations that rows name are numbered first, then the caller says which key each number has, or that it has none,
 * and then the rows are added up. Which frames of a stack count is one of hl_sums_frames. Rows without blocks or without
 * frames do not take part.
 *
 * Threading: reads an immutable snapshot only; no lock, no GIL.
 */
#ifndef HL_SUMS_H
#define HL_SUMS_H

#include "numbers.h"
#include "snapshot.h"

typedef enum {
    HL_SUMS_NEWEST, /* a row counts for the key of its newest frame */
    HL_SUMS_FIRST,  /* for that of the newest frame that has one */
    HL_SUMS_ALL,    /* for every key on its stack, and for each of them once, however often it is there */
} hl_sums_frames;

#define HL_SUMS_NO_KEY UINT32_MAX

typedef struct {
    const hl_snapshot *snapshot; /* the caller's to hold */
    hl_sums_frames frames;
    hl_numbering numbering;
    hl_location_id *locations; /* the location with number n is at n - 1 */
    uint32_t count;
} hl_sums;

typedef struct {
    uint64_t bytes;
    uint64_t blocks;
} hl_sum;

/* Unless HL_OK nothing is left to close. */
hl_status hl_sums_open(hl_sums *sums, const hl_snapshot *snapshot, hl_sums_frames frames) HL_MUST_USE;
/* keys[n - 1], below key_count or HL_SUMS_NO_KEY, is the key of location number n. Fills results[0..key_count]; the last
 * is what counts for no key. */
hl_status hl_sums_add(const hl_sums *sums, const uint32_t *keys, uint32_t key_count, hl_sum *results) HL_MUST_USE;
/* Two new snapshots that share the book. keys[n - 1] is 0, 1 or HL_SUMS_NO_KEY, and the newest frame of a row that has a
 * key says which part the row belongs to; one without goes to the first. `sums` counts HL_SUMS_FIRST. */
hl_status hl_sums_split(const hl_sums *sums, const uint32_t *keys, hl_snapshot *parts[2]) HL_MUST_USE;
void hl_sums_close(hl_sums *sums);

#endif
