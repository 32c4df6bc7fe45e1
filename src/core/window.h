/* window.h: what happened in the ledger from one moment to another: what was allocated, what stayed, and the peak.
 *
 * Any number of windows may be open, and they close in any order. For the counters of a site, it is enough to compare
 * them with their values when the window opened. The peak is harder: the ledger has one running peak, and a window
 * that opens has to restart it without taking it away from others. So time is cut into stretches, at each opening and
 * at each reset of the program's peak. When a stretch ends, the ledger at the stretch's peak becomes a snapshot for
 * everyone whose highest moment it has been so far: the open windows, and the program, whose peak reaches back to its
 * last reset. A window's peak is then the higher of two: the snapshot that was kept for it and the peak of the
 * running stretch. If both are equal, it is the earlier one.
 *
 *     program   |-----------------------------------------
 *     window a         |----------------------------
 *     window b                  |-------|
 *     stretches |   1  |    2   |            3
 *
 * A stretch is copied only if it is the highest for somebody: O(sites) when a window opens, and when it closes.
 *
 * While a window is open, dead sites are reclaimed later than usual (HL_FEW_COUNTED_SITES), because the window's
 * allocations lack the counts of a reclaimed site.
 *
 * Invariants: every window in the ledger's list is open, and its snapshot names the ledger's name table.
 *
 * Threading: the ledger's lock, for all functions except hl_window_new and hl_window_free.
 */
#ifndef HL_WINDOW_H
#define HL_WINDOW_H

#include "ledger.h"

struct hl_window {
    hl_window *next;           /* in the ledger's list */
    hl_snapshot *earlier_peak; /* the highest moment of the stretches before the running one; NULL: there is none */
    hl_site_counts *before;    /* by site id: the counts when the window opened */
    hl_site_id known;          /* ids below this one have such counts */
    hl_site_id room;           /* for counts */
    bool open;
};

/* A window with room for the counts of the ids below `room`. */
hl_status hl_window_new(hl_site_id room, hl_window **window) HL_MUST_USE;
/* For a window that is not open. */
void hl_window_free(hl_window *window);

/* Whether the running stretch, if it ends now, is the highest for anybody. `resets`: the program's peak is being
 * reset, so the program does not count. */
bool hl_window_keeps_stretch(const hl_ledger *ledger, bool resets);
/* Open: take the counts and begin a new stretch. `stretch`: a snapshot with room for all sites, for the peak of the
 * stretch that ends; NULL unless hl_window_keeps_stretch. `start` becomes what is alive now. HL_FULL if a snapshot or
 * the window has too little room; then nothing has changed. */
hl_status hl_window_open(hl_ledger *ledger, hl_window *window, hl_snapshot *stretch, hl_snapshot *start,
                         size_t room) HL_MUST_USE;
/* Set the program's peak to what is traced now. The windows keep theirs. `stretch` as above. */
hl_status hl_window_reset_peak(hl_ledger *ledger, hl_snapshot *stretch, size_t room) HL_MUST_USE;

/* Close, with three results in snapshots with room for all sites: the ledger at its highest moment since the window
 * opened; what was allocated since; and the growth of the sites that have more live blocks than before. HL_FULL: the
 * window is still open. HL_STOPPED: it was already closed. */
typedef struct {
    hl_snapshot *peak;
    hl_snapshot *allocated;
    hl_snapshot *growth;
} hl_window_answers;
hl_status hl_window_close(hl_ledger *ledger, hl_window *window, const hl_window_answers *answers,
                          size_t room) HL_MUST_USE;
/* How many rows the snapshots of hl_window_close need. */
size_t hl_window_rows(const hl_ledger *ledger, const hl_window *window);
/* Close without results; no-op for a window that is not open. */
void hl_window_discard(hl_ledger *ledger, hl_window *window);

/* The ledger ends, and its windows end with it. */
void hl_window_discard_all(hl_ledger *ledger);
/* All entries of the ledger are forgotten. Its windows continue as if they had just opened. */
void hl_window_restart_all(hl_ledger *ledger);
/* The same when `fresh` replaces the ledger. */
void hl_window_move_all(hl_ledger *ledger, hl_ledger *fresh);

#endif
