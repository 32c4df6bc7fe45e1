/* rows.c: see rows.h. */

#include "rows.h"

hl_rows hl_rows_of_snapshot(const hl_snapshot *snapshot)
{
    return (hl_rows){.names = snapshot->names,
                     .moment = snapshot->moment,
                     .nframe = snapshot->nframe,
                     .origins = &snapshot->origins,
                     .snapshot = snapshot};
}

hl_rows hl_rows_of_ledger(const hl_ledger *ledger, hl_moment moment)
{
    const hl_snapshot *kept = moment == HL_PEAK ? hl_ledger_kept_peak(ledger) : NULL;
    if (kept != NULL)
        return hl_rows_of_snapshot(kept);
    return (hl_rows){.names = ledger->names,
                     .moment = moment,
                     .nframe = ledger->nframe,
                     .origins = &ledger->origins,
                     .ledger = ledger};
}

bool hl_rows_next(const hl_rows *rows, size_t *at, hl_row *row)
{
    if (rows->snapshot == NULL)
        return hl_ledger_next_row(rows->ledger, rows->moment, at, row);
    if (*at == rows->snapshot->row_count)
        return false;
    *row = rows->snapshot->rows[(*at)++];
    return true;
}
