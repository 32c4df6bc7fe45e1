/* sums.h: bytes and blocks of a snapshot, by a key that the caller gives to locations: a function, a package.
 *
 * First the locations that rows name are numbered. Then the caller says which key each number has, or that it has
 * none. Then the rows are added up. hl_sums_frames says which frames of a stack count. Rows without blocks or without
 * frames are ignored.
 *
 * Threading: reads an immutable snapshot only; no lock, no GIL.
 */
#ifndef HL_SUMS_H
#define HL_SUMS_H

#include "dense.h"
#include "snapshot.h"

typedef enum {
    HL_SUMS_NEWEST, /* a row counts for the key of its newest frame */
    HL_SUMS_FIRST,  /* for the key of the newest frame that has one */
    HL_SUMS_ALL,    /* for every key on its stack, once for each key, however often it occurs */
} hl_sums_frames;

#define HL_SUMS_NO_KEY UINT32_MAX

typedef struct {
    const hl_snapshot *snapshot; /* the caller holds it */
    hl_sums_frames frames;
    hl_id_map map;
    hl_location_id *locations; /* the location with number n is at n - 1 */
    uint32_t count;
} hl_sums;

typedef struct {
    uint64_t bytes;
    uint64_t blocks;
} hl_sum;

/* On failure nothing needs to be closed. */
hl_status hl_sums_open(hl_sums *sums, const hl_snapshot *snapshot, hl_sums_frames frames) HL_MUST_USE;
/* keys[n - 1] is the key of location number n: below key_count, or HL_SUMS_NO_KEY. Fills results[0..key_count]. The
 * last result is what counts for no key. */
hl_status hl_sums_add(const hl_sums *sums, const uint32_t *keys, uint32_t key_count, hl_sum *results) HL_MUST_USE;
/* Two new snapshots that share the name table. keys[n - 1] is 0, 1 or HL_SUMS_NO_KEY. The newest frame of a row that
 * has a key says which snapshot the row belongs to. A row without a key goes to the first. `sums` counts HL_SUMS_FIRST.
 * */
hl_status hl_sums_split(const hl_sums *sums, const uint32_t *keys, hl_snapshot *parts[2]) HL_MUST_USE;
void hl_sums_close(hl_sums *sums);

#endif
