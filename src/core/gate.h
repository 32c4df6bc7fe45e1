/* gate.h: a lock that costs its favoured side no atomic instruction.
 *
 * Nearly every hook call comes from a thread that holds the main interpreter's GIL, so these calls exclude each other
 * already. Only the others must be kept apart from them: a thread without the GIL in the raw domain, an interpreter
 * with its own GIL, a snapshot. So the favoured side, which is one thread at a time, sets a flag with a plain store and
 * checks whether the gate is closed. Every other thread takes the lock, closes the gate, makes all running threads pass
 * a memory barrier (membarrier(2)), and waits until the flag is cleared:
 *
 *     favoured              others
 *     inside = 1            take lock
 *     closed?  no: in       closed = 1
 *              yes: take    barrier on all threads: now either we see `inside`, or they see `closed`
 *              the lock     wait until inside == 0: in
 *
 * The barrier costs microseconds. So a closed gate stays closed until the favoured side has passed a thousand times
 * with no other thread in between. Until then, all threads use the lock, which lets them sleep. If the system has no
 * such barrier, the gate is always closed, and this is a plain lock.
 *
 * A thread that forks holds the gate during the fork (lock.h says why that is delicate). The gate may refuse a hook
 * meanwhile.
 */
#ifndef HL_GATE_H
#define HL_GATE_H

#include "lock.h"

typedef struct {
    _Atomic uint32_t inside; /* the favoured side is in, without the lock */
    _Atomic bool closed;     /* the favoured side must take the lock as well */
    hl_lock lock;
    uint32_t passed; /* favoured passages since another thread passed; needs the lock */
} hl_gate;

enum { HL_GATE_REOPEN = 1000 };

/* A new gate is closed, and opens by itself. Both sides may use it immediately. */
#define HL_GATE_INIT {.closed = true}

/* How a thread got in. */
typedef enum {
    HL_GATE_REFUSED, /* it did not: another thread forks */
    HL_GATE_BY_FLAG,
    HL_GATE_BY_LOCK,
} hl_passage;

/* The favoured side: get in if the gate is open, and get out again. An open gate says nothing about the work of other
 * threads, because only the favoured side opens it, with the lock. So the load need not acquire. */
static inline bool hl_gate_try_favoured(hl_gate *gate)
{
    atomic_store_explicit(&gate->inside, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* pairs with the barrier in hl_gate_shut */
    if (HL_LIKELY(!atomic_load_explicit(&gate->closed, memory_order_relaxed)))
        return true;
    atomic_store_explicit(&gate->inside, 0, memory_order_release);
    return false;
}

static inline void hl_gate_leave_favoured(hl_gate *gate)
{
    atomic_store_explicit(&gate->inside, 0, memory_order_release);
}

/* Keep the favoured side out. Needs the lock. */
static inline void hl_gate_shut(hl_gate *gate)
{
    gate->passed = 0;
    if (atomic_load_explicit(&gate->closed, memory_order_relaxed))
        return;
    atomic_store_explicit(&gate->closed, true, memory_order_relaxed);
    hl_os_barrier();
    for (uint32_t attempt = 0; atomic_load_explicit(&gate->inside, memory_order_acquire) != 0; attempt++)
        hl_os_pause(attempt);
}

/* A hook gets in through the side that it belongs to, or is refused. */
static inline hl_passage hl_gate_enter_by(hl_gate *gate, bool favoured)
{
    if (favoured && hl_gate_try_favoured(gate))
        return HL_GATE_BY_FLAG;
    if (!hl_lock_take_unless_forking(&gate->lock))
        return HL_GATE_REFUSED;
    if (!favoured)
        hl_gate_shut(gate);
    else if (!hl_lock_forks_here && ++gate->passed >= HL_GATE_REOPEN && hl_os_has_barrier())
        atomic_store_explicit(&gate->closed, false, memory_order_relaxed);
    return HL_GATE_BY_LOCK;
}

/* Not for HL_GATE_REFUSED. */
static inline void hl_gate_leave_by(hl_gate *gate, hl_passage passage)
{
    if (HL_LIKELY(passage == HL_GATE_BY_FLAG))
        hl_gate_leave_favoured(gate);
    else
        hl_lock_give(&gate->lock);
}

/* All other code gets in, and waits as long as it takes. */
static inline void hl_gate_enter(hl_gate *gate)
{
    hl_lock_take(&gate->lock);
    hl_gate_shut(gate);
}

static inline void hl_gate_leave(hl_gate *gate)
{
    hl_lock_give(&gate->lock);
}

/* Like hl_gate_enter, for a signal handler. It may have interrupted the thread that it would wait for, so it waits only
 * briefly. False: it did not get in. */
static inline bool hl_gate_try(hl_gate *gate)
{
    enum { PATIENCE = 5 };
    bool taken = false;
    for (int i = 0; i < PATIENCE && !(taken = hl_lock_try(&gate->lock)); i++)
        hl_os_yield();
    if (!taken)
        return false;
    gate->passed = 0;
    if (atomic_load_explicit(&gate->closed, memory_order_relaxed))
        return true;
    atomic_store_explicit(&gate->closed, true, memory_order_relaxed);
    hl_os_barrier();
    for (int i = 0; i < PATIENCE; i++) {
        if (atomic_load_explicit(&gate->inside, memory_order_acquire) == 0)
            return true;
        hl_os_yield();
    }
    atomic_store_explicit(&gate->closed, false, memory_order_relaxed); /* open again: the favoured side is inside */
    hl_lock_give(&gate->lock);
    return false;
}

#endif
