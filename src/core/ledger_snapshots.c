/* ledger_snapshots.c: snapshots of the ledger at its moments. See ledger.h. */

#include "ledger.h"

#include <string.h>

/* A stretch that only reaches the old peak again does not move it. The earlier stretch has precedence. */
static bool peak_was_earlier(const hl_ledger *ledger)
{
    return ledger->earlier_peak != NULL && ledger->earlier_peak->bytes >= ledger->peak;
}

uint64_t hl_ledger_peak(const hl_ledger *ledger)
{
    return peak_was_earlier(ledger) ? ledger->earlier_peak->bytes : ledger->peak;
}

const hl_snapshot *hl_ledger_kept_peak(const hl_ledger *ledger)
{
    return peak_was_earlier(ledger) ? ledger->earlier_peak : NULL;
}

uint64_t hl_ledger_live_blocks(const hl_ledger *ledger)
{
    uint64_t blocks = 0;
    for (hl_site_id id = 1; id <= ledger->sites.table.used; id++) {
        const hl_site *site = hl_sites_at(&ledger->sites, id);
        if (hl_site_is_shown(site))
            blocks += hl_site_live(site);
    }
    return blocks;
}

void hl_ledger_allocated(const hl_ledger *ledger, uint64_t *bytes, uint64_t *blocks)
{
    *bytes = ledger->sites.retired_bytes;
    *blocks = ledger->sites.retired_blocks;
    for (hl_site_id id = 1; (id = hl_table_seek(&ledger->sites.table, id)) != 0; id++) {
        const hl_site *site = hl_sites_at(&ledger->sites, id);
        if (!hl_site_is_shown(site))
            continue;
        *bytes += site->allocated * site->size;
        *blocks += site->allocated;
    }
}

size_t hl_ledger_rows(const hl_ledger *ledger)
{
    size_t rows = ledger->sites.table.count;
    return ledger->earlier_peak != NULL && ledger->earlier_peak->row_count > rows ? ledger->earlier_peak->row_count
                                                                                  : rows;
}

static hl_row row_of(const hl_site *site, uint64_t live)
{
    return (hl_row){.size = site->size,
                    .live = live,
                    .allocated = site->allocated,
                    .origin = site->origin,
                    .stack = site->stack,
                    .domain = site->domain};
}

static uint64_t count_at(const hl_site *site, hl_moment moment, uint64_t peak_epoch)
{
    switch (moment) {
    case HL_PEAK:
        return hl_site_at_peak(site, peak_epoch);
    case HL_ALLOCATED:
        return site->allocated;
    case HL_LIVE:
    case HL_MOMENTS:
        break;
    }
    return hl_site_live(site);
}

static void describe(const hl_ledger *ledger, hl_moment moment, hl_snapshot *snapshot)
{
    snapshot->moment = moment;
    snapshot->nframe = ledger->nframe;
    snapshot->origins = ledger->origins;
}

static inline bool next_row(const hl_ledger *ledger, hl_moment moment, size_t *at, hl_row *row)
{
    for (hl_site_id id = (hl_site_id)*at + 1; (id = hl_table_seek(&ledger->sites.table, id)) != 0; id++) {
        const hl_site *site = hl_sites_at(&ledger->sites, id);
        uint64_t count = hl_site_is_shown(site) ? count_at(site, moment, ledger->peak_epoch) : 0;
        if (count == 0)
            continue;
        *at = id;
        *row = row_of(site, count);
        return true;
    }
    return false;
}

bool hl_ledger_next_row(const hl_ledger *ledger, hl_moment moment, size_t *at, hl_row *row)
{
    return next_row(ledger, moment, at, row);
}

static void copy_sites(const hl_ledger *ledger, hl_moment moment, hl_snapshot *snapshot)
{
    size_t rows = 0, at = 0;
    uint64_t blocks = 0, bytes = 0;
    for (hl_row row; next_row(ledger, moment, &at, &row);) {
        snapshot->rows[rows++] = row;
        blocks += row.live;
        bytes += row.live * row.size;
    }
    hl_snapshot_seal_summed(snapshot, rows, blocks, bytes);
}

