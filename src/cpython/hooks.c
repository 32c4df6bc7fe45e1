/* hooks.c: see hooks.h. */

#include "hooks.h"

#include "../core/missed.h"
#include "hook_path.h"
#include "layers.h"
#include "resolve.h"

hl_gate hl_hooks_gate = HL_GATE_INIT;
hl_ledger hl_hooks_ledger = {HL_LEDGER_CLOSED};
hl_shadow hl_hooks_shadow;
_Atomic bool hl_hooks_tracing;
_Atomic uintptr_t hl_hooks_last_block;

static hl_missed missed; /* what hooks could not do during a fork */

hl_passage hl_hooks_enter(bool favoured)
{
    hl_passage passage = hl_gate_enter_by(&hl_hooks_gate, favoured);
    hl_os_forbid_libc(passage != HL_GATE_REFUSED);
    if (passage == HL_GATE_BY_LOCK && HL_UNLIKELY(hl_missed_any(&missed)))
        hl_missed_apply(&missed, &hl_hooks_ledger);
    return passage;
}

void hl_hooks_lock(void)
{
    hl_gate_enter(&hl_hooks_gate);
    hl_os_forbid_libc(true);
    if (HL_UNLIKELY(hl_missed_any(&missed)))
        hl_missed_apply(&missed, &hl_hooks_ledger);
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
    /* If the fork is over, the thread that held the lock may have applied all notes before this one was there. So apply
     * it now. */
    if (hl_lock_is_forking(&hl_hooks_gate.lock))
        return;
    hl_passage passage = hl_hooks_enter(false);
    if (passage != HL_GATE_REFUSED)
        hl_hooks_leave(passage);
}

/* --- fork --- */

/* The child of a fork has only the thread that forked. We hold the locks during the fork, so that the child's tables
 * are consistent. */
void hl_hooks_begin_fork(void)
{
    hl_hooks_lock();
    hl_lock_take(&hl_names_pin_lock);
    hl_missed_forks(&missed);
    hl_lock_forks_here = true;
    hl_lock_begin_fork(&hl_names_pin_lock);
    hl_lock_begin_fork(&hl_hooks_gate.lock);
    hl_os_forbid_libc(false); /* other tools' handlers may call the C library */
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
    hl_lock_end_fork(&hl_names_pin_lock);
    hl_lock_end_fork(&hl_hooks_gate.lock);
    if (hl_missed_any(&missed)) {
        hl_hooks_lock();
        hl_hooks_unlock();
    }
}

/* --- sites --- */

/* Find the site by the locations of the stack. This is for blocks that no spot knows. */
static __attribute__((noinline)) hl_site_id find_site_by_names(uint64_t size, uint32_t domain)
{
    hl_ledger *ledger = &hl_hooks_ledger;
    hl_shadow *shadow = &hl_hooks_shadow;
    hl_key key = {.locations = shadow->locations + shadow->top,
                  .depth = hl_shadow_depth(shadow),
                  .domain = domain,
                  .size = size,
                  .stack_hash = hl_shadow_hash(shadow),
                  .stack_version = shadow->stack_version};
    hl_site_id site = hl_ledger_cached(ledger, &key);
    if (HL_UNLIKELY(site == 0))
        site = hl_resolve_site(ledger, shadow, &key);
    if (domain == 0 && site != 0 && shadow->code_generation == ledger->codes.code_generation)
        hl_ledger_remember(ledger, shadow->seen[shadow->top].instruction, site);
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

/* Layers above the first are rarely used, so they share their code. */
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

/* The context pointer is that of the original allocator (layers.h says why). It cannot tell a hook which layer and
 * domain it serves. So each domain of each layer has its own functions. */
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
