/* hook_path.h: what a hook does to the ledger. Every block takes this path. Only hooks.c includes this file, so that
 * the usual path is inline there.
 *
 *     allocate:  call the allocator
 *        |
 *     the thread holds the main GIL, and the gate is open -- no -> enter_unfavoured   with the lock (in a fork: never)
 *        | yes
 *     the thread is in a frame ----------------------------- no -> enter_unready      under <unknown>
 *        | yes
 *     a spot knows the site -------------------------------- no -> enter_at_new_spot  by the whole stack
 *        | yes
 *     the map has a free slot for the block ---------------- no -> enter_unready      makes a page ready
 *        | yes
 *     count it, and write the slot                                 four exits; this is the usual one
 *
 *     release:   the same first question; the map knows the block, and counting is enough -- no -> release_unready
 *
 *     reallocate:  take the old block off its address (detach), call the allocator, then
 *                  enter_reallocated    the block has moved, or has another size
 *                  reattach             the allocator has failed
 *
 * The name of each function that enters a block says when it runs:
 *     enter_allocated      after an allocation: the usual path, inline
 *     enter_unfavoured     the thread may not use the gate's flag
 *     enter_at_new_spot    no spot knows this size at this instruction
 *     enter_unready        something is missing: a frame, a page, or a free slot
 *     enter_reallocated    after a reallocation
 *     enter_anywhere       inside the gate, for unfavoured, unready and reallocated blocks: in any frame, also our own
 *     enter_at_site        inside the gate, when the site is known
 */
#ifndef HL_HOOK_PATH_H
#define HL_HOOK_PATH_H

#include "freelists.h"
#include "hooks.h"
#include "layers.h"

/* The site that a spot knows for this instruction and size, if we know where the program is. 0: no spot knows it. */
HL_INLINE hl_site_id site_at_spot(const void *frame, uint64_t size)
{
    const hl_shadow *shadow = &hl_hooks_shadow;
    if (!shadow->anywhere && HL_UNLIKELY(frame != shadow->here || !hl_frames_is_marked(frame)))
        return 0;
    return hl_spots_find(&hl_hooks_ledger.spots, &hl_hooks_ledger.sites, hl_frames_instruction(frame), size);
}

/* The site for a block that `thread` allocates. `thread` is the caller's own state, or NULL. */
HL_INLINE hl_site_id site_for(PyThreadState *thread, uint64_t size)
{
    const void *frame = thread == NULL ? NULL : hl_frames_current(thread);
    if (HL_LIKELY(frame != NULL)) {
        if (HL_UNLIKELY(frame == hl_this_thread.own_frame))
            return hl_ledger_own_site(&hl_hooks_ledger, size);
        hl_site_id site = site_at_spot(frame, size);
        if (HL_LIKELY(site != 0))
            return site;
    }
    return hl_hooks_site(frame, size, 0);
}

/* What a hook does to the ledger while it holds the lock. */

/* A reallocation first takes the old block off its address, and later puts it back or lets it go. It releases the lock
 * in between. This is what it remembers meanwhile. */
typedef struct {
    hl_site_id site; /* 0: the old block is not in the ledger */
    uint32_t clear_count;
} detached;

typedef struct {
    PyThreadState *thread; /* the calling thread's own state, or NULL */
    uintptr_t block;
    size_t size;
    detached *old;
} call;

HL_INLINE void enter_at_site(hl_site_id site, uintptr_t block, size_t size)
{
    if (HL_UNLIKELY(site == 0 || !hl_ledger_enter_quickly(&hl_hooks_ledger, block, site, size)))
        hl_ledger_enter(&hl_hooks_ledger, block, size, 0, site);
    atomic_store_explicit(&hl_hooks_last_block, block, memory_order_relaxed);
}

HL_INLINE void enter_anywhere(const call *c)
{
    if (HL_UNLIKELY(!hl_hooks_are_tracing()))
        return;
    hl_site_id site = site_for(c->thread, c->size);
    if (HL_UNLIKELY((hl_sites_at(&hl_hooks_ledger.sites, site)->is & HL_SITE_HIDDEN) != 0))
        hl_ledger_enter(&hl_hooks_ledger, c->block, c->size, 0, site);
    else
        enter_at_site(site, c->block, c->size);
}

