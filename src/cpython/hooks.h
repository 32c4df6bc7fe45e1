/* hooks.h: the functions that the interpreter's allocators call, and what they share with the tracer.
 *
 *     PyObject_Malloc -> hook -> the allocator that was there -> the new block -> entered in the ledger
 *     PyObject_Free   -> hook -> removed from the ledger -> the allocator that was there
 *
 * A block is removed before it is freed, always: afterwards another thread may have got its address. Calls that an
 * allocator makes to another domain's allocator (large objects go to the raw one) are part of the outer call: what they
 * allocate is not entered, and so what they free is not found. Freeing is no such outer call, as nothing is left to be done
 * when it is over: what a tool below ours allocates in it is entered.
 *
 * The hooks of a domain differ from the original allocator in their function pointers only, the context pointer is the
 * same. So a thread that copies the allocator's fields while we swap them (the raw domain, an interpreter with its own
 * GIL) sees some mixture of old and new, and every mixture works.
 *
 * Threading: hooks run on any thread, with and without the GIL. They take the ledger's lock and no other, call no
 * Python function and never fail the host's call.
 */
#ifndef HL_HOOKS_H
#define HL_HOOKS_H

#include "../core/gate.h"
#include "../core/ledger.h"
#include "frames.h"
#include "shadow.h"

/* The process's ledger and what guards it. Written by the tracer alone. */
extern hl_gate hl_hooks_gate;         /* the ledger's lock; its favoured side is the main interpreter's GIL */
extern hl_ledger hl_hooks_ledger;     /* open while tracing */
extern hl_shadow hl_hooks_shadow;     /* likewise */
extern _Atomic bool hl_hooks_tracing; /* changes under the lock; a hook that sees false passes through */

static inline bool hl_hooks_are_tracing(void)
{
    return atomic_load_explicit(&hl_hooks_tracing, memory_order_relaxed);
}

/* Put our hooks on all three domains, unless they are there already, on top or below another tool's. *put says whether any
 * had to be put there. HL_NO_MEMORY: a domain is still without. Needs an attached thread state. */
hl_status hl_hooks_install(bool *put) HL_MUST_USE;
/* The same before the interpreter has started, when nothing can be called yet to find out who is there: they are put on
 * top. HL_NO_MEMORY as above. */
hl_status hl_hooks_install_early(void) HL_MUST_USE;
/* Take them off again, except where another tool has put its own on top: there ours stay and pass through. */
void hl_hooks_remove(void);

/* Call `what` while the object domain's malloc is again the one we found: the interpreter tells by that pointer whether
 * its allocator for small objects is in use. `what` must not allocate Python objects. In a process with several
 * interpreters, whose allocations could be missed meanwhile, and where another tool's hooks are on top, it is called all
 * the same, with the hooks as they are. Needs an attached thread state. */
void hl_hooks_lift_object_malloc(void (*what)(void *), void *argument);

/* What this thread is doing; see hl_tracer_begin_own_work. */
typedef struct {
    const void *own_frame; /* allocations made in this frame are the tracer's own */
    bool inside;           /* inside an allocator that allocates already */
    bool probed;           /* a hook of ours was called and passed through */
    bool noticed;          /* our reference tracer was told of an object made inside */
} hl_hooks_thread;
extern __thread hl_hooks_thread hl_hooks_this_thread;

/* The block that was entered last and is not yet claimed by an object: see reftracer.c. */
extern _Atomic uintptr_t hl_hooks_last_block;

/* The site for a block of `size` bytes that is allocated now in `frame` (NULL: none) of the calling thread, by the
 * whole stack. 0: no memory. Under the lock. */
hl_site_id hl_hooks_site(const void *frame, uint64_t size, uint32_t domain);

/* An object came to be in a block that was entered before; `attached` thread state, no lock. See reftracer.c. */
void hl_hooks_reattribute(uintptr_t block);

#endif
