/* hooks.h: the functions that the interpreter's allocators call, and what they share with the tracer.
 *
 *     PyObject_Malloc -> hook -> the allocator that was there -> the new block -> entered in the ledger
 *     PyObject_Free   -> hook -> removed from the ledger -> the allocator that was there
 *
 * A block is removed before it is freed, always: afterwards another thread may have got its address. Calls that an
 * allocator makes to another domain's allocator (large objects go to the raw one) are part of the outer call: what they
 * allocate is not entered, and so what they free is not found. Freeing is no such outer call, as nothing is left to be
 * done when it is over: what a tool below ours allocates in it is entered.
 *
 * Threading: hooks run on any thread, with and without the GIL. They take the ledger's lock and no other, call no
 * Python function and never fail the host's call. How they get where they are is in layers.h.
 */
#ifndef HL_HOOKS_H
#define HL_HOOKS_H

#include "../core/gate.h"
#include "../core/ledger.h"
#include "../core/missed.h"
#include "frames.h"
#include "shadow.h"
#include "this_thread.h"

/* The process's ledger and what guards it. Written by the tracer alone. */
extern hl_gate hl_hooks_gate;         /* the ledger's lock; its favoured side is the main interpreter's GIL */
extern hl_ledger hl_hooks_ledger;     /* open while tracing */
extern hl_shadow hl_hooks_shadow;     /* likewise */
extern _Atomic bool hl_hooks_tracing; /* changes under the lock; a hook that sees false passes through */

static inline bool hl_hooks_are_tracing(void)
{
    return atomic_load_explicit(&hl_hooks_tracing, memory_order_relaxed);
}

/* The ledger's lock, for hooks: by the side of the gate that the thread belongs to. HL_GATE_REFUSED: another thread
 * forks. Then hl_hooks_lose counts a block that cannot be entered (0: of another domain), and hl_hooks_note remembers
 * one that leaves. Given back by hl_hooks_leave. */
hl_passage hl_hooks_enter(bool favoured) HL_MUST_USE;
void hl_hooks_leave(hl_passage passage);
void hl_hooks_lose(uintptr_t block);
void hl_hooks_note(hl_departure departure);
/* The same for everybody else, who waits for the end of the fork, without the GIL. In a signal handler it is only
 * tried. */
void hl_hooks_lock(void);
bool hl_hooks_try_lock(void) HL_MUST_USE;
void hl_hooks_unlock(void);
/* Before and after a fork, in the thread that forks. */
void hl_hooks_begin_fork(void);
void hl_hooks_end_fork(bool in_child);

/* The block that was entered last: see domains.c. */
extern _Atomic uintptr_t hl_hooks_last_block;

/* The site for a block of `size` bytes that is allocated now in `frame` (NULL: none) of the calling thread, by the
 * whole stack. 0: no memory. Under the lock. */
hl_site_id hl_hooks_site(const void *frame, uint64_t size, uint32_t domain);

#endif
