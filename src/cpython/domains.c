/* domains.c: see domains.h. */

#include <stdbool.h>

#include "domains.h"

#include "../elf/interpose.h"
#include "hooks.h"
#include "rivals.h"

/* Blocks of domain 0 share the map with the blocks of the hooks. A block that an extension reports may lie inside
 * another block. So we tell the map a size of 1, whatever the real size is. Then the map cuts the page so fine that no
 * two starts share a slot. */
enum { SMALLEST_BLOCK = 1 };

static hl_site_id site_for(PyThreadState *thread, uint64_t size, uint32_t domain)
{
    const void *frame = thread == NULL ? NULL : hl_frames_current(thread);
    if (frame != NULL && frame == hl_this_thread.own_frame)
        return hl_ledger_own_site(&hl_hooks_ledger, size);
    return hl_hooks_site(frame, size, domain);
}

/* Take the ledger's lock through this thread's side of the gate. */
static hl_passage enter_gate(PyThreadState **thread)
{
    bool favoured = hl_frames_here(false, thread);
    hl_passage passage = hl_hooks_enter(favoured);
    if (*thread == NULL && passage != HL_GATE_REFUSED)
        *thread = hl_frames_detached();
    return passage;
}

int hl_domains_track(unsigned int domain, uintptr_t address, size_t size)
{
    if (!hl_hooks_are_tracing())
        return HL_DOMAINS_NOT_TRACING;
    int result = HL_DOMAINS_NOT_TRACING;
    PyThreadState *thread;
    hl_passage passage = enter_gate(&thread);
    if (passage == HL_GATE_REFUSED) {
        hl_hooks_lose(0);
        return HL_DOMAINS_NO_MEMORY;
    }
    if (hl_hooks_are_tracing()) {
        uint64_t lost = hl_hooks_ledger.lost;
        bool fits = size <= INT64_MAX - hl_ledger_traced(&hl_hooks_ledger); /* we show sums as signed numbers */
        hl_site_id site = fits ? site_for(thread, size, domain) : 0;
        hl_ledger_enter(&hl_hooks_ledger, address, SMALLEST_BLOCK, domain, site);
        result = hl_hooks_ledger.lost == lost ? HL_DOMAINS_DONE : HL_DOMAINS_NO_MEMORY;
    }
    hl_hooks_leave(passage);
    return result;
}

/* An extension untracks the block that was entered last. numpy does so with a block that an allocator has just
 * returned, to report it under its own domain. That is one allocation, not two. (If a thread without the GIL has
 * entered another block meanwhile, it counts as two.) */
static void disown_last(uintptr_t address)
{
    hl_ledger_disown(&hl_hooks_ledger, address);
    atomic_store_explicit(&hl_hooks_last_block, 0, memory_order_relaxed);
}

int hl_domains_untrack(unsigned int domain, uintptr_t address)
{
    if (!hl_hooks_are_tracing())
        return HL_DOMAINS_NOT_TRACING;
    int result = HL_DOMAINS_NOT_TRACING;
    PyThreadState *thread;
    hl_passage passage = enter_gate(&thread);
    if (passage == HL_GATE_REFUSED) {
        hl_hooks_note((hl_departure){.address = address, .domain = domain});
        return HL_DOMAINS_DONE;
    }
    if (hl_hooks_are_tracing()) {
        if (domain == 0 && address == atomic_load_explicit(&hl_hooks_last_block, memory_order_relaxed))
            disown_last(address);
        else
            (void)hl_ledger_leave(&hl_hooks_ledger, address, domain);
        result = HL_DOMAINS_DONE;
    }
    hl_hooks_leave(passage);
    return result;
}

/* Extensions call these instead of the interpreter's functions. Both heapledger and tracemalloc may be tracing, so we
 * always call the interpreter's function too. It does nothing if tracemalloc is not tracing.
 *
 * We call the interpreter's functions through pointers that no sweep changes. A normal call would go through a slot of
 * this library, and a second copy of heapledger in the process would redirect that slot to itself. The pointers are
 * volatile, so that the compiler does not turn these calls into normal ones. */
static int (*volatile their_track)(unsigned int, uintptr_t, size_t) = PyTraceMalloc_Track;
static int (*volatile their_untrack)(unsigned int, uintptr_t) = PyTraceMalloc_Untrack;

/* This function is private, but the interpreter's own tests call it. The symbol is weak, so that we can load into an
 * interpreter that lacks it. */
extern PyObject *_PyTraceMalloc_GetTraceback(unsigned int domain, uintptr_t address) __attribute__((weak));
static PyObject *(*volatile their_getter)(unsigned int, uintptr_t) = _PyTraceMalloc_GetTraceback;

/* The worse of two results. An engine that is not tracing does not count. */
static int both(int ours, int theirs)
{
    if (ours == HL_DOMAINS_NOT_TRACING)
        return theirs;
    return theirs == HL_DOMAINS_NO_MEMORY ? theirs : ours;
}

static int track(unsigned int domain, uintptr_t address, size_t size)
{
    int ours = hl_domains_track(domain, address, size);
    return both(ours, their_track(domain, address, size));
}

static int untrack(unsigned int domain, uintptr_t address)
{
    int ours = hl_domains_untrack(domain, address);
    return both(ours, their_untrack(domain, address));
}

static hl_domains_getter *own_getter;

static PyObject *get_traceback(unsigned int domain, uintptr_t address)
{
    PyObject *frames = hl_hooks_are_tracing() ? own_getter(domain, address) : NULL;
    if (frames != NULL || PyErr_Occurred())
        return frames;
    return their_getter(domain, address);
}

void hl_domains_set_getter(hl_domains_getter *function)
{
    own_getter = function;
}

void hl_domains_receive(bool again)
{
    static const hl_replacement replacements[] = {
        {"PyTraceMalloc_Track", (void *)track},
        {"PyTraceMalloc_Untrack", (void *)untrack},
        {"_PyTraceMalloc_GetTraceback", (void *)get_traceback},
        {"PyMem_GetAllocator", (void *)hl_rivals_get_allocator},
        {"PyMem_SetAllocator", (void *)hl_rivals_set_allocator},
        {NULL, NULL},
    };
    static const hl_interposition interposition = {replacements, (void *)PyTraceMalloc_Track, &hl_hooks_tracing};
    hl_interpose(&interposition, again);
}
