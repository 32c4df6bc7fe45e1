/* tracer.c: see tracer.h.
 *
 * Lock order: control, then the ledger's lock, then the book's pins.
 */

#include "tracer.h"

#include <pthread.h>

#include "domains.h"
#include "hooks.h"
#include "interpose.h"
#include "reftracer.h"
#include "tracer_control.h"

hl_lock hl_tracer_control; /* start and stop exclude each other */
static _Atomic uint32_t limit = 1;

/* A child of fork has only the thread that forked: the locks are held across the fork, so that the tables are whole,
 * and free in the child. */
static void before_fork(void)
{
    hl_lock_take(&hl_tracer_control);
    hl_gate_enter(&hl_hooks_gate);
    hl_lock_take(&hl_book_pin_lock);
    hl_lock_has_all = true;
}

static void after_fork_in_parent(void)
{
    hl_lock_has_all = false;
    if (hl_tracer_is_tracing())
        hl_ledger_forked(&hl_hooks_ledger);
    hl_lock_give(&hl_book_pin_lock);
    hl_gate_leave(&hl_hooks_gate);
    hl_lock_give(&hl_tracer_control);
}

static void after_fork_in_child(void)
{
    hl_lock_has_all = false;
    if (hl_tracer_is_tracing())
        hl_ledger_inherit(&hl_hooks_ledger);
    hl_lock_reset(&hl_book_pin_lock);
    hl_gate_reset(&hl_hooks_gate);
    hl_lock_reset(&hl_tracer_control);
    hl_interpose_forked();
}

/* Forget everything. */
static void end_tracing(void)
{
    hl_gate_enter(&hl_hooks_gate);
    atomic_store(&hl_hooks_tracing, false);
    hl_window_discard_all(&hl_hooks_ledger);
    hl_ledger old = hl_hooks_ledger;
    hl_hooks_ledger = (hl_ledger){.era = old.era + 1, .lost = old.lost};
    hl_shadow_close(&hl_hooks_shadow);
    hl_gate_leave(&hl_hooks_gate);
    hl_ledger_close(&old);
}

bool hl_tracer_for_windows;
static bool ends_at_exit; /* under hl_tracer_control, but for the interpreter's end, when no other thread runs */

/* The interpreter's very end: blocks are still freed after this, but nobody can ask about them any more. */
static void at_exit(void)
{
    ends_at_exit = false; /* the interpreter forgets its exit functions; it may be initialised again */
    end_tracing();
}

