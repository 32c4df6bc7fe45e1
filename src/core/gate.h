/* gate.h: a lock that costs its favoured side no atomic instruction.
 *
 * Nearly every hook call is made by a thread that holds the main interpreter's GIL, so those calls exclude each other
 * already. Only the others (a thread without the GIL in the raw domain, an interpreter with its own GIL, a snapshot)
 * have to be kept apart from them. So the favoured side, of which there is one at a time, raises a flag with a plain
 * store and looks whether the gate is closed; whoever else wants in takes the lock, closes the gate, makes every running
 * thread pass a memory barrier (membarrier(2)), and waits until the flag is down:
 *
 *     favoured              others
 *     inside = 1            take lock
 *     closed?  no: in       closed = 1
 *              yes: take    barrier on all threads: now either we see `inside`, or they see `closed`
 *              the lock     wait until inside == 0: in
 *
 * The barrier costs microseconds, so a closed gate stays closed until the favoured side has come by a thousand times
 * with nobody else in between; meanwhile everyone uses the lock, which parks. Where the system has no such barrier, the
 * gate is closed for ever and this is a plain lock.
 *
 * After fork the child calls hl_gate_reset.
 */
#ifndef HL_GATE_H
#define HL_GATE_H

#include "lock.h"

typedef struct {
    _Atomic uint32_t inside; /* the favoured side is in, without the lock */
    _Atomic uint32_t closed; /* the favoured side has to take the lock as well */
    hl_lock lock;
    uint32_t passed; /* favoured passages since anyone else came by; under the lock */
} hl_gate;

enum { HL_GATE_REOPEN = 1000 };

/* A new gate is closed and opens by itself; both sides may use it at once. */
#define HL_GATE_INIT {.closed = 1}

/* Get in if the gate is open. */
static inline bool hl_gate_try_favoured(hl_gate *gate)
{
    atomic_store_explicit(&gate->inside, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* the other half is the barrier in hl_gate_enter */
    if (HL_LIKELY(atomic_load_explicit(&gate->closed, memory_order_acquire) == 0))
        return true;
    atomic_store_explicit(&gate->inside, 0, memory_order_release);
    return false;
}

/* Get in, by the lock if need be. Returns whether it was without, to be given back on leaving. */
static inline bool hl_gate_enter_favoured(hl_gate *gate)
{
    if (HL_LIKELY(hl_gate_try_favoured(gate)))
        return true;
    hl_lock_take(&gate->lock);
    if (++gate->passed >= HL_GATE_REOPEN && hl_os_has_barrier())
        atomic_store_explicit(&gate->closed, 0, memory_order_relaxed);
    return false;
}

static inline void hl_gate_leave_favoured(hl_gate *gate, bool fast)
{
    if (HL_LIKELY(fast))
        atomic_store_explicit(&gate->inside, 0, memory_order_release);
    else
        hl_lock_give(&gate->lock);
}

static inline void hl_gate_enter(hl_gate *gate)
{
    hl_lock_take(&gate->lock);
    gate->passed = 0;
    if (atomic_load_explicit(&gate->closed, memory_order_relaxed) == 0) {
        atomic_store_explicit(&gate->closed, 1, memory_order_relaxed);
        hl_os_barrier();
        while (atomic_load_explicit(&gate->inside, memory_order_acquire) != 0)
            hl_os_yield();
    }
}

/* The same for a signal handler, which may have interrupted whom it would wait for. False: not at once. */
static inline bool hl_gate_try(hl_gate *gate)
{
    enum { PATIENCE = 5 };
    bool taken = false;
    for (int i = 0; i < PATIENCE && !(taken = hl_lock_try(&gate->lock)); i++)
        hl_os_yield();
    if (!taken)
        return false;
    gate->passed = 0;
    if (atomic_load_explicit(&gate->closed, memory_order_relaxed) != 0)
        return true;
    atomic_store_explicit(&gate->closed, 1, memory_order_relaxed);
    hl_os_barrier();
    for (int i = 0; i < PATIENCE; i++) {
        if (atomic_load_explicit(&gate->inside, memory_order_acquire) == 0)
            return true;
        hl_os_yield();
    }
    atomic_store_explicit(&gate->closed, 0, memory_order_relaxed); /* it is closed only when nobody is left inside */
    hl_lock_give(&gate->lock);
    return false;
}

static inline void hl_gate_leave(hl_gate *gate)
{
    hl_lock_give(&gate->lock);
}

/* Get in by either side. What it returns is for hl_gate_leave_favoured, which lets both out. */
static inline bool hl_gate_enter_by(hl_gate *gate, bool favoured)
{
    if (favoured)
        return hl_gate_enter_favoured(gate);
    hl_gate_enter(gate);
    return false;
}

static inline void hl_gate_reset(hl_gate *gate)
{
    *gate = (hl_gate)HL_GATE_INIT;
}

#endif
