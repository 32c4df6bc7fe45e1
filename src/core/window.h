/* window.h: what happened in the ledger from one moment to another: what was allocated, what stayed, and the peak.
 *
 * Any number of windows may be open, and they close in any order. The counters of a site only have to be compared with
 * what they were when the window opened. The peak takes more: the ledger has one running peak, and a window that opens
 * has to start it anew without taking it from others. So time is cut into stretches, at each opening and each reset of
 * the program's peak. When a stretch ends, the ledger as it was at the stretch's peak goes as a snapshot to everyone whose
 * highest moment it has been so far: the windows that were open, and the program, whose peak reaches back to its last
 * reset. A window's peak is then the highest of what was kept for it and the peak of the running stretch; of equal
 * ones the earliest, as ever.
 *
 *     program   |-----------------------------------------
 *     window a         |----------------------------
 *     window b                  |-------|
 *     stretches |   1  |    2   |            3
 *
 * A stretch is copied only if it is the highest for somebody: O(sites) when a window opens, and when it closes.
 *
 * While a window is open, dead sites are reclaimed later than usual (HL_FEW_COUNTED_SITES), because what a reclaimed site
 * had counted is missing from the window's allocations.
 *
 * Invariants: every window in the ledger's list is open, and its snapshot names the ledger's book.
 *
 * Threading: the ledger's lock, for all functions but hl_window_new and hl_window_free.
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

/* Is the running stretch, if it ends now, the highest for anybody? `resets` says that it is not for the program. */
bool hl_window_keeps_stretch(const hl_ledger *ledger, bool resets);
/* Open: the counts are taken, and a new stretch begins. `stretch`: a snapshot with room for all sites, for the peak of
 * the stretch that ends; NULL unless hl_window_keeps_stretch. `start` becomes what is alive now. HL_FULL if some room does
 * not suffice; then nothing has changed. */
hl_status hl_window_open(hl_ledger *ledger, hl_window *window, hl_snapshot *stretch, hl_snapshot *start,
                         size_t room) HL_MUST_USE;
/* The program's peak is what is traced now; the windows keep theirs. `stretch` as above. */
hl_status hl_window_reset_peak(hl_ledger *ledger, hl_snapshot *stretch, size_t room) HL_MUST_USE;

/* Close, with the three answers in snapshots with room for all sites: the ledger at its highest moment since the window
 * opened; what was allocated since; and by how much the sites have grown that have more blocks alive than they had.
 * HL_FULL: the window is still open. HL_STOPPED: it was not any more. */
typedef struct {
    hl_snapshot *peak;
    hl_snapshot *allocated;
    hl_snapshot *growth;
} hl_window_answers;
hl_status hl_window_close(hl_ledger *ledger, hl_window *window, const hl_window_answers *answers,
                          size_t room) HL_MUST_USE;
/* Rows that the snapshots of hl_window_close need. */
size_t hl_window_rows(const hl_ledger *ledger, const hl_window *window);
/* Close without answers; no-op for a window that is not open. */
void hl_window_discard(hl_ledger *ledger, hl_window *window);

/* The ledger ends, and with it its windows. */
void hl_window_discard_all(hl_ledger *ledger);
/* All entries of the ledger are forgotten: its windows go on as if just opened. */
void hl_window_restart_all(hl_ledger *ledger);
/* The same where `fresh` takes the ledger's place. */
void hl_window_move_all(hl_ledger *ledger, hl_ledger *fresh);

#endif
