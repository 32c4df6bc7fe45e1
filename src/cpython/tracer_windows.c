/* tracer_windows.c: the part of tracer.h about windows and the program's peak, which they share (core/window.h).
 *
 * While we hold control, the ledger is not replaced. But new sites may appear after we have found out how much room the
 * snapshots need, and before we take the lock again. Then we try once more, with more room.
 */

#include "tracer.h"

#include "domains.h"
#include "hooks.h"
#include "tracer_control.h"

static hl_status new_answer(hl_snapshot **snapshot, size_t rows)
{
    return hl_snapshot_new(hl_hooks_ledger.names, rows, snapshot);
}

static void drop_answer(hl_snapshot **snapshot)
{
    if (*snapshot != NULL)
        hl_snapshot_drop(*snapshot);
    *snapshot = NULL;
}

hl_status hl_tracer_reset_peak(void)
{
    hl_status status = HL_OK;
    hl_tracer_take_control();
    for (size_t slack = 256; hl_tracer_is_tracing(); slack *= 2) {
        hl_snapshot *stretch = NULL;
        hl_hooks_lock();
        bool keeps = hl_window_keeps_stretch(&hl_hooks_ledger, true);
        size_t room = hl_ledger_rows(&hl_hooks_ledger) + slack;
        if (!keeps)
            status = hl_window_reset_peak(&hl_hooks_ledger, NULL, 0);
        hl_hooks_unlock();
        if (!keeps)
            break;
        status = new_answer(&stretch, room);
        if (status == HL_OK) {
            hl_hooks_lock();
            status = hl_window_reset_peak(&hl_hooks_ledger, stretch, room);
            hl_hooks_unlock();
        }
        drop_answer(&stretch);
        if (status != HL_FULL)
            break;
    }
    hl_tracer_give_control();
    return status;
}

static hl_status try_to_open(size_t slack, hl_window **window, hl_snapshot **start, hl_tracer_totals *totals)
{
    hl_snapshot *stretch = NULL;
    *window = NULL;
    *start = NULL;
    hl_hooks_lock();
    size_t room = hl_ledger_rows(&hl_hooks_ledger) + slack;
    size_t ids = (size_t)hl_hooks_ledger.sites.table.used + slack;
    bool keeps = hl_window_keeps_stretch(&hl_hooks_ledger, false);
    hl_hooks_unlock();
    hl_status status = hl_window_new(ids < HL_MAP_MOST_SITES ? (hl_site_id)ids : HL_MAP_MOST_SITES + 1, window);
    if (status == HL_OK)
        status = new_answer(start, room);
    if (status == HL_OK && keeps)
        status = new_answer(&stretch, room);
    if (status == HL_OK) {
        hl_hooks_lock();
        status = hl_window_open(&hl_hooks_ledger, *window, stretch, *start, room);
        hl_tracer_get_facts(totals);
        hl_hooks_unlock();
    }
    drop_answer(&stretch);
    if (status == HL_OK)
        return HL_OK;
    drop_answer(start);
    if (*window != NULL)
        hl_window_free(*window);
    return status;
}

static void stop_without_windows(void)
{
    if (hl_tracer_for_windows && hl_hooks_ledger.windows == NULL)
        hl_tracer_stop_tracing();
}

hl_status hl_tracer_open_window(uint32_t nframe, hl_window **window, hl_snapshot **start, hl_tracer_totals *totals)
{
    hl_survey survey[HL_LAYER_DOMAINS];
    hl_domains_receive(!hl_tracer_is_tracing());
    hl_tracer_prepare(survey);
    hl_tracer_take_control();
    if (!hl_tracer_is_tracing())
        hl_tracer_for_windows = true;
    hl_status status = hl_tracer_see_to_tracing((hl_tracer_options){.nframe = nframe}, survey);
    if (status == HL_OK) {
        size_t slack = 256;
        while ((status = try_to_open(slack, window, start, totals)) == HL_FULL)
            slack *= 2;
        if (status != HL_OK)
            stop_without_windows();
    }
    hl_tracer_give_control();
    hl_tracer_finish();
    return status;
}

static hl_status try_to_close(size_t slack, hl_window *window, hl_window_answers *answers, hl_tracer_totals *totals)
{
    *answers = (hl_window_answers){0};
    if (!window->open)
        return HL_STOPPED;
    hl_hooks_lock();
    size_t room = hl_window_rows(&hl_hooks_ledger, window) + slack;
    hl_hooks_unlock();
    hl_status status = new_answer(&answers->peak, room);
    if (status == HL_OK)
        status = new_answer(&answers->allocated, room);
    if (status == HL_OK)
        status = new_answer(&answers->growth, room);
    if (status == HL_OK) {
        hl_hooks_lock();
        status = hl_window_close(&hl_hooks_ledger, window, answers, room);
        hl_tracer_get_facts(totals);
        hl_hooks_unlock();
    }
    if (status == HL_OK) {
        totals->peak = answers->peak->bytes;
    } else {
        drop_answer(&answers->peak);
        drop_answer(&answers->allocated);
        drop_answer(&answers->growth);
    }
    return status;
}

hl_status hl_tracer_close_window(hl_window *window, hl_window_answers *answers, hl_tracer_totals *totals)
{
    hl_status status;
    hl_tracer_take_control();
    for (size_t slack = 256; (status = try_to_close(slack, window, answers, totals)) == HL_FULL; slack *= 2)
        ;
    hl_tracer_give_control();
    return status;
}

void hl_tracer_free_window(hl_window *window)
{
    hl_tracer_take_control();
    hl_hooks_lock();
    hl_window_discard(&hl_hooks_ledger, window);
    hl_hooks_unlock();
    stop_without_windows();
    hl_tracer_give_control();
    hl_window_free(window);
    if (!hl_tracer_is_tracing())
        hl_tracer_finish();
}
