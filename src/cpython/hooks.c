/* hooks.c: see hooks.h. */

#include "hooks.h"

#include "../core/missed.h"
#include "freelists.h"
#include "layers.h"
#include "resolve.h"

hl_gate hl_hooks_gate = HL_GATE_INIT;
hl_ledger hl_hooks_ledger = {HL_LEDGER_CLOSED};
hl_shadow hl_hooks_shadow;
_Atomic bool hl_hooks_tracing;
_Atomic uintptr_t hl_hooks_last_block;

static hl_missed missed; /* by hooks that a fork has kept out */

hl_passage hl_hooks_enter(bool favoured)
{
    hl_passage passage = hl_gate_enter_by(&hl_hooks_gate, favoured);
    hl_os_forbid_libc(passage != HL_GATE_REFUSED);
    if (passage == HL_GATE_BY_LOCK && HL_UNLIKELY(hl_missed_any(&missed)))
        hl_missed_settle(&missed, &hl_hooks_ledger);
    return passage;
}

void hl_hooks_lock(void)
{
    hl_gate_enter(&hl_hooks_gate);
    hl_os_forbid_libc(true);
    if (HL_UNLIKELY(hl_missed_any(&missed)))
        hl_missed_settle(&missed, &hl_hooks_ledger);
}

bool hl_hooks_try_lock(void)
{
    bool locked = hl_gate_try(&hl_hooks_gate);
    hl_os_forbid_libc(locked);
    return locked;
}

void hl_hooks_unlock(void)
{
    hl_snapshot *dropped = hl_hooks_ledger.dropped;
    hl_hooks_ledger.dropped = NULL;
    hl_os_forbid_libc(false);
    hl_gate_leave(&hl_hooks_gate);
    hl_snapshot_free_all(dropped);
}

void hl_hooks_leave(hl_passage passage)
{
    hl_os_forbid_libc(false);
    hl_gate_leave_by(&hl_hooks_gate, passage);
}

void hl_hooks_lose(uintptr_t block)
{
    hl_missed_allocation(&missed, block);
}

void hl_hooks_note(hl_departure departure)
{
    hl_missed_departure(&missed, departure);
    /* If the fork is over, whoever held the lock over it may have looked here for the last time. */
    if (hl_lock_is_forking(&hl_hooks_gate.lock))
        return;
    hl_passage passage = hl_hooks_enter(false);
    if (passage != HL_GATE_REFUSED)
        hl_hooks_leave(passage);
}

/* --- fork --- */

/* The child of a fork has only the thread that forked. The locks are held over the fork, so that the tables are
 * whole. */
void hl_hooks_begin_fork(void)
{
    hl_hooks_lock();
    hl_lock_take(&hl_book_pin_lock);
    hl_missed_forks(&missed);
    hl_lock_forks_here = true;
    hl_lock_begin_fork(&hl_book_pin_lock);
    hl_lock_begin_fork(&hl_hooks_gate.lock);
    hl_os_forbid_libc(false); /* handlers of others may do what they like */
}

void hl_hooks_end_fork(bool in_child)
{
    if (in_child)
        hl_missed_forked(&missed, &hl_hooks_ledger);
    if (hl_hooks_are_tracing() && in_child)
        hl_ledger_inherit(&hl_hooks_ledger);
    else if (hl_hooks_are_tracing())
        hl_ledger_forked(&hl_hooks_ledger);
    hl_lock_forks_here = false;
    hl_lock_end_fork(&hl_book_pin_lock);
    hl_lock_end_fork(&hl_hooks_gate.lock);
    if (hl_missed_any(&missed)) {
        hl_hooks_lock();
        hl_hooks_unlock();
    }
}

/* --- sites --- */

/* By what the stack is called. */
static __attribute__((noinline)) hl_site_id find_site_by_names(uint64_t size, uint32_t domain)
{
    hl_ledger *ledger = &hl_hooks_ledger;
    hl_shadow *shadow = &hl_hooks_shadow;
    hl_key key = {.locations = shadow->locations + shadow->top,
                  .depth = hl_shadow_depth(shadow),
                  .domain = domain,
                  .size = size,
                  .stack_hash = hl_shadow_hash(shadow),
                  .version = shadow->version};
    hl_site_id site = hl_ledger_cached(ledger, &key);
    if (HL_UNLIKELY(site == 0))
        site = hl_resolve_site(ledger, shadow, &key);
    if (domain == 0 && site != 0 && shadow->generation == ledger->codes.generation) {
        hl_spots_miss(&ledger->spots, ledger->sites.table.count, hl_sites_at(&ledger->sites, site)->allocated == 0);
        hl_spots_put(&ledger->spots, &ledger->sites, shadow->seen[shadow->top].instruction, size, site);
    }
    return site;
}

