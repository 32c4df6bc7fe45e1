/* snapshot.h: an immutable copy of the sites with their counts.
 *
 * Taking a snapshot costs O(sites), never O(blocks). The names stay in the name table, which the snapshot holds and
 * pins. Every analysis (group.h, filter.h) reads a snapshot and nothing else.
 *
 * Invariants: bytes = sum of size x live, blocks = sum of live over the rows.
 *
 * Threading: immutable once built, so any number of threads may read it without locks.
 */
#ifndef HL_SNAPSHOT_H
#define HL_SNAPSHOT_H

#include "names.h"

/* Which blocks a snapshot of the ledger counts. */
typedef enum {
    HL_LIVE,      /* those alive now */
    HL_PEAK,      /* those that were alive at the peak */
    HL_ALLOCATED, /* all that were entered, alive or not. Those of reclaimed sites are missing (sites.h) */
    HL_MOMENTS    /* number of moments */
} hl_moment;

/* What people call them. */
extern const char *const hl_moment_names[HL_MOMENTS];

typedef struct {
    uint64_t size;           /* bytes of each block */
    uint64_t live;           /* blocks alive; in a snapshot of the ledger, those of its hl_moment */
    uint64_t allocated : 56; /* blocks entered since start, the dead included */
    uint64_t origin : 8;     /* the ledger that entered them: an index into the snapshot's origins */
    hl_stack_id stack;
    uint32_t domain;
} hl_row;

/* The line of ledgers that rows come from, oldest first. A forked child continues with a copy of its parent's ledger,
 * under a new name. Rows of the last ledger are the process's own. The rest is inherited. A snapshot that was not
 * taken from a ledger has no origins. If there is no room, a child takes its parent's place, and with it what the
 * parent entered. */
enum { HL_MOST_ORIGINS = 32 };
typedef struct {
    uint32_t count;
    uint32_t forks; /* children that the last ledger has forked: they may hold copies of what it entered */
    uint64_t ids[HL_MOST_ORIGINS]; /* drawn at random */
} hl_origins;

/* The most that a row adds to the sums of any analysis: its bytes, or blocks if they have none, for each frame. All
 * weights of a snapshot must add up to at most HL_MOST_WEIGHT. Then no sum of sizes or of blocks is greater. */
#define HL_MOST_WEIGHT INT64_MAX
static inline unsigned __int128 hl_row_weight(const hl_row *row, uint32_t depth)
{
    unsigned __int128 bytes = (unsigned __int128)(row->size > 0 ? row->size : 1) * row->live;
    if (bytes > HL_MOST_WEIGHT)
        bytes =
            (unsigned __int128)HL_MOST_WEIGHT + 1; /* the exact excess does not matter; sums of weights do not wrap */
    return bytes * (depth > 0 ? depth : 1);
}

typedef struct hl_snapshot hl_snapshot;

struct hl_snapshot {
    _Atomic uint32_t holders;
    hl_moment moment;
    hl_names *names;
    uint64_t pin;    /* 0: the name table is private, nothing is reclaimed in it */
    uint32_t nframe; /* the frame limit the traces were cut at */
    hl_origins origins;
    size_t row_count;
    size_t room; /* for rows */
    hl_snapshot *next_dropped;
    uint64_t blocks;
    uint64_t bytes;
    hl_row *rows;
};

/* An empty snapshot with room for `rows` rows, which holds `names`. The caller fills rows[0..row_count) and then calls
 * hl_snapshot_seal, which computes the totals. */
hl_status hl_snapshot_new(hl_names *names, size_t rows, hl_snapshot **snapshot) HL_MUST_USE;
void hl_snapshot_seal(hl_snapshot *snapshot, size_t row_count);
/* The same for a caller that has added up the totals. */
void hl_snapshot_seal_summed(hl_snapshot *snapshot, size_t row_count, uint64_t blocks, uint64_t bytes);
/* The same with the name table and the pin of `from`, for rows that name only what `from` names. */
hl_status hl_snapshot_derive(const hl_snapshot *from, size_t rows, hl_snapshot **snapshot) HL_MUST_USE;
hl_snapshot *hl_snapshot_hold(hl_snapshot *snapshot);
void hl_snapshot_drop(hl_snapshot *snapshot);
/* The same in two steps, for a caller that holds the ledger's lock and must not call the C library. The first puts
 * the snapshot on a list if nobody holds it any more. The second frees what is on the list. */
void hl_snapshot_drop_later(hl_snapshot *snapshot, hl_snapshot **list);
void hl_snapshot_free_all(hl_snapshot *list);
/* Bytes of the rows of all snapshots in the process. */
size_t hl_snapshot_memory(void);

#endif
