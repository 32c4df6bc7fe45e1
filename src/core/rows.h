/* rows.h: rows that are read one after the other, from a snapshot or directly from a ledger. The rows of a ledger are
 * those that a snapshot of it would have. They are made while they are read, so a process can write its ledger to a
 * file without a copy of it.
 *
 * Threading: as for the source of the rows. A snapshot is immutable; a ledger must be locked until its rows have been
 * read.
 */
#ifndef HL_ROWS_H
#define HL_ROWS_H

#include "ledger.h"

typedef struct {
    const hl_names *names;
    hl_moment moment;
    uint32_t nframe;
    const hl_origins *origins;
    const hl_snapshot *snapshot; /* NULL: the rows are those of the ledger */
    const hl_ledger *ledger;
} hl_rows;

hl_rows hl_rows_of_snapshot(const hl_snapshot *snapshot);
/* For HL_PEAK, the rows are those of the program's peak. */
hl_rows hl_rows_of_ledger(const hl_ledger *ledger, hl_moment moment);
/* The next row. Returns false at the end. *at is 0 before the first row. */
bool hl_rows_next(const hl_rows *rows, size_t *at, hl_row *row);

#endif