static hl_site_id find_site(const void *frame, uint64_t size, uint32_t domain)
{
    hl_ledger *ledger = &hl_hooks_ledger;
    hl_shadow *shadow = &hl_hooks_shadow;
    enum { TRIES = 2 };
    for (int i = 0; i < TRIES; i++) {
        if (HL_UNLIKELY(!hl_shadow_sync(shadow, ledger, frame)))
            return hl_resolve_unknown(ledger, size, domain);
        hl_site_id site = 0;
        if (HL_LIKELY(domain == 0))
            site = hl_spots_find(&ledger->spots, &ledger->sites, shadow->seen[shadow->top].instruction, size);
        if (HL_LIKELY(site != 0))
            return site;
        if (HL_LIKELY(hl_shadow_resolve(shadow, ledger)))
            return find_site_by_names(size, domain);
    }
    return 0;
}

static __attribute__((noinline, cold)) hl_site_id find_site_with_room(const void *frame, uint64_t size, uint32_t domain)
{
    return hl_ledger_make_room(&hl_hooks_ledger) ? find_site(frame, size, domain) : 0;
}

__attribute__((noinline)) hl_site_id hl_hooks_site(const void *frame, uint64_t size, uint32_t domain)
{
    hl_site_id site = find_site(frame, size, domain);
    return HL_LIKELY(site != 0) ? site : find_site_with_room(frame, size, domain);
}

/* By what is known of the instruction, if we know where the program is; 0: nothing. */
HL_INLINE hl_site_id site_at_spot(const void *frame, uint64_t size)
{
    const hl_shadow *shadow = &hl_hooks_shadow;
    if (!shadow->anywhere && HL_UNLIKELY(frame != shadow->here || !hl_frames_is_settled(frame)))
        return 0;
    return hl_spots_find(&hl_hooks_ledger.spots, &hl_hooks_ledger.sites, hl_frames_instruction(frame), size);
}

/* The same for `thread`, the caller's own state or NULL. */
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

/* What a hook does to the ledger, while it holds the lock. */

/* A reallocation gives the lock up between taking the old block off its address and settling its fate. */
typedef struct {
    hl_site_id site; /* 0: the old block is not entered */
    uint32_t era;
} detached;

typedef struct {
    PyThreadState *thread; /* the calling thread's own state, or NULL */
    uintptr_t block;
    size_t size;
    detached *old;
} call;

HL_INLINE void enter_under(hl_site_id site, uintptr_t block, size_t size)
{
    if (HL_UNLIKELY(site == 0 || !hl_ledger_enter_quickly(&hl_hooks_ledger, block, site, size)))
        hl_ledger_enter(&hl_hooks_ledger, block, size, 0, site);
    atomic_store_explicit(&hl_hooks_last_block, block, memory_order_relaxed);
}

HL_INLINE void enter(const call *c)
{
    if (HL_UNLIKELY(!hl_hooks_are_tracing()))
        return;
    hl_site_id site = site_for(c->thread, c->size);
    if (HL_UNLIKELY((hl_sites_at(&hl_hooks_ledger.sites, site)->is & HL_SITE_HIDDEN) != 0))
        hl_ledger_enter(&hl_hooks_ledger, c->block, c->size, 0, site);
    else
        enter_under(site, c->block, c->size);
}

static void leave(const call *c)
{
    if (hl_hooks_are_tracing())
        hl_ledger_leave(&hl_hooks_ledger, c->block, 0);
}

HL_INLINE void detach(const call *c)
{
    c->old->era = hl_hooks_ledger.era;
    c->old->site = hl_hooks_are_tracing() ? hl_ledger_detach(&hl_hooks_ledger, c->block) : 0;
}

/* The allocator has moved the block. If the ledger was cleared or stopped meanwhile, the old block is not in its totals
 * any more. */
HL_INLINE void enter_moved(const call *c)
{
    if (c->old->site != 0 && c->old->era == hl_hooks_ledger.era)
        hl_ledger_let_go(&hl_hooks_ledger, c->old->site);
    enter(c);
}