static void leave(const call *c)
{
    if (hl_hooks_are_tracing())
        hl_ledger_leave(&hl_hooks_ledger, c->block, 0);
}

HL_INLINE void detach(const call *c)
{
    c->old->clear_count = hl_hooks_ledger.clear_count;
    c->old->site = hl_hooks_are_tracing() ? hl_ledger_detach(&hl_hooks_ledger, c->block) : 0;
}

/* The allocator has moved the block. If the ledger was cleared or stopped meanwhile, its totals no longer include the
 * old block. */
HL_INLINE void enter_reallocated(const call *c)
{
    if (c->old->site != 0 && c->old->clear_count == hl_hooks_ledger.clear_count)
        hl_ledger_let_go(&hl_hooks_ledger, c->old->site);
    enter_anywhere(c);
}

/* The allocator has failed, so the old block is still there. */
HL_INLINE void reattach(const call *c)
{
    if (c->old->clear_count == hl_hooks_ledger.clear_count)
        hl_ledger_reattach(&hl_hooks_ledger, c->block, c->old->site);
}

/* What a hook does instead while another thread forks. */

static void lose(const call *c)
{
    if (c->old != NULL && c->old->site != 0)
        hl_hooks_note((hl_departure){.site = c->old->site, .clear_count = c->old->clear_count});
    hl_hooks_lose(c->block);
}

static void note(const call *c)
{
    hl_hooks_note((hl_departure){.address = c->block});
}

/* Call `act` with the lock held, or `otherwise` if the gate refuses. Nearly always, the caller holds the main
 * interpreter's GIL and the gate is open. Then this takes a few instructions. The rest is out of line. */
typedef void action(const call *c);

static __attribute__((noinline)) void visit_unfavoured(action *act, action *otherwise, bool attached, call *c)
{
    if (!hl_hooks_are_tracing())
        return; /* the interpreter may have ended */
    bool favoured = hl_frames_here(attached, &c->thread);
    hl_passage passage = hl_hooks_enter(favoured);
    if (HL_UNLIKELY(passage == HL_GATE_REFUSED)) {
        otherwise(c);
        return;
    }
    if (!attached && c->thread == NULL)
        c->thread = hl_frames_detached();
    act(c);
    hl_hooks_leave(passage);
}

HL_INLINE void visit(action *act, action *otherwise, bool attached, void *block, size_t size, detached *old)
{
    PyThreadState *thread = hl_frames_at_once(attached);
    call c = {.thread = thread, .block = (uintptr_t)block, .size = size, .old = old};
    if (HL_LIKELY(thread != NULL && hl_gate_try_favoured(&hl_hooks_gate))) {
        act(&c);
        hl_gate_leave_favoured(&hl_hooks_gate);
    } else {
        call copy = c; /* so that `c` can stay in registers */
        visit_unfavoured(act, otherwise, attached, &copy);
    }
}

/* Only one case is inline: blocks of this size were entered at this place before. In every other case, the hook ends
 * with a call of one of these functions, which returns the block. So the hook need not save a register for the block.
 * These functions also check for NULL. The inline case needs no check, because the map has no free slot for NULL. */

static __attribute__((noinline)) void *enter_at_new_spot(const void *frame, void *block, size_t size)
{
    if (HL_LIKELY(block != NULL && hl_hooks_are_tracing()))
        enter_at_site(hl_hooks_site(frame, size, 0), (uintptr_t)block, size);
    hl_gate_leave_favoured(&hl_hooks_gate);
    return block;
}

static __attribute__((noinline, cold)) void *enter_unready(PyThreadState *thread, void *block, size_t size)
{
    if (block != NULL)
        enter_anywhere(&(call){.thread = thread, .block = (uintptr_t)block, .size = size});
    hl_gate_leave_favoured(&hl_hooks_gate);
    return block;
}

static __attribute__((noinline, cold)) void *enter_unfavoured(bool attached, void *block, size_t size)
{
    if (block == NULL)
        return NULL;
    call c = {.block = (uintptr_t)block, .size = size};
    visit_unfavoured(enter_anywhere, lose, attached, &c);
    if (attached && c.thread != NULL && hl_hooks_are_tracing())
        hl_freelists_see_to(c.thread->interp); /* this may be the interpreter's first call */
    return block;
}

