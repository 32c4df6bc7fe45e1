/* tracer.c: see tracer.h.
 *
 * Lock order: control, then the ledger's lock, then the lock of the name table's pins.
 */

#include "tracer.h"

#include "domains.h"
#include "freelists.h"
#include "hooks.h"
#include "jumps.h"
#include "tracer_control.h"

static _Atomic uint32_t limit = 1;
static _Atomic bool numbers;

/* Stop entering blocks, and forget everything. */
static void end_tracing(void)
{
    hl_hooks_lock();
    atomic_store(&hl_hooks_tracing, false);
    hl_window_discard_all(&hl_hooks_ledger);
    hl_ledger old = hl_hooks_ledger;
    hl_hooks_ledger = (hl_ledger){HL_LEDGER_CLOSED, .clear_count = old.clear_count + 1, .lost = old.lost};
    hl_shadow_close(&hl_hooks_shadow);
    hl_hooks_unlock();
    hl_ledger_close(&old);
}

bool hl_tracer_for_windows;
static bool ends_at_exit; /* needs control, except at the interpreter's end, when no other thread runs */

/* Runs at the very end of the interpreter. Blocks are still freed after this, but no code can ask about them any
 * more. */
static void at_exit(void)
{
    ends_at_exit = false; /* the interpreter forgets its exit functions, and may be initialised again */
    end_tracing();
    hl_freelists_end();
}

static void prepare_interpreter(void)
{
    if (!ends_at_exit)
        ends_at_exit = Py_AtExit(at_exit) == 0;
    hl_jumps_watch();
}

/* A new ledger and a new shadow, to start with. */
typedef struct {
    hl_ledger ledger;
    hl_shadow shadow;
} beginning;

static hl_status prepare_beginning(uint32_t nframe, beginning *fresh)
{
    *fresh = (beginning){0};
    hl_status status = hl_ledger_open(&fresh->ledger, nframe, 0);
    if (status == HL_OK)
        status = hl_shadow_open(&fresh->shadow, nframe);
    if (status != HL_OK)
        hl_ledger_close(&fresh->ledger);
    return status;
}

/* The hooks are installed. From now on they enter blocks. */
static void begin_tracing(hl_tracer_options options, const beginning *fresh)
{
    hl_hooks_lock();
    uint32_t clear_count = hl_hooks_ledger.clear_count + 1;
    hl_hooks_ledger = fresh->ledger;
    hl_hooks_ledger.clear_count = clear_count;
    hl_hooks_shadow = fresh->shadow;
    atomic_store(&limit, options.nframe);
    atomic_store(&numbers, options.numbers);
    atomic_store(&hl_hooks_tracing, true);
    hl_hooks_unlock();
}

static bool clear_in_place(bool forgotten)
{
    hl_hooks_lock();
    uint64_t lost = forgotten ? hl_ledger_live_blocks(&hl_hooks_ledger) : 0;
    bool done = hl_ledger_clear(&hl_hooks_ledger);
    if (done) {
        hl_hooks_ledger.lost += lost;
        hl_window_restart_all(&hl_hooks_ledger);
        hl_shadow_forget(&hl_hooks_shadow); /* its locations are no longer valid */
    }
    hl_hooks_unlock();
    return done;
}

/* Forget all entries. `forgotten`: the program did not ask for this, so the blocks in the ledger count as lost. */
static hl_status clear(bool forgotten)
{
    hl_ledger fresh;
    if (clear_in_place(forgotten))
        return HL_OK;
    hl_status status = hl_ledger_open(&fresh, hl_tracer_nframe(), 0);
    if (status != HL_OK)
        return status;
    hl_hooks_lock();
    hl_ledger old = hl_hooks_ledger;
    fresh.clear_count = old.clear_count + 1;
    fresh.lost = old.lost + (forgotten ? hl_ledger_live_blocks(&old) : 0);
    hl_window_move_all(&old, &fresh);
    hl_hooks_ledger = fresh;
    hl_shadow_forget(&hl_hooks_shadow); /* its locations belong to the old name table */
    hl_hooks_unlock();
    hl_ledger_close(&old);
    return HL_OK;
}

