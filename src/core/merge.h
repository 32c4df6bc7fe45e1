/* merge.h: the snapshots of many processes added up to one.
 *
 * Snapshots are added one after the other and may be dropped at once. What stays is the result so far, in a private
 * name table. In it, rows with the same stack (functions included), size and domain are one row. Each add translates
 * the names in the snapshot's rows into that name table, each name once.
 *
 * A forked child continues with a copy of its parent's ledger, so one block may be in many snapshots. Its row says
 * which ledger entered it (hl_origins). For each ledger and each (stack, size, domain):
 *
 *     own        the sum over the snapshots of that ledger itself (two of the same process count twice)
 *     inherited  the most that any single snapshot of a descendant holds of it
 *
 * The merge counts max(own, inherited): as much as certainly exists. If some processes have freed blocks that others
 * have kept, the count may be too low. No block counts twice. `live` and `allocated` are treated alike.
 *
 * For this, a ledger that others inherited from is kept apart: its counts stay known for each row. If all snapshots
 * are announced beforehand, the merge knows these ledgers. Otherwise it keeps a ledger apart if the ledger says that
 * it has forked, or if a snapshot that was added earlier inherited from it. Nothing shows this in a snapshot that was
 * taken before the first fork and is added before the children's. Its blocks count twice.
 *
 * The result has no origins: merge everything in one go, not in stages.
 *
 * Memory: the result, plus a claim for every row of a ledger that is kept apart, plus one snapshot's translation
 * during an add.
 *
 * Threading: a merge belongs to one thread at a time. Snapshots that are added are only read.
 */
#ifndef HL_MERGE_H
#define HL_MERGE_H

#include "snapshot.h"

typedef struct hl_merge hl_merge;

/* `beside`, unless NULL: an unfinished merge whose name table the new one shares. */
hl_status hl_merge_open(hl_merge *beside, hl_merge **merge) HL_MUST_USE;
void hl_merge_close(hl_merge *merge);
/* The name table of the merge. Snapshots that are made to be added can use it for their names: then no name is entered
 * twice. */
hl_names *hl_merge_names(const hl_merge *merge);
/* `snapshot` is going to be added. Announce all or none, and all before the first is added. */
hl_status hl_merge_announce(hl_merge *merge, const hl_snapshot *snapshot) HL_MUST_USE;
/* The caller makes sure that all snapshots are of the same moment. After a failure (HL_NO_MEMORY, HL_FULL, or
 * HL_TOO_LARGE for a sum that exceeds 64 bits) only a part has been added: the merge can only be closed. */
hl_status hl_merge_add(hl_merge *merge, const hl_snapshot *snapshot) HL_MUST_USE;
/* The sum of what was added. Its frame limit is the largest one. HL_TOO_LARGE when the bytes (at least one for a
 * block), counted once for every frame of their stack, exceed 63 bits: analyses could not add them up. Afterwards the
 * merge can only be closed. */
hl_status hl_merge_finish(hl_merge *merge, hl_snapshot **snapshot) HL_MUST_USE;
/* Bytes of memory the merge has obtained, between two adds. */
size_t hl_merge_memory(const hl_merge *merge);

#endif
