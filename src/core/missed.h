/* missed.h: what hooks could not do to the ledger because another thread was forking.
 *
 * A hook that is refused at the gate (gate.h) does not wait. An allocation that it cannot enter is lost and counted.
 * But a block that is freed has to leave the ledger, or it would stay there forever. So departures are noted here
 * without a lock. The next thread that gets in applies them before it does anything else. This is soon enough: an
 * address comes back only after its block was freed, and the departure is noted before that.
 *
 *     hook                            the holder of the lock
 *     take the next place             read every place that is noted: its block leaves
 *     fill it, mark it as noted       all places are done: the first is next again
 *
 * Most blocks that are freed during a fork were allocated during the same fork, and are not in the ledger. Their
 * addresses are remembered, as far as there is room, and no departures are noted for them. A departure without a free
 * place is lost and counted. Then the block stays in the ledger until its address is used again.
 *
 * Threading: any thread may call hl_missed_allocation and hl_missed_departure, with no lock. The others need the
 * ledger's lock.
 */
#ifndef HL_MISSED_H
#define HL_MISSED_H

#include "ledger.h"

typedef struct {
    uintptr_t address; /* of the block that leaves */
    uint32_t domain;
    /* Or a block that had already left its address, because it was being reallocated: hl_ledger_detach. */
    hl_site_id site; /* 0: not such a block */
    uint32_t clear_count;
} hl_departure;

enum { HL_MOST_DEPARTURES = 1 << 16, HL_UNSEEN_LOG2 = 14 };

typedef struct {
    _Atomic bool noted;
    hl_departure departure;
} hl_departure_place;

typedef struct {
    _Atomic uint32_t taken; /* number of places taken; may be more than there are */
    uint32_t applied;       /* number of places that are done */
    _Atomic uint64_t lost;  /* records lost since they were last added to the ledger's count */
    _Atomic bool any_unseen;
    _Atomic uintptr_t unseen[1 << HL_UNSEEN_LOG2]; /* blocks that were allocated in this fork and not entered */
    _Atomic(hl_departure_place *) places;          /* HL_MOST_DEPARTURES of them; mapped at the first departure */
} hl_missed;

/* `address` is in domain 0. 0: not known. */
void hl_missed_allocation(hl_missed *missed, uintptr_t address);
void hl_missed_departure(hl_missed *missed, hl_departure departure);

static inline bool hl_missed_any(const hl_missed *missed)
{
    return atomic_load(&missed->taken) != 0 || atomic_load(&missed->lost) != 0;
}

/* `ledger` may be closed. */
void hl_missed_apply(hl_missed *missed, hl_ledger *ledger);
/* Call this when a fork begins. */
void hl_missed_forks(hl_missed *missed);
/* Call this in the child of a fork. The threads that had taken a place but not filled it are gone. */
void hl_missed_forked(hl_missed *missed, hl_ledger *ledger);

#endif
