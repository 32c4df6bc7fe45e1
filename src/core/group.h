/* group.h: statistics of a snapshot and differences of two, grouped by file, line or stack.
 *
 * Results, sums and order are exactly those of the stdlib's Snapshot.statistics and compare_to:
 *
 *   - Groups are keyed by (file, line) pairs only, never by function.
 *   - A statistic sorts by (size, count, traceback), a difference by (|size_diff|, size, |count_diff|, count,
 *     traceback), both descending. A traceback compares as its tuple of (file, line), oldest frame first, files by
 *     code point.
 *   - Cumulative counts every occurrence of a frame, so recursion counts more than once.
 *   - Rows without live blocks are ignored.
 *
 * Threading: reads immutable snapshots only; no lock, no GIL.
 */
#ifndef HL_GROUP_H
#define HL_GROUP_H

#include "snapshot.h"

typedef enum { HL_BY_FILE, HL_BY_LINE, HL_BY_STACK } hl_key_type;

/* What a group stands for, as an id of one snapshot's name table: a string (BY_FILE), a location (BY_LINE) or a stack
 * (BY_STACK). */
typedef struct {
    uint32_t key;
    uint64_t size;  /* bytes */
    uint64_t count; /* blocks */
} hl_group;

typedef struct {
    uint32_t key;
    bool from_old;                /* the key belongs to the old snapshot's name table: the group is gone */
    uint64_t size, count;         /* in the new snapshot */
    uint64_t old_size, old_count; /* in the old one */
} hl_difference;

/* Sorted as the stdlib sorts. `*groups` is scratch memory of *count elements. The caller frees it with hl_os_free.
 * `cumulative` works with BY_FILE and BY_LINE only. */
hl_status hl_group_rows(const hl_snapshot *snapshot, hl_key_type key_type, bool cumulative, hl_group **groups,
                        size_t *count) HL_MUST_USE;
hl_status hl_group_compare(const hl_snapshot *new_snapshot, const hl_snapshot *old_snapshot, hl_key_type key_type,
                           bool cumulative, hl_difference **differences, size_t *count) HL_MUST_USE;
/* The differences from the old snapshot, or from nothing if it is NULL. The first `wanted` are sorted as above. The
 * others follow in any order. */
hl_status hl_group_changes(const hl_snapshot *new_snapshot, const hl_snapshot *old_snapshot, hl_key_type key_type,
                           size_t wanted, hl_difference **differences, size_t *count) HL_MUST_USE;

#endif