/* Another tool that stops may put back the allocators that it found, without our hooks. A block that was freed
 * meanwhile would stay in the ledger forever, and the next block at its address would get its traceback. So we forget
 * all entries. */
static _Atomic bool is_stale; /* the entries could not be forgotten yet; changes under control */
static _Atomic uint32_t interruptions;

static hl_status put_hooks_back(const hl_survey survey[HL_LAYER_DOMAINS])
{
    if (hl_layers_put(survey)) {
        is_stale = true;
        atomic_fetch_add(&interruptions, 1);
    }
    hl_status status = is_stale ? clear(true) : HL_OK;
    if (status == HL_OK)
        is_stale = false;
    return status;
}

void hl_tracer_prepare(hl_survey survey[HL_LAYER_DOMAINS])
{
    hl_frames_prepare();
    hl_layers_survey(survey);
}

hl_status hl_tracer_see_to_tracing(hl_tracer_options options, const hl_survey survey[HL_LAYER_DOMAINS])
{
    if (hl_tracer_is_tracing())
        return put_hooks_back(survey);
    beginning fresh;
    prepare_interpreter();
    hl_status status = prepare_beginning(options.nframe, &fresh);
    if (status == HL_OK) {
        (void)hl_layers_put(survey); /* we do not trace yet, so hooks that are there already only pass calls on */
        is_stale = false;
        atomic_store(&interruptions, 0);
        begin_tracing(options, &fresh);
    }
    return status;
}

static int finish_in_main(void *unused)
{
    (void)unused;
    hl_tracer_finish();
    return 0;
}

void hl_tracer_finish(void)
{
    if (hl_tracer_is_tracing())
        hl_freelists_turn_off(atomic_load(&numbers));
    else
        hl_freelists_turn_on();
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) /* the main interpreter may have another GIL */
        (void)Py_AddPendingCall(finish_in_main, NULL);
}

void hl_tracer_stop_tracing(void)
{
    if (!hl_tracer_is_tracing())
        return;
    hl_layers_remove();
    end_tracing();
}

hl_status hl_tracer_see_to_hooks(bool in_time)
{
    hl_survey survey[HL_LAYER_DOMAINS];
    hl_status status = HL_OK;
    if (!hl_tracer_is_tracing())
        return HL_STOPPED;
    if (!hl_layers_are_on_top() || is_stale) {
        hl_tracer_prepare(survey);
        hl_tracer_take_control();
        if (!hl_tracer_is_tracing())
            status = HL_STOPPED;
        else if (in_time)
            (void)hl_layers_put(survey);
        else
            status = put_hooks_back(survey);
        hl_tracer_give_control();
    }
    hl_tracer_finish();
    return status;
}

hl_status hl_tracer_start(hl_tracer_options options)
{
    hl_survey survey[HL_LAYER_DOMAINS];
    hl_domains_receive(true);
    hl_tracer_prepare(survey);
    hl_tracer_take_control();
    hl_status status = hl_tracer_see_to_tracing(options, survey);
    if (status == HL_OK)
        hl_tracer_for_windows = false;
    hl_tracer_give_control();
    hl_tracer_finish();
    return status;
}

static bool waits_for_interpreter; /* started before main() and not adopted yet; needs control */

hl_status hl_tracer_start_before_main(hl_tracer_options options)
{
    beginning fresh;
    hl_tracer_take_control();
    hl_status status = prepare_beginning(options.nframe, &fresh);
    if (status == HL_OK) {
        hl_layers_put_before_main();
        begin_tracing(options, &fresh);
    }
    waits_for_interpreter = status == HL_OK;
    hl_tracer_give_control();
    return status;
}

