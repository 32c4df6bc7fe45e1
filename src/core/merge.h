/* merge.h: the snapshots of many processes added up to one.
 *
 * Snapshots are added one after the other and may be dropped at once: what stays is the result so far, in a private book,
 * where rows with the same stack (functions included), size and domain are one. Each add translates what the snapshot's
 * rows name into that book, each name once.
 *
 * A forked child goes on with a copy of its parent's ledger, so one block may be in many snapshots. Its row says whose
 * ledger entered it (hl_origins). For each ledger and each (stack, size, domain):
 *
 *     own        sum of what the snapshots of that ledger itself hold (two of the same process count twice)
 *     inherited  the most that any one snapshot of a descendant holds of it
 *
 * and max(own, inherited) counts: as much as is certainly there. Blocks that some processes have freed and others have
 * kept may be counted too low, never twice. `live` and `allocated` are treated alike.
 *
 * For this a ledger that is inherited from is kept apart: its counts stay known for each row. Which ones are, is known
 * if all snapshots are announced beforehand. Otherwise a ledger is kept apart if it says that it has forked, or if a
 * snapshot that was added earlier inherited from it; in a snapshot that was taken before the first fork and is added
 * before the children's, nothing shows that it will be inherited from, and its blocks count twice.
 *
 * The result has no origins: merge everything in one go, not in stages.
 *
 * Memory: the result, plus a claim for every row of a ledger that is kept apart, plus one snapshot's translation during
 * an add.
 *
 * Threading: a merge belongs to one thread at a time; snapshots that are added are only read.
 */
#ifndef HL_MERGE_H
#define HL_MERGE_H

#include "snapshot.h"

typedef struct hl_merge hl_merge;

/* `beside`, unless NULL: a merge that has not been finished, whose book the new one shares. */
hl_status hl_merge_open(hl_merge *beside, hl_merge **merge) HL_MUST_USE;
void hl_merge_close(hl_merge *merge);
/* For names of snapshots that are made to be added: adding them then enters nothing twice. */
hl_book *hl_merge_book(const hl_merge *merge);
/* `snapshot` is going to be added. All or none, and all before the first is added. */
hl_status hl_merge_announce(hl_merge *merge, const hl_snapshot *snapshot) HL_MUST_USE;
/* The caller sees to it that all snapshots are of the same moment. After a failure (HL_NO_MEMORY, HL_FULL, or
 * HL_TOO_LARGE for a sum past 64 bits) a part has been added: the merge can only be closed. */
hl_status hl_merge_add(hl_merge *merge, const hl_snapshot *snapshot) HL_MUST_USE;
/* The sum of what was added; its frame limit is the largest. HL_TOO_LARGE when the bytes (one at least
 * for a block), counted once for every frame of their stack, exceed 63 bits: analyses could not add them up. Afterwards the merge can only be closed. */
hl_status hl_merge_finish(hl_merge *merge, hl_snapshot **snapshot) HL_MUST_USE;
/* Bytes of memory the merge has obtained, between two adds. */
size_t hl_merge_memory(const hl_merge *merge);

#endif
