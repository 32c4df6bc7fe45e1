/* sums.h: bytes and blocks of a snapshot by a key of the caller's, which locations have: a function, a package.
 *
 * The locations that rows name are numbered first, then the caller says which key each number has, and then the rows are
 * added up. With `all_frames` a row counts for every key on its stack, and for each of them once, however often it is
 * there; otherwise for the key of its newest frame. Rows without blocks or without frames do not take part.
 *
 * Threading: reads an immutable snapshot only; no lock, no GIL.
 */
#ifndef HL_SUMS_H
#define HL_SUMS_H

#include "numbers.h"
#include "snapshot.h"

typedef struct {
    const hl_snapshot *snapshot; /* the caller's to hold */
    bool all_frames;
    hl_numbering numbering;
    hl_location_id *locations; /* the location with number n is at n - 1 */
    uint32_t count;
} hl_sums;

typedef struct {
    uint64_t bytes;
    uint64_t blocks;
} hl_sum;

/* Unless HL_OK nothing is left to close. */
hl_status hl_sums_open(hl_sums *sums, const hl_snapshot *snapshot, bool all_frames) HL_MUST_USE;
/* keys[n - 1], below key_count, is the key of location number n. Fills results[0..key_count). */
hl_status hl_sums_add(const hl_sums *sums, const uint32_t *keys, uint32_t key_count, hl_sum *results) HL_MUST_USE;
void hl_sums_close(hl_sums *sums);

#endif
