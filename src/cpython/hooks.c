/* hooks.c: see hooks.h. */

#include "hooks.h"

#include "resolve.h"

hl_gate hl_hooks_gate = HL_GATE_INIT;
hl_ledger hl_hooks_ledger;
hl_shadow hl_hooks_shadow;
_Atomic bool hl_hooks_tracing;
__thread hl_hooks_thread hl_hooks_this_thread;
_Atomic uintptr_t hl_hooks_last_block;

/* What was there before us, by PyMemAllocatorDomain. Never changed or freed once it is here, nor taken away with the hooks:
 * a thread may still be inside one. */
enum { DOMAINS = 3 };
static const PyMemAllocatorEx *_Atomic originals[DOMAINS];

static inline const PyMemAllocatorEx *original_of(PyMemAllocatorDomain which)
{
    return atomic_load_explicit(&originals[which], memory_order_acquire);
}

__attribute__((noinline)) hl_site_id hl_hooks_site(const void *frame, uint64_t size, uint32_t domain)
{
    hl_ledger *ledger = &hl_hooks_ledger;
    hl_shadow *shadow = &hl_hooks_shadow;
    if (HL_UNLIKELY(!hl_shadow_sync(shadow, ledger, frame)) &&
        (hl_shadow_empty(shadow) || !hl_shadow_sync(shadow, ledger, frame)))
        return hl_shadow_empty(shadow) ? hl_resolve_unknown(ledger, size, domain) : 0;
    hl_key key = {.locations = shadow->locations + shadow->top,
                  .depth = hl_shadow_depth(shadow),
                  .domain = domain,
                  .size = size,
                  .stack_hash = hl_shadow_hash(shadow),
                  .version = shadow->version};
    hl_site_id site = hl_ledger_cached(ledger, &key);
    if (HL_UNLIKELY(site == 0))
        site = hl_resolve_site(ledger, shadow, &key);
    if (ledger->cache.spots != NULL && domain == 0 && site != 0 && shadow->seen[shadow->top].frame == frame &&
        shadow->generation == ledger->codes.generation)
        hl_cache_put_spot(&ledger->cache, &ledger->sites, hl_frames_instruction(frame), size, &ledger->codes.round,
                          site);
    return site;
}

/* At 1 frame, by what is known of the instruction; 0: nothing. */
HL_INLINE hl_site_id site_at_spot(const void *frame, uint64_t size)
{
    hl_ledger *ledger = &hl_hooks_ledger;
    if (ledger->cache.spots == NULL)
        return 0;
    return hl_cache_find_spot(&ledger->cache, &ledger->sites, hl_frames_instruction(frame), size, ledger->codes.round);
}