/* The allocator has refused: the old block is still there. */
HL_INLINE void reattach(const call *c)
{
    if (c->old->era == hl_hooks_ledger.era)
        hl_ledger_reattach(&hl_hooks_ledger, c->block, c->old->site);
}

/* What a hook does instead while another thread forks. */

static void lose(const call *c)
{
    if (c->old != NULL && c->old->site != 0)
        hl_hooks_note((hl_departure){.site = c->old->site, .era = c->old->era});
    hl_hooks_lose(c->block);
}

static void note(const call *c)
{
    hl_hooks_note((hl_departure){.address = c->block});
}

/* Do `act` with the lock held, or `otherwise` if it is not to be had. Nearly always the caller has the main
 * interpreter's GIL and the gate is open, and then this is a few instructions; the rest is out of line. */
typedef void action(const call *c);

static __attribute__((noinline)) void visit_slowly(action *act, action *otherwise, bool attached, call *c)
{
    if (!hl_hooks_are_tracing())
        return; /* the interpreter may be no more */
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
        call copy = c; /* so that the one above can stay in registers */
        visit_slowly(act, otherwise, attached, &copy);
    }
}

/* Entering a block at a place where blocks of its size were entered before is all that is inline. What is called instead is
 * called last and returns the block, so that the hook need not save a register for it. It also sees to it that there is a
 * block: where there is none, the quick way does not lead on. */

static __attribute__((noinline)) void *enter_by_stack(const void *frame, void *block, size_t size)
{
    if (HL_LIKELY(block != NULL && hl_hooks_are_tracing()))
        enter_under(hl_hooks_site(frame, size, 0), (uintptr_t)block, size);
    hl_gate_leave_favoured(&hl_hooks_gate);
    return block;
}

static __attribute__((noinline, cold)) void *enter_in_gate(PyThreadState *thread, void *block, size_t size)
{
    if (block != NULL)
        enter(&(call){.thread = thread, .block = (uintptr_t)block, .size = size});
    hl_gate_leave_favoured(&hl_hooks_gate);
    return block;
}

static __attribute__((noinline, cold)) void *enter_slowly(bool attached, void *block, size_t size)
{
    if (block == NULL)
        return NULL;
    call c = {.block = (uintptr_t)block, .size = size};
    visit_slowly(enter, lose, attached, &c);
    if (attached && c.thread != NULL && hl_hooks_are_tracing())
        hl_freelists_see_to(c.thread->interp); /* we may meet this interpreter for the first time */
    return block;
}

HL_INLINE void *enter_block(bool attached, void *block, size_t size)
{
    PyThreadState *thread = hl_frames_at_once(attached);
    if (HL_UNLIKELY(thread == NULL || !hl_gate_try_favoured(&hl_hooks_gate)))
        return enter_slowly(attached, block, size);
    const void *frame = hl_frames_current(thread);
    if (HL_UNLIKELY(frame == NULL))
        return enter_in_gate(thread, block, size);
    hl_site_id site = site_at_spot(frame, size); /* when we are not tracing we are nowhere */
    if (site == 0)
        return enter_by_stack(frame, block, size);
    if (HL_UNLIKELY(!hl_ledger_enter_quickly(&hl_hooks_ledger, (uintptr_t)block, site, size)))
        return enter_in_gate(thread, block, size);
    atomic_store_explicit(&hl_hooks_last_block, (uintptr_t)block, memory_order_relaxed);
    hl_gate_leave_favoured(&hl_hooks_gate);
    return block;
}

static __attribute__((noinline, cold)) void leave_slowly(bool attached, void *block)
{
    visit_slowly(leave, note, attached, &(call){.block = (uintptr_t)block});
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
    return enter_block(which != PYMEM_DOMAIN_RAW, block, count * size);
}

HL_INLINE void *reallocate(int layer, PyMemAllocatorDomain which, void *block, size_t size)
{
    const PyMemAllocatorEx *original = &hl_layers_originals[layer][which];
    bool attached = which != PYMEM_DOMAIN_RAW;
    if (HL_UNLIKELY(hl_this_thread.inside != 0)) {
        if (block != NULL) /* it is entered if it was allocated in a call of `free`, which is not inside */
            leave_slowly(attached, block);
        return original->realloc(original->ctx, block, size);
    }
    detached old = {0};
    if (block != NULL)
        visit(detach, note, attached, block, 0, &old);
    hl_this_thread.inside++;
    void *moved = original->realloc(original->ctx, block, size);
    hl_this_thread.inside--;
    if (moved != NULL)
        visit(enter_moved, lose, attached, moved, size, &old);
    else if (old.site != 0)
        visit(reattach, lose, attached, block, 0, &old);
    return moved;
}