HL_INLINE void *enter_allocated(bool attached, void *block, size_t size)
{
    PyThreadState *thread = hl_frames_at_once(attached);
    if (HL_UNLIKELY(thread == NULL || !hl_gate_try_favoured(&hl_hooks_gate)))
        return enter_unfavoured(attached, block, size);
    const void *frame = hl_frames_current(thread);
    if (HL_UNLIKELY(frame == NULL))
        return enter_unready(thread, block, size);
    hl_site_id site = site_at_spot(frame, size); /* 0 while we are not tracing: `here` is NULL */
    if (site == 0)
        return enter_at_new_spot(frame, block, size);
    if (HL_UNLIKELY(!hl_ledger_enter_quickly(&hl_hooks_ledger, (uintptr_t)block, site, size)))
        return enter_unready(thread, block, size);
    atomic_store_explicit(&hl_hooks_last_block, (uintptr_t)block, memory_order_relaxed);
    hl_gate_leave_favoured(&hl_hooks_gate);
    return block;
}

static __attribute__((noinline, cold)) void leave_unfavoured(bool attached, void *block)
{
    visit_unfavoured(leave, note, attached, &(call){.block = (uintptr_t)block});
}

/* The hooks. */

HL_INLINE void *allocate(int layer, PyMemAllocatorDomain which, bool zeroed, size_t count, size_t size)
{
    const PyMemAllocatorEx *original = &hl_layers_originals[layer][which];
    hl_this_thread.inside++;
    void *block = zeroed ? original->calloc(original->ctx, count, size) : original->malloc(original->ctx, size);
    if (HL_UNLIKELY(--hl_this_thread.inside != 0)) {
        hl_this_thread.probed[which] |= (uint8_t)(1 << layer);
        return block;
    }
    return enter_allocated(which != PYMEM_DOMAIN_RAW, block, count * size);
}

HL_INLINE void *reallocate(int layer, PyMemAllocatorDomain which, void *block, size_t size)
{
    const PyMemAllocatorEx *original = &hl_layers_originals[layer][which];
    bool attached = which != PYMEM_DOMAIN_RAW;
    if (HL_UNLIKELY(hl_this_thread.inside != 0)) {
        if (block != NULL) /* entered only if a call of `free` allocated it: `free` does not set `inside` */
            leave_unfavoured(attached, block);
        return original->realloc(original->ctx, block, size);
    }
    detached old = {0};
    if (block != NULL)
        visit(detach, note, attached, block, 0, &old);
    hl_this_thread.inside++;
    void *moved = original->realloc(original->ctx, block, size);
    hl_this_thread.inside--;
    if (moved != NULL)
        visit(enter_reallocated, lose, attached, moved, size, &old);
    else if (old.site != 0)
        visit(reattach, lose, attached, block, 0, &old);
    return moved;
}

static __attribute__((noinline, cold)) void release_unfavoured(const PyMemAllocatorEx *original, bool attached,
                                                               void *block)
{
    if (block != NULL)
        leave_unfavoured(attached, block);
    original->free(original->ctx, block);
}

static __attribute__((noinline, cold)) void release_unready(const PyMemAllocatorEx *original, void *block)
{
    if (block != NULL) /* an extension may have reported NULL as the address of a block */
        leave(&(call){.block = (uintptr_t)block});
    hl_gate_leave_favoured(&hl_hooks_gate);
    original->free(original->ctx, block);
}

/* An allocator may free a block through another domain's allocator. That call comes through here again, and does not
 * find the block in the ledger any more. So no work is left after the call of the original, and we make that call
 * last. */
HL_INLINE void release(int layer, PyMemAllocatorDomain which, void *block)
{
    const PyMemAllocatorEx *original = &hl_layers_originals[layer][which];
    bool attached = which != PYMEM_DOMAIN_RAW;
    if (HL_UNLIKELY(hl_frames_at_once(attached) == NULL || !hl_gate_try_favoured(&hl_hooks_gate))) {
        release_unfavoured(original, attached, block);
        return;
    }
    if (HL_UNLIKELY(!hl_ledger_leave_quickly(&hl_hooks_ledger, (uintptr_t)block))) {
        release_unready(original, block);
        return;
    }
    hl_gate_leave_favoured(&hl_hooks_gate);
    original->free(original->ctx, block);
}

#endif