void hl_tracer_adopt(void)
{
    hl_survey survey[HL_LAYER_DOMAINS];
    hl_tracer_prepare(survey);
    hl_tracer_take_control();
    bool adopt = waits_for_interpreter && hl_tracer_is_tracing();
    waits_for_interpreter = false;
    if (adopt) {
        prepare_interpreter();
        /* The interpreter may have replaced the allocators meanwhile. Then start again. We lose almost nothing, because
         * the interpreter had allocated hardly anything before. */
        if (hl_layers_put(survey) && clear(false) != HL_OK)
            hl_tracer_stop_tracing();
    }
    hl_tracer_give_control();
    if (!adopt)
        return;
    hl_tracer_finish();
    hl_domains_receive(true);
}

void hl_tracer_stop(void)
{
    hl_tracer_take_control();
    hl_tracer_stop_tracing();
    hl_tracer_give_control();
    hl_tracer_finish();
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
    hl_tracer_take_control();
    hl_status status = hl_tracer_is_tracing() ? clear(false) : HL_OK;
    hl_tracer_give_control();
    return status;
}

void hl_tracer_traced(uint64_t *current, uint64_t *peak)
{
    (void)hl_tracer_see_to_hooks(false);
    hl_hooks_lock();
    *current = hl_ledger_traced(&hl_hooks_ledger);
    *peak = hl_ledger_peak(&hl_hooks_ledger);
    hl_hooks_unlock();
}

void hl_tracer_allocated(uint64_t *bytes, uint64_t *blocks)
{
    hl_hooks_lock();
    hl_ledger_allocated(&hl_hooks_ledger, bytes, blocks); /* a stopped ledger has no sites */
    hl_hooks_unlock();
}

uint64_t hl_tracer_lost(void)
{
    hl_hooks_lock();
    uint64_t lost = hl_hooks_ledger.lost;
    hl_hooks_unlock();
    return lost;
}

/* Needs the ledger's lock. */
static void measure(hl_tracer_bytes *bytes)
{
    const hl_ledger *ledger = &hl_hooks_ledger;
    *bytes = (hl_tracer_bytes){.snapshots = hl_snapshot_memory()};
    if (hl_tracer_is_tracing()) {
        bytes->map = hl_map_memory(&ledger->map) + hl_table_memory(&ledger->side);
        bytes->sites = hl_sites_memory(&ledger->sites);
        bytes->names = hl_names_memory(ledger->names);
        bytes->caches = hl_codes_memory(&ledger->codes) + hl_cache_memory(&ledger->cache) +
                        hl_spots_memory(&ledger->spots) + hl_hooks_shadow.bytes;
    }
}

void hl_tracer_memory(hl_tracer_bytes *bytes)
{
    hl_hooks_lock();
    measure(bytes);
    hl_hooks_unlock();
}

void hl_tracer_get_facts(hl_tracer_totals *totals)
{
    *totals = (hl_tracer_totals){.traced = hl_ledger_traced(&hl_hooks_ledger),
                                 .peak = hl_ledger_peak(&hl_hooks_ledger),
                                 .lost = hl_hooks_ledger.lost,
                                 .interruptions = atomic_load(&interruptions),
                                 .numbers = atomic_load(&numbers)};
    measure(&totals->memory);
}

hl_status hl_tracer_visit(bool in_signal_handler, hl_tracer_visitor *visitor, void *context)
{
    if (!in_signal_handler)
        hl_hooks_lock();
    else if (!hl_hooks_try_lock())
        return HL_BUSY;
    hl_status status = HL_STOPPED;
    if (hl_tracer_is_tracing()) {
        hl_tracer_totals totals;
        hl_tracer_get_facts(&totals);
        status = visitor(&hl_hooks_ledger, &totals, context);
    }
    hl_hooks_unlock();
    return status;
}

static void drop_all(hl_snapshot **snapshots, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hl_snapshot_drop(snapshots[i]);
}

static hl_status new_snapshots(hl_names *names, size_t room, hl_snapshot **made, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        hl_status status = hl_snapshot_new(names, room, &made[i]);
        if (status != HL_OK) {
            drop_all(made, i);
            return status;
        }
    }
    return HL_OK;
}