static void copy_snapshot(const hl_snapshot *from, hl_snapshot *snapshot)
{
    snapshot->moment = from->moment;
    snapshot->nframe = from->nframe;
    snapshot->origins = from->origins;
    if (from->row_count > 0)
        memcpy(snapshot->rows, from->rows, from->row_count * sizeof *from->rows);
    hl_snapshot_seal_summed(snapshot, from->row_count, from->blocks, from->bytes);
}

static hl_status begin_filling(hl_ledger *ledger, hl_moment moment, hl_snapshot *snapshot, size_t room)
{
    if (room < hl_ledger_rows(ledger))
        return HL_FULL;
    snapshot->pin = hl_names_pin(ledger->names);
    if (snapshot->pin == 0)
        return HL_NO_MEMORY;
    describe(ledger, moment, snapshot);
    return HL_OK;
}

static hl_status fill(hl_ledger *ledger, hl_moment moment, hl_snapshot *snapshot, size_t room)
{
    hl_status status = begin_filling(ledger, moment, snapshot, room);
    if (status == HL_OK)
        copy_sites(ledger, moment, snapshot);
    return status;
}

hl_status hl_ledger_fill(hl_ledger *ledger, hl_moment moment, hl_snapshot *snapshot, size_t room)
{
    if (moment == HL_PEAK && peak_was_earlier(ledger))
        return hl_ledger_fill_again(ledger, ledger->earlier_peak, snapshot, room);
    return fill(ledger, moment, snapshot, room);
}

hl_status hl_ledger_fill_stretch(hl_ledger *ledger, hl_snapshot *snapshot, size_t room)
{
    return fill(ledger, HL_PEAK, snapshot, room);
}

hl_status hl_ledger_fill_again(hl_ledger *ledger, const hl_snapshot *from, hl_snapshot *snapshot, size_t room)
{
    if (room < from->row_count)
        return HL_FULL;
    hl_names_pin_again(ledger->names, from->pin);
    snapshot->pin = from->pin;
    copy_snapshot(from, snapshot);
    return HL_OK;
}

hl_status hl_ledger_fill_growth(hl_ledger *ledger, hl_moment moment, const hl_site_counts *before, hl_site_id known,
                                hl_snapshot *snapshot, size_t room)
{
    hl_status status = begin_filling(ledger, moment, snapshot, room);
    if (status != HL_OK)
        return status;
    size_t rows = 0;
    for (hl_site_id id = 1; (id = hl_table_seek(&ledger->sites.table, id)) != 0; id++) {
        const hl_site *site = hl_sites_at(&ledger->sites, id);
        if (!hl_site_is_shown(site))
            continue;
        bool is_known = id < known && before[id].reuse_count == site->reuse_count;
        uint64_t had = !is_known ? 0 : moment == HL_LIVE ? before[id].live : before[id].allocated;
        uint64_t has = count_at(site, moment, ledger->peak_epoch);
        if (has <= had)
            continue;
        snapshot->rows[rows] = row_of(site, has - had);
        snapshot->rows[rows++].allocated -= is_known ? before[id].allocated : 0;
    }
    hl_snapshot_seal(snapshot, rows);
    return HL_OK;
}

hl_status hl_ledger_fill_one(hl_ledger *ledger, hl_site_id site, hl_snapshot *snapshot)
{
    snapshot->pin = hl_names_pin(ledger->names);
    if (snapshot->pin == 0)
        return HL_NO_MEMORY;
    snapshot->nframe = ledger->nframe;
    snapshot->origins = ledger->origins;
    snapshot->rows[0] = row_of(hl_sites_at(&ledger->sites, site), 1);
    hl_snapshot_seal(snapshot, 1);
    return HL_OK;
}
