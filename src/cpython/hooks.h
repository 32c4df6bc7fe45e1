/* hooks.h: the functions that the interpreter calls to allocate and free memory, and what they share with the tracer.
 *
 *     PyObject_Malloc -> hook -> the original allocator -> the new block -> entered in the ledger
 *     PyObject_Free   -> hook -> removed from the ledger -> the original allocator
 *
 * A hook always removes a block before it frees the block. Afterwards, another thread may already have got the same
 * address.
 *
 * An allocator may call another domain's allocator. For example, large objects go to the raw one. These calls are part
 * of the outer call: we do not enter what they allocate, so we do not find what they free. A call of `free` is not such
 * an outer call, because the hook has nothing left to do after it. If a tool below ours allocates in it, we enter the
 * block.
 *
 * Threading: hooks run on any thread, with or without the GIL. They take the ledger's lock and no other lock. They call
 * no Python function, and never make the program's call fail. layers.h says how hooks are installed.
 */
#ifndef HL_HOOKS_H
#define HL_HOOKS_H

#include "../core/gate.h"
#include "../core/ledger.h"
#include "../core/missed.h"
#include "frames.h"
#include "shadow.h"
#include "this_thread.h"

/* The process's ledger and its lock. Only the tracer opens, replaces and closes the ledger and the shadow. */
extern hl_gate hl_hooks_gate;         /* the ledger's lock; its favoured side is the main interpreter's GIL */
extern hl_ledger hl_hooks_ledger;     /* open while tracing */
extern hl_shadow hl_hooks_shadow;     /* open while tracing */
extern _Atomic bool hl_hooks_tracing; /* changes under the lock; if it is false, hooks only pass calls on */

static inline bool hl_hooks_are_tracing(void)
{
    return atomic_load_explicit(&hl_hooks_tracing, memory_order_relaxed);
}

/* The ledger's lock, for hooks. They use the side of the gate that the thread belongs to. HL_GATE_REFUSED: another
 * thread forks. Then hl_hooks_lose counts a block that cannot be entered (0: a block of another domain), and
 * hl_hooks_note remembers a block that leaves. hl_hooks_leave releases the lock. */
hl_passage hl_hooks_enter(bool favoured) HL_MUST_USE;
void hl_hooks_leave(hl_passage passage);
void hl_hooks_lose(uintptr_t block);
void hl_hooks_note(hl_departure departure);
/* The ledger's lock, for all other code. It waits without the GIL until a fork ends. A signal handler only tries to get
 * the lock. */
void hl_hooks_lock(void);
bool hl_hooks_try_lock(void) HL_MUST_USE;
void hl_hooks_unlock(void);
/* Before and after a fork, in the thread that forks. */
void hl_hooks_begin_fork(void);
void hl_hooks_end_fork(bool in_child);

/* The block that was entered last. domains.c says why we keep it. */
extern _Atomic uintptr_t hl_hooks_last_block;

/* The site for a block of `size` bytes that the calling thread allocates now in `frame` (NULL: in no frame), found by
 * the whole stack. 0: no memory. Needs the lock. */
hl_site_id hl_hooks_site(const void *frame, uint64_t size, uint32_t domain);

#endif