/* The same for `thread`, the caller's own state or NULL. */
HL_INLINE hl_site_id site_for(PyThreadState *thread, uint64_t size)
{
    const void *frame = thread == NULL ? NULL : hl_frames_current(thread);
    if (HL_LIKELY(frame != NULL)) {
        if (HL_UNLIKELY(frame == hl_hooks_this_thread.own_frame))
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
    if (HL_UNLIKELY(site == 0 || !hl_ledger_enter_quickly(&hl_hooks_ledger, block, site)))
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

static void reattribute(const call *c)
{
    hl_ledger *ledger = &hl_hooks_ledger;
    hl_site_id old = hl_hooks_are_tracing() ? hl_ledger_find(ledger, c->block, 0) : 0;
    if (old == 0 || old == ledger->old_code)
        return;
    hl_ledger_reattribute(ledger, c->block, site_for(c->thread, hl_sites_at(&ledger->sites, old)->size));
}

/* Do `act` with the lock held. Nearly always the caller has the main interpreter's GIL and the gate is open, and then
 * this is a few instructions; the rest is out of line. */
typedef void action(const call *c);

static __attribute__((noinline)) void visit_slowly(action *act, bool attached, call *c)
{
    if (!hl_hooks_are_tracing())
        return; /* the interpreter may be no more */
    bool favoured = hl_frames_here(attached, &c->thread);
    bool fast = hl_gate_enter_by(&hl_hooks_gate, favoured);
    if (!attached && c->thread == NULL)
        c->thread = hl_frames_detached();
    act(c);
    hl_gate_leave_favoured(&hl_hooks_gate, fast);
}

HL_INLINE void visit(action *act, bool attached, void *block, size_t size, detached *old)
{
    PyThreadState *thread;
    bool favoured = hl_frames_here(attached, &thread);
    call c = {.thread = thread, .block = (uintptr_t)block, .size = size, .old = old};
    if (HL_LIKELY(favoured && hl_gate_try_favoured(&hl_hooks_gate))) {
        act(&c);
        hl_gate_leave_favoured(&hl_hooks_gate, true);
    } else {
        call copy = c; /* so that the one above can stay in registers */
        visit_slowly(act, attached, &copy);
    }
}

/* Entering a block at a place where blocks of its size were entered before, at 1 frame, is all that is inline: what is
 * called instead, is called last, so that the hook need not save a register for it. */

static __attribute__((noinline)) void enter_by_stack(const void *frame, void *block, size_t size)
{
    if (HL_LIKELY(hl_hooks_are_tracing()))
        enter_under(hl_hooks_site(frame, size, 0), (uintptr_t)block, size);
    hl_gate_leave_favoured(&hl_hooks_gate, true);
}

static __attribute__((noinline, cold)) void enter_in_gate(PyThreadState *thread, void *block, size_t size)
{
    enter(&(call){.thread = thread, .block = (uintptr_t)block, .size = size});
    hl_gate_leave_favoured(&hl_hooks_gate, true);
}

static __attribute__((noinline, cold)) void enter_slowly(bool attached, void *block, size_t size)
{
    visit_slowly(enter, attached, &(call){.block = (uintptr_t)block, .size = size});
}

HL_INLINE void enter_block(bool attached, void *block, size_t size)
{
    PyThreadState *thread;
    if (HL_UNLIKELY(!hl_frames_here(attached, &thread) || !hl_gate_try_favoured(&hl_hooks_gate))) {
        enter_slowly(attached, block, size);
        return;
    }
    const void *frame = hl_frames_current(thread);
    if (HL_LIKELY(frame != NULL && frame != hl_hooks_this_thread.own_frame)) {
        hl_site_id site = site_at_spot(frame, size); /* when we are not tracing there are no spots */
        if (site == 0) {
            enter_by_stack(frame, block, size);
            return;
        }
        if (HL_LIKELY(hl_ledger_enter_quickly(&hl_hooks_ledger, (uintptr_t)block, site))) {
            atomic_store_explicit(&hl_hooks_last_block, (uintptr_t)block, memory_order_relaxed);
            hl_gate_leave_favoured(&hl_hooks_gate, true);
            return;
        }
    }
    enter_in_gate(thread, block, size);
}

static __attribute__((noinline, cold)) void leave_in_gate(void *block)
{
    leave(&(call){.block = (uintptr_t)block});
    hl_gate_leave_favoured(&hl_hooks_gate, true);
}

static __attribute__((noinline, cold)) void leave_slowly(bool attached, void *block)
{
    visit_slowly(leave, attached, &(call){.block = (uintptr_t)block});
}

HL_INLINE void leave_block(bool attached, void *block)
{
    PyThreadState *thread;
    if (HL_UNLIKELY(!hl_frames_here(attached, &thread) || !hl_gate_try_favoured(&hl_hooks_gate)))
        leave_slowly(attached, block);
    else if (HL_LIKELY(hl_hooks_are_tracing() && hl_ledger_leave_quickly(&hl_hooks_ledger, (uintptr_t)block)))
        hl_gate_leave_favoured(&hl_hooks_gate, true);
    else
        leave_in_gate(block);
}

void hl_hooks_reattribute(uintptr_t block)
{
    visit(reattribute, true, (void *)block, 0, NULL);
}

/* The hooks. */

HL_INLINE void *allocate(PyMemAllocatorDomain which, bool zeroed, size_t count, size_t size)
{
    const PyMemAllocatorEx *original = original_of(which);
    if (HL_UNLIKELY(hl_hooks_this_thread.inside)) {
        hl_hooks_this_thread.probed = true;
        return zeroed ? original->calloc(original->ctx, count, size) : original->malloc(original->ctx, size);
    }
    hl_hooks_this_thread.inside = true;
    void *block = zeroed ? original->calloc(original->ctx, count, size) : original->malloc(original->ctx, size);
    hl_hooks_this_thread.inside = false;
    if (HL_LIKELY(block != NULL))
        enter_block(which != PYMEM_DOMAIN_RAW, block, count * size);
    return block;
}

HL_INLINE void *reallocate(PyMemAllocatorDomain which, void *block, size_t size)
{
    const PyMemAllocatorEx *original = original_of(which);
    bool attached = which != PYMEM_DOMAIN_RAW;
    if (HL_UNLIKELY(hl_hooks_this_thread.inside)) {
        if (block != NULL) /* it is entered if it was allocated in a call of `free`, which is not inside */
            leave_block(attached, block);
        return original->realloc(original->ctx, block, size);
    }
    detached old = {0};
    if (block != NULL)
        visit(detach, attached, block, 0, &old);
    hl_hooks_this_thread.inside = true;
    void *moved = original->realloc(original->ctx, block, size);
    hl_hooks_this_thread.inside = false;
    if (moved != NULL)
        visit(enter_moved, attached, moved, size, &old);
    else if (old.site != 0)
        visit(reattach, attached, block, 0, &old);
    return moved;
}

/* An allocator that frees by another domain's allocator comes by here once more, and nothing is entered there any more. So
 * nothing is left to be done when the original has been called: it is called last. */
HL_INLINE void release(PyMemAllocatorDomain which, void *block)
{
    if (HL_LIKELY(block != NULL))
        leave_block(which != PYMEM_DOMAIN_RAW, block);
    const PyMemAllocatorEx *original = original_of(which);
    original->free(original->ctx, block);
}

/* The context is the original's (hooks.h says why), so each domain needs functions of its own to know which it is. */
#define HOOKS(name, domain)                                              \
    static void *name##_malloc(void *context, size_t size)               \
    {                                                                    \
        (void)context;                                                   \
        return allocate(domain, false, 1, size);                         \
    }                                                                    \
    static void *name##_calloc(void *context, size_t count, size_t size) \
    {                                                                    \
        (void)context;                                                   \
        return allocate(domain, true, count, size);                      \
    }                                                                    \
    static void *name##_realloc(void *context, void *block, size_t size) \
    {                                                                    \
        (void)context;                                                   \
        return reallocate(domain, block, size);                          \
    }                                                                    \
    static void name##_free(void *context, void *block)                  \
    {                                                                    \
        (void)context;                                                   \
        release(domain, block);                                          \
    }

HOOKS(raw, PYMEM_DOMAIN_RAW)
HOOKS(mem, PYMEM_DOMAIN_MEM)
HOOKS(object, PYMEM_DOMAIN_OBJ)

static const PyMemAllocatorEx hooks[DOMAINS] = {
    [PYMEM_DOMAIN_RAW] = {.malloc = raw_malloc, .calloc = raw_calloc, .realloc = raw_realloc, .free = raw_free},
    [PYMEM_DOMAIN_MEM] = {.malloc = mem_malloc, .calloc = mem_calloc, .realloc = mem_realloc, .free = mem_free},
    [PYMEM_DOMAIN_OBJ] = {.malloc = object_malloc,
                          .calloc = object_calloc,
                          .realloc = object_realloc,
                          .free = object_free},
};

static const PyMemAllocatorDomain domains[DOMAINS] = {PYMEM_DOMAIN_RAW, PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};

/* Are our hooks somewhere below `top`? Another tool may have put its own over them, or have put back what it found
 * before ours came: only a call can tell. */
static bool reaches_ours(const PyMemAllocatorEx *top)
{
    bool was_inside = hl_hooks_this_thread.inside;
    hl_hooks_this_thread.inside = true; /* pass through, if it is ours */
    hl_hooks_this_thread.probed = false;
    void *block = top->malloc(top->ctx, 1);
    if (block != NULL)
        top->free(top->ctx, block);
    else
        hl_hooks_this_thread.probed = true; /* in doubt, not twice */
    hl_hooks_this_thread.inside = was_inside;
    return hl_hooks_this_thread.probed;
}

/* False: no memory. */
static bool remember(PyMemAllocatorDomain which, const PyMemAllocatorEx *now)
{
    const PyMemAllocatorEx *before = original_of(which);
    if (before != NULL && memcmp(before, now, sizeof *now) == 0)
        return true;
    PyMemAllocatorEx *kept = hl_os_alloc(1, sizeof *kept);
    if (kept == NULL)
        return false;
    *kept = *now;
    atomic_store_explicit(&originals[which], kept, memory_order_release);
    return true;
}

/* False: no memory. */
static bool put_over(PyMemAllocatorDomain which, const PyMemAllocatorEx *now)
{
    if (!remember(which, now))
        return false;
    PyMemAllocatorEx ours = hooks[which];
    ours.ctx = now->ctx;
    PyMem_SetAllocator(which, &ours);
    return true;
}

hl_status hl_hooks_install(bool *put)
{
    *put = false;
    hl_frames_prepare();
    for (int i = 0; i < DOMAINS; i++) {
        PyMemAllocatorEx now;
        PyMem_GetAllocator(domains[i], &now);
        if (now.malloc == hooks[domains[i]].malloc || reaches_ours(&now))
            continue;
        if (!put_over(domains[i], &now))
            return HL_NO_MEMORY;
        *put = true;
    }
    return HL_OK;
}

hl_status hl_hooks_install_early(void)
{
    for (int i = 0; i < DOMAINS; i++) {
        PyMemAllocatorEx now;
        PyMem_GetAllocator(domains[i], &now);
        if (!put_over(domains[i], &now))
            return HL_NO_MEMORY;
    }
    return HL_OK;
}

void hl_hooks_remove(void)
{
    for (int i = 0; i < DOMAINS; i++) {
        PyMemAllocatorEx now;
        PyMem_GetAllocator(domains[i], &now);
        if (now.malloc == hooks[domains[i]].malloc) {
            PyMemAllocatorEx original = *original_of(domains[i]);
            PyMem_SetAllocator(domains[i], &original);
        }
    }
}

void hl_hooks_lift_object_malloc(void (*what)(void *), void *argument)
{
    PyMemAllocatorEx ours, lifted;
    PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &ours);
    bool alone = PyInterpreterState_Next(PyInterpreterState_Head()) == NULL;
    bool lift = alone && ours.malloc == object_malloc;
    if (lift) {
        lifted = ours; /* blocks freed meanwhile still pass by us */
        lifted.malloc = original_of(PYMEM_DOMAIN_OBJ)->malloc;
        PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &lifted);
    }
    what(argument);
    if (lift)
        PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &ours);
}