static void prepare_process(void)
{
    static bool done; /* under hl_tracer_control */
    if (!done)
        done = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

static void prepare_interpreter(void)
{
    if (!ends_at_exit)
        ends_at_exit = Py_AtExit(at_exit) == 0;
}

/* Another tool that stops may put back the allocators that it found, without ours: the stdlib's tracemalloc does. */
static hl_status hook_again(void)
{
    bool put;
    hl_status status = hl_hooks_install(&put);
    if (put) {
        hl_gate_enter(&hl_hooks_gate);
        hl_codes_forget_all(&hl_hooks_ledger.codes, hl_hooks_ledger.book);
        hl_gate_leave(&hl_hooks_gate);
    }
    hl_reftracer_install();
    return status;
}

/* Hooks on all domains or on none. Nobody is tracing: those that are there pass through. */
static hl_status hook_first(void)
{
    bool put;
    hl_status status = hl_hooks_install(&put);
    if (status != HL_OK)
        hl_hooks_remove();
    return status;
}

static hl_status hook_early(void)
{
    hl_status status = hl_hooks_install_early();
    if (status != HL_OK)
        hl_hooks_remove();
    return status;
}

/* Open a ledger, have the hooks put on, and let them enter. Under hl_tracer_control. */
static hl_status begin_tracing(uint32_t nframe, hl_status (*hook)(void))
{
    hl_ledger fresh;
    hl_shadow shadow = {0};
    hl_status status = hl_ledger_open(&fresh, nframe, 0);
    if (status == HL_OK)
        status = hl_shadow_open(&shadow, nframe);
    if (status == HL_OK)
        status = hook();
    if (status != HL_OK) {
        hl_shadow_close(&shadow);
        hl_ledger_close(&fresh);
        return status;
    }
    prepare_process();
    hl_gate_enter(&hl_hooks_gate);
    fresh.era = hl_hooks_ledger.era + 1;
    hl_hooks_ledger = fresh;
    hl_hooks_shadow = shadow;
    atomic_store(&limit, nframe);
    atomic_store(&hl_hooks_tracing, true);
    hl_gate_leave(&hl_hooks_gate);
    return HL_OK;
}

hl_status hl_tracer_see_to_tracing(uint32_t nframe)
{
    if (hl_tracer_is_tracing())
        return hook_again();
    prepare_interpreter();
    hl_status status = begin_tracing(nframe, hook_first);
    if (status == HL_OK)
        hl_reftracer_install();
    return status;
}

void hl_tracer_stop_tracing(void)
{
    if (!hl_tracer_is_tracing())
        return;
    hl_reftracer_remove();
    hl_hooks_remove();
    end_tracing();
}

hl_status hl_tracer_start(uint32_t nframe)
{
    hl_domains_receive(true);
    hl_lock_take(&hl_tracer_control);
    hl_status status = hl_tracer_see_to_tracing(nframe);
    if (status == HL_OK)
        hl_tracer_for_windows = false;
    hl_lock_give(&hl_tracer_control);
    return status;
}

static bool waits_for_interpreter; /* started early and not adopted yet; under hl_tracer_control */

hl_status hl_tracer_start_early(uint32_t nframe)
{
    hl_lock_take(&hl_tracer_control);
    hl_status status = begin_tracing(nframe, hook_early);
    waits_for_interpreter = status == HL_OK;
    hl_lock_give(&hl_tracer_control);
    return status;
}

void hl_tracer_adopt(void)
{
    hl_lock_take(&hl_tracer_control);
    bool adopt = waits_for_interpreter && hl_tracer_is_tracing(), replaced = false, lost = false;
    waits_for_interpreter = false;
    if (adopt) {
        prepare_interpreter();
        lost = hl_hooks_install(&replaced) != HL_OK;
        hl_reftracer_install();
    }
    hl_lock_give(&hl_tracer_control);
    if (!adopt)
        return;
    if (lost || (replaced && hl_tracer_clear() != HL_OK)) /* what was freed meanwhile would be in the ledger for ever */
        hl_tracer_stop();
    hl_domains_receive(true);
}

void hl_tracer_stop(void)
{
    hl_lock_take(&hl_tracer_control);
    hl_tracer_stop_tracing();
    hl_lock_give(&hl_tracer_control);
}

bool hl_tracer_is_tracing(void)
{
    return atomic_load(&hl_hooks_tracing);
}

uint32_t hl_tracer_nframe(void)
{
    return atomic_load(&limit);
}

hl_status hl_tracer_clear(void)
{
    hl_status status = HL_OK;
    hl_lock_take(&hl_tracer_control);
    if (hl_tracer_is_tracing()) {
        hl_ledger fresh;
        status = hl_ledger_open(&fresh, hl_tracer_nframe(), 0);
        if (status == HL_OK) {
            hl_gate_enter(&hl_hooks_gate);
            hl_ledger old = hl_hooks_ledger;
            fresh.era = old.era + 1;
            fresh.lost = old.lost;
            hl_window_move_all(&old, &fresh);
            hl_hooks_ledger = fresh;
            hl_hooks_shadow.generation = 0; /* its locations were the old book's */
            hl_gate_leave(&hl_hooks_gate);
            hl_ledger_close(&old);
        }
    }
    hl_lock_give(&hl_tracer_control);
    return status;
}

void hl_tracer_traced(uint64_t *current, uint64_t *peak)
{
    hl_gate_enter(&hl_hooks_gate);
    *current = hl_hooks_ledger.traced;
    *peak = hl_ledger_peak(&hl_hooks_ledger);
    hl_gate_leave(&hl_hooks_gate);
}

void hl_tracer_allocated(uint64_t *bytes, uint64_t *blocks)
{
    hl_gate_enter(&hl_hooks_gate);
    hl_ledger_allocated(&hl_hooks_ledger, bytes, blocks); /* a stopped ledger has no sites */
    hl_gate_leave(&hl_hooks_gate);
}

uint64_t hl_tracer_lost(void)
{
    hl_gate_enter(&hl_hooks_gate);
    uint64_t lost = hl_hooks_ledger.lost;
    hl_gate_leave(&hl_hooks_gate);
    return lost;
}

/* Under the ledger's lock. */
static void measure(hl_tracer_bytes *bytes)
{
    const hl_ledger *ledger = &hl_hooks_ledger;
    *bytes = (hl_tracer_bytes){.snapshots = hl_snapshot_memory()};
    if (hl_tracer_is_tracing()) {
        bytes->map = hl_map_memory(&ledger->map) + hl_table_memory(&ledger->side);
        bytes->sites = hl_table_memory(&ledger->sites.table);
        bytes->names = hl_book_memory(ledger->book);
        bytes->caches = hl_codes_memory(&ledger->codes) + hl_cache_memory(&ledger->cache) + hl_hooks_shadow.bytes;
    }
}

void hl_tracer_memory(hl_tracer_bytes *bytes)
{
    hl_gate_enter(&hl_hooks_gate);
    measure(bytes);
    hl_gate_leave(&hl_hooks_gate);
}

hl_status hl_tracer_visit(bool in_signal_handler, hl_tracer_visitor *visitor, void *context)
{
    if (!in_signal_handler)
        hl_gate_enter(&hl_hooks_gate);
    else if (!hl_gate_try(&hl_hooks_gate))
        return HL_BUSY;
    hl_status status = HL_STOPPED;
    if (hl_tracer_is_tracing()) {
        hl_tracer_facts facts = {
            .traced = hl_hooks_ledger.traced, .peak = hl_ledger_peak(&hl_hooks_ledger), .lost = hl_hooks_ledger.lost};
        measure(&facts.memory);
        status = visitor(&hl_hooks_ledger, &facts, context);
    }
    hl_gate_leave(&hl_hooks_gate);
    return status;
}

static void drop_all(hl_snapshot **snapshots, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hl_snapshot_drop(snapshots[i]);
}

static hl_status new_snapshots(hl_book *book, size_t room, hl_snapshot **made, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        hl_status status = hl_snapshot_new(book, room, &made[i]);
        if (status != HL_OK) {
            drop_all(made, i);
            return status;
        }
    }
    return HL_OK;
}

