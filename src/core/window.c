/* window.c: see window.h. */

#include "window.h"

hl_status hl_window_new(hl_site_id room, hl_window **window)
{
    hl_window *made = hl_os_alloc(1, sizeof *made);
    if (made == NULL)
        return HL_NO_MEMORY;
    made->before = hl_os_alloc(room, sizeof *made->before); /* ids that are skipped stay at zero */
    if (made->before == NULL) {
        hl_os_free(made);
        return HL_NO_MEMORY;
    }
    made->room = room;
    *window = made;
    return HL_OK;
}

void hl_window_free(hl_window *window)
{
    hl_os_free(window->before);
    hl_os_free(window);
}

/* Stretches. */

static bool is_higher(uint64_t bytes, const hl_snapshot *earlier_peak)
{
    return earlier_peak == NULL || bytes > earlier_peak->bytes;
}

bool hl_window_keeps_stretch(const hl_ledger *ledger, bool resets)
{
    if (!resets && is_higher(ledger->peak, ledger->earlier_peak))
        return true;
    for (const hl_window *window = ledger->windows; window != NULL; window = window->next)
        if (is_higher(ledger->peak, window->earlier_peak))
            return true;
    return false;
}

static void keep(hl_ledger *ledger, hl_snapshot *stretch, hl_snapshot **earlier_peak)
{
    if (!is_higher(stretch->bytes, *earlier_peak))
        return;
    if (*earlier_peak != NULL)
        hl_snapshot_drop_later(*earlier_peak, &ledger->dropped);
    *earlier_peak = hl_snapshot_hold(stretch);
}

static void forget(hl_ledger *ledger, hl_snapshot **earlier_peak)
{
    if (*earlier_peak != NULL)
        hl_snapshot_drop_later(*earlier_peak, &ledger->dropped);
    *earlier_peak = NULL;
}

static void end_stretch(hl_ledger *ledger, hl_snapshot *stretch)
{
    if (stretch != NULL) {
        keep(ledger, stretch, &ledger->earlier_peak);
        for (hl_window *window = ledger->windows; window != NULL; window = window->next)
            keep(ledger, stretch, &window->earlier_peak);
    }
    hl_ledger_reset_peak(ledger);
}

hl_status hl_window_reset_peak(hl_ledger *ledger, hl_snapshot *stretch, size_t room)
{
    if (stretch == NULL && hl_window_keeps_stretch(ledger, true))
        return HL_FULL;
    if (stretch != NULL) {
        hl_status status = hl_ledger_fill_stretch(ledger, stretch, room);
        if (status != HL_OK)
            return status;
    }
    end_stretch(ledger, stretch);
    forget(ledger, &ledger->earlier_peak);
    return HL_OK;
}

/* Windows. */

static void count_sites(const hl_sites *sites, hl_window *window)
{
    for (hl_site_id id = 1; (id = hl_table_seek(&sites->table, id)) != 0; id++) {
        const hl_site *site = hl_sites_at(sites, id);
        window->before[id] = (hl_site_counts){
            .live = hl_site_live(site), .allocated = site->allocated, .reuse_count = site->reuse_count};
    }
    window->known = sites->table.used + 1;
}

hl_status hl_window_open(hl_ledger *ledger, hl_window *window, hl_snapshot *stretch, hl_snapshot *start, size_t room)
{
    if (window->room <= ledger->sites.table.used || (stretch == NULL && hl_window_keeps_stretch(ledger, false)))
        return HL_FULL;
    hl_status status = hl_ledger_fill(ledger, HL_LIVE, start, room);
    if (status == HL_OK && stretch != NULL)
        status = hl_ledger_fill_stretch(ledger, stretch, room);
    if (status != HL_OK)
        return status;
    count_sites(&ledger->sites, window);
    end_stretch(ledger, stretch);
    window->next = ledger->windows;
    window->open = true;
    ledger->windows = window;
    hl_sites_count(&ledger->sites, true);
    return HL_OK;
}

size_t hl_window_rows(const hl_ledger *ledger, const hl_window *window)
{
    size_t rows = hl_ledger_rows(ledger);
    return window->earlier_peak != NULL && window->earlier_peak->row_count > rows ? window->earlier_peak->row_count
                                                                                  : rows;
}

hl_status hl_window_close(hl_ledger *ledger, hl_window *window, const hl_window_answers *answers, size_t room)
{
    if (!window->open)
        return HL_STOPPED;
    hl_status status = is_higher(ledger->peak, window->earlier_peak)
                           ? hl_ledger_fill_stretch(ledger, answers->peak, room)
                           : hl_ledger_fill_again(ledger, window->earlier_peak, answers->peak, room);
    if (status == HL_OK)
        status = hl_ledger_fill_growth(ledger, HL_ALLOCATED, window->before, window->known, answers->allocated, room);
    if (status == HL_OK)
        status = hl_ledger_fill_growth(ledger, HL_LIVE, window->before, window->known, answers->growth, room);
    if (status == HL_OK)
        hl_window_discard(ledger, window);
    return status;
}

void hl_window_discard(hl_ledger *ledger, hl_window *window)
{
    hl_window **at = &ledger->windows;
    if (!window->open)
        return;
    while (*at != window)
        at = &(*at)->next;
    *at = window->next;
    window->open = false;
    forget(ledger, &window->earlier_peak);
    if (ledger->windows == NULL)
        hl_sites_count(&ledger->sites, false);
}

void hl_window_discard_all(hl_ledger *ledger)
{
    while (ledger->windows != NULL)
        hl_window_discard(ledger, ledger->windows);
}

void hl_window_move_all(hl_ledger *ledger, hl_ledger *fresh)
{
    fresh->windows = ledger->windows;
    ledger->windows = NULL;
    if (fresh->windows != NULL)
        hl_sites_count(&fresh->sites, true);
    hl_window_restart_all(fresh);
}

void hl_window_restart_all(hl_ledger *ledger)
{
    for (hl_window *window = ledger->windows; window != NULL; window = window->next) {
        forget(ledger, &window->earlier_peak);
        window->known = 0;
    }
}