static __attribute__((noinline, cold)) void release_slowly(const PyMemAllocatorEx *original, bool attached, void *block)
{
    if (block != NULL)
        leave_slowly(attached, block);
    original->free(original->ctx, block);
}

static __attribute__((noinline, cold)) void release_in_gate(const PyMemAllocatorEx *original, void *block)
{
    leave(&(call){.block = (uintptr_t)block});
    hl_gate_leave_favoured(&hl_hooks_gate);
    original->free(original->ctx, block);
}

/* An allocator that frees by another domain's allocator comes by here once more, and nothing is entered there any more. So
 * nothing is left to be done when the original has been called: it is called last. */
HL_INLINE void release(int layer, PyMemAllocatorDomain which, void *block)
{
    const PyMemAllocatorEx *original = &hl_layers_originals[layer][which];
    bool attached = which != PYMEM_DOMAIN_RAW;
    if (HL_UNLIKELY(hl_frames_at_once(attached) == NULL || !hl_gate_try_favoured(&hl_hooks_gate))) {
        release_slowly(original, attached, block);
        return;
    }
    if (HL_UNLIKELY(!hl_ledger_leave_quickly(&hl_hooks_ledger, (uintptr_t)block))) {
        release_in_gate(original, block);
        return;
    }
    hl_gate_leave_favoured(&hl_hooks_gate);
    original->free(original->ctx, block);
}

/* The layers above the first one are rarely used and share their code. */
static __attribute__((noinline)) void *allocate_above(int layer, PyMemAllocatorDomain which, bool zeroed, size_t count,
                                                      size_t size)
{
    return allocate(layer, which, zeroed, count, size);
}

static __attribute__((noinline)) void *reallocate_above(int layer, PyMemAllocatorDomain which, void *block, size_t size)
{
    return reallocate(layer, which, block, size);
}

static __attribute__((noinline)) void release_above(int layer, PyMemAllocatorDomain which, void *block)
{
    release(layer, which, block);
}

/* The context is the original's (layers.h says why), so each domain of each layer needs functions of its own to know
 * where it is. */
#define HOOKS(name, layer, domain, above)                                \
    static void *name##_malloc(void *context, size_t size)               \
    {                                                                    \
        (void)context;                                                   \
        return allocate##above(layer, domain, false, 1, size);           \
    }                                                                    \
    static void *name##_calloc(void *context, size_t count, size_t size) \
    {                                                                    \
        (void)context;                                                   \
        return allocate##above(layer, domain, true, count, size);        \
    }                                                                    \
    static void *name##_realloc(void *context, void *block, size_t size) \
    {                                                                    \
        (void)context;                                                   \
        return reallocate##above(layer, domain, block, size);            \
    }                                                                    \
    static void name##_free(void *context, void *block)                  \
    {                                                                    \
        (void)context;                                                   \
        release##above(layer, domain, block);                            \
    }

#define LAYER(layer, above)                            \
    HOOKS(raw_##layer, layer, PYMEM_DOMAIN_RAW, above) \
    HOOKS(mem_##layer, layer, PYMEM_DOMAIN_MEM, above) \
    HOOKS(object_##layer, layer, PYMEM_DOMAIN_OBJ, above)

LAYER(0, )
LAYER(1, _above)
LAYER(2, _above)
LAYER(3, _above)
LAYER(4, _above)
LAYER(5, _above)

#define FUNCTIONS(name) \
    {.malloc = name##_malloc, .calloc = name##_calloc, .realloc = name##_realloc, .free = name##_free}
#define FUNCTIONS_OF(layer)                       \
    {[PYMEM_DOMAIN_RAW] = FUNCTIONS(raw_##layer), \
     [PYMEM_DOMAIN_MEM] = FUNCTIONS(mem_##layer), \
     [PYMEM_DOMAIN_OBJ] = FUNCTIONS(object_##layer)}

const PyMemAllocatorEx hl_layers_hooks[HL_LAYERS][HL_LAYER_DOMAINS] = {
    FUNCTIONS_OF(0), FUNCTIONS_OF(1), FUNCTIONS_OF(2), FUNCTIONS_OF(3), FUNCTIONS_OF(4), FUNCTIONS_OF(5),
};
