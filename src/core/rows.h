/* rows.h: rows that are read one after the other: those of a snapshot, or those that a snapshot of a ledger would have,
 * which are made while they are read. So a process can write its ledger to a file without a copy of it.
 *
 * Threading: as what they come from. A snapshot is immutable; a ledger must be locked until its rows have been read.
 */
#ifndef HL_ROWS_H
#define HL_ROWS_H

#include "ledger.h"

typedef struct {
    const hl_book *book;
    hl_moment moment;
    uint32_t nframe;
    const hl_origins *origins;
    const hl_snapshot *snapshot; /* NULL: they are the ledger's */
    const hl_ledger *ledger;
} hl_rows;

hl_rows hl_rows_of_snapshot(const hl_snapshot *snapshot);
/* The peak is the program's. */
hl_rows hl_rows_of_ledger(const hl_ledger *ledger, hl_moment moment);
/* The next row; false: there is none. *at is 0 before the first. */
bool hl_rows_next(const hl_rows *rows, size_t *at, hl_row *row);

#endif