static hl_status fill(uint32_t clear_count, size_t room, const hl_moment *moments, hl_snapshot **made, size_t count)
{
    hl_status status = hl_hooks_ledger.clear_count == clear_count ? HL_OK : HL_FULL; /* cleared: another name table */

    for (size_t i = 0; i < count && status == HL_OK; i++)
        status = hl_ledger_fill(&hl_hooks_ledger, moments[i], made[i], room);
    return status;
}

hl_status hl_tracer_capture(const hl_moment *moments, size_t count, hl_snapshot **made, hl_tracer_totals *totals)
{
    if (hl_tracer_is_tracing())
        hl_domains_receive(false);
    (void)hl_tracer_see_to_hooks(false); /* if memory ran out, the next call tries again */
    /* We allocate the rows without holding the lock. More sites may exist when we take the lock again. Then we try once
     * more, with more room. */
    for (size_t slack = 256;; slack *= 2) {
        hl_hooks_lock();
        bool tracing = hl_tracer_is_tracing();
        size_t room = tracing ? hl_ledger_rows(&hl_hooks_ledger) + slack : 0;
        hl_names *names = tracing ? hl_names_hold(hl_hooks_ledger.names) : NULL;
        uint32_t clear_count = hl_hooks_ledger.clear_count;
        hl_hooks_unlock();
        if (!tracing)
            return HL_STOPPED;
        hl_status status = new_snapshots(names, room, made, count);
        hl_names_drop(names);
        if (status != HL_OK)
            return status;
        hl_hooks_lock();
        status = fill(clear_count, room, moments, made, count);
        hl_tracer_get_facts(totals);
        hl_hooks_unlock();
        if (status == HL_OK)
            return HL_OK;
        drop_all(made, count);
        if (status != HL_FULL)
            return status;
    }
}

hl_status hl_tracer_snapshot(hl_moment moment, hl_snapshot **made)
{
    hl_tracer_totals totals;
    return hl_tracer_capture(&moment, 1, made, &totals);
}

/* We create the snapshot without holding the lock. If the ledger is another one when we fill the snapshot, we try once
 * more. */
hl_status hl_tracer_find(uintptr_t address, uint32_t domain, hl_snapshot **found)
{
    (void)hl_tracer_see_to_hooks(false);
    for (;;) {
        *found = NULL;
        hl_hooks_lock();
        hl_ledger *ledger = &hl_hooks_ledger;
        uint32_t clear_count = ledger->clear_count;
        hl_site_id site = hl_tracer_is_tracing() ? hl_ledger_find(ledger, address, domain) : 0;
        bool shown = site != 0 && (hl_sites_at(&ledger->sites, site)->is & HL_SITE_HIDDEN) == 0;
        hl_names *names = shown ? hl_names_hold(ledger->names) : NULL;
        hl_hooks_unlock();
        if (!shown)
            return HL_OK;
        hl_status status = hl_snapshot_new(names, 1, found);
        hl_names_drop(names);
        if (status != HL_OK)
            return status;
        hl_hooks_lock();
        site = ledger->clear_count == clear_count ? hl_ledger_find(ledger, address, domain) : 0;
        status = site != 0 ? hl_ledger_fill_one(ledger, site, *found) : HL_FULL;
        hl_hooks_unlock();
        if (status == HL_OK)
            return HL_OK;
        hl_snapshot_drop(*found);
        *found = NULL;
        if (status != HL_FULL)
            return status;
    }
}

const char *hl_tracer_validate(void)
{
    const char *wrong = NULL;
    hl_hooks_lock();
    if (hl_tracer_is_tracing())
        wrong = hl_ledger_validate(&hl_hooks_ledger);
    hl_hooks_unlock();
    return wrong;
}

uintptr_t hl_tracer_block_of(const void *object)
{
    return (uintptr_t)object - hl_frames_object_offset(Py_TYPE((PyObject *)(uintptr_t)object));
}
