/* snapshot.h: an immutable copy of the sites with their counts.
 *
 * Taking one costs O(sites), never O(blocks); the names stay in the book, which the snapshot holds and pins. Every
 * analysis (group.h, filter.h) reads a snapshot and nothing else.
 *
 * Invariants: bytes = sum of size x live, blocks = sum of live over the rows.
 *
 * Threading: immutable once built, so any number of threads may read it without locks.
 */
#ifndef HL_SNAPSHOT_H
#define HL_SNAPSHOT_H

#include "book.h"

typedef struct {
    uint64_t size;      /* bytes of each block */
    uint64_t live;      /* blocks alive */
    uint64_t allocated; /* blocks entered since start, the dead included */
    hl_stack_id stack;
    uint32_t domain;
} hl_row;

typedef struct {
    _Atomic uint32_t holders;
    hl_book *book;
    uint32_t pin;    /* 0: the book is private, nothing is reclaimed in it */
    uint32_t nframe; /* the frame limit the traces were cut at */
    size_t row_count;
    size_t room; /* for rows */
    uint64_t blocks;
    uint64_t bytes;
    hl_row *rows;
} hl_snapshot;

/* An empty snapshot with room for `rows` rows, holding `book`; the caller fills rows[0..row_count) and then calls
 * hl_snapshot_seal, which computes the totals. */
hl_status hl_snapshot_new(hl_book *book, size_t rows, hl_snapshot **snapshot) HL_MUST_USE;
void hl_snapshot_seal(hl_snapshot *snapshot, size_t row_count);
/* The same for a caller who has added the totals up. */
void hl_snapshot_seal_summed(hl_snapshot *snapshot, size_t row_count, uint64_t blocks, uint64_t bytes);
/* The same with the book and the pin of `source`: for rows that name nothing but what `source` names. */
hl_status hl_snapshot_derive(const hl_snapshot *source, size_t rows, hl_snapshot **snapshot) HL_MUST_USE;
hl_snapshot *hl_snapshot_hold(hl_snapshot *snapshot);
void hl_snapshot_drop(hl_snapshot *snapshot);
/* Bytes of the rows of all snapshots alive in the process. */
size_t hl_snapshot_memory(void);

#endif