static hl_status fill(uint32_t era, size_t room, const hl_moment *moments, hl_snapshot **made, size_t count)
{
    hl_status status = hl_hooks_ledger.era == era ? HL_OK : HL_FULL; /* another era has another book */

    for (size_t i = 0; i < count && status == HL_OK; i++)
        status = hl_ledger_fill(&hl_hooks_ledger, moments[i], made[i], room);
    return status;
}

hl_status hl_tracer_capture(const hl_moment *moments, size_t count, hl_snapshot **made)
{
    if (hl_tracer_is_tracing())
        hl_domains_receive(false);
    hl_lock_take(&hl_tracer_control);
    if (hl_tracer_is_tracing())
        (void)hook_again(); /* no memory now: the next one tries again */
    hl_lock_give(&hl_tracer_control);
    /* Rows are allocated without the gate, so the number of sites may have grown when it is taken: then once more. */
    for (size_t slack = 256;; slack *= 2) {
        hl_gate_enter(&hl_hooks_gate);
        bool tracing = hl_tracer_is_tracing();
        size_t room = tracing ? hl_ledger_rows(&hl_hooks_ledger) + slack : 0;
        hl_book *book = tracing ? hl_book_hold(hl_hooks_ledger.book) : NULL;
        uint32_t era = hl_hooks_ledger.era;
        hl_gate_leave(&hl_hooks_gate);
        if (!tracing)
            return HL_STOPPED;
        hl_status status = new_snapshots(book, room, made, count);
        hl_book_drop(book);
        if (status != HL_OK)
            return status;
        hl_gate_enter(&hl_hooks_gate);
        status = fill(era, room, moments, made, count);
        hl_gate_leave(&hl_hooks_gate);
        if (status == HL_OK)
            return HL_OK;
        drop_all(made, count);
        if (status != HL_FULL)
            return status;
    }
}

hl_status hl_tracer_snapshot(hl_moment moment, hl_snapshot **made)
{
    return hl_tracer_capture(&moment, 1, made);
}

hl_status hl_tracer_find(uintptr_t address, uint32_t domain, hl_snapshot **found)
{
    hl_status status = HL_OK;
    *found = NULL;
    hl_gate_enter(&hl_hooks_gate);
    hl_ledger *ledger = &hl_hooks_ledger;
    hl_site_id site = hl_tracer_is_tracing() ? hl_ledger_find(ledger, address, domain) : 0;
    if (site != 0 && (hl_sites_at(&ledger->sites, site)->is & HL_SITE_HIDDEN) == 0) {
        status = hl_snapshot_new(ledger->book, 1, found);
        if (status == HL_OK) {
            status = hl_ledger_fill_one(ledger, site, *found);
            if (status != HL_OK) {
                hl_snapshot_drop(*found);
                *found = NULL;
            }
        }
    }
    hl_gate_leave(&hl_hooks_gate);
    return status;
}

const char *hl_tracer_validate(void)
{
    const char *wrong = NULL;
    hl_gate_enter(&hl_hooks_gate);
    if (hl_tracer_is_tracing())
        wrong = hl_ledger_validate(&hl_hooks_ledger);
    hl_gate_leave(&hl_hooks_gate);
    return wrong;
}

void hl_tracer_begin_own_work(hl_own_work *outer)
{
    PyThreadState *thread;
    (void)hl_frames_here(true, &thread);
    outer->frame = hl_hooks_this_thread.own_frame;
    hl_hooks_this_thread.own_frame = thread == NULL ? NULL : hl_frames_current(thread);
}

void hl_tracer_end_own_work(const hl_own_work *outer)
{
    hl_hooks_this_thread.own_frame = outer->frame;
}

uintptr_t hl_tracer_block_of(const void *object)
{
    return (uintptr_t)object - hl_frames_object_offset(Py_TYPE((PyObject *)(uintptr_t)object));
}
