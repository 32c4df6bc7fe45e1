/* tracer.h: the process's one tracer, as the binding sees it.
 *
 * There is one ledger a process, whatever the number of interpreters: allocators are process-wide too. The tracer owns
 * it and the hooks that feed it.
 *
 * Threading: hl_tracer_start_before_main, hl_tracer_visit and questions that are answered by one number
 * (hl_tracer_is_tracing and the like) may be called from any thread; the rest needs an attached thread state (the GIL
 * of some interpreter). Nothing here creates a Python object that stays or sets a Python exception.
 */
#ifndef HL_TRACER_H
#define HL_TRACER_H

#include "../core/window.h"

/* Most frames a traceback may keep, as in the stdlib. */
#define HL_MOST_FRAMES 65535

typedef struct {
    uint32_t nframe; /* tracebacks have at most so many frames: 1 to HL_MOST_FRAMES */
    bool numbers;    /* numbers get their own lines, too: see freelists.h */
} hl_tracer_options;

/* Start. While tracing, it only sees to it that the hooks are still there (hl_tracer_see_to_hooks). */
hl_status hl_tracer_start(hl_tracer_options options) HL_MUST_USE;
/* The same before the interpreter has started; no thread state. What needs one is made up for by hl_tracer_adopt, which
 * the interpreter's start must call as soon as there is one, and which is a no-op at any other time. If the interpreter
 * has replaced the allocators meanwhile (PYTHONMALLOC, -X dev), tracing begins anew there. */
hl_status hl_tracer_start_before_main(hl_tracer_options options) HL_MUST_USE;
void hl_tracer_adopt(void);
/* Stop and forget every entry; no-op when stopped. Snapshots stay valid. */
void hl_tracer_stop(void);
bool hl_tracer_is_tracing(void);
/* The frames of the last start that took effect; 1 before the first. */
uint32_t hl_tracer_nframe(void);

/* Forget every entry and the peak; the frame limit and the hooks stay. On failure nothing has changed. */
hl_status hl_tracer_clear(void) HL_MUST_USE;
/* The program's peak is what is traced now. On failure nothing has changed. */
hl_status hl_tracer_reset_peak(void) HL_MUST_USE;
/* Bytes traced now and at the peak; zeros when stopped. Sees to the hooks, as do those for snapshots and single
 * blocks. */
void hl_tracer_traced(uint64_t *current, uint64_t *peak);
/* What was allocated since start or clear, freed or not; zeros when stopped. */
void hl_tracer_allocated(uint64_t *bytes, uint64_t *blocks);
/* Allocations that could not be entered since the last start. Survives stop. */
uint64_t hl_tracer_lost(void);

typedef struct {
    size_t map;       /* address -> site */
    size_t sites;     /* sites and their index */
    size_t names;     /* strings, locations, stacks */
    size_t caches;    /* instruction pointers -> sites, code objects */
    size_t snapshots; /* rows of all snapshots alive in the process, loaded ones included */
} hl_tracer_bytes;
static inline uint64_t hl_tracer_bytes_total(const hl_tracer_bytes *bytes)
{
    return (uint64_t)bytes->map + bytes->sites + bytes->names + bytes->caches + bytes->snapshots;
}
/* Memory obtained from the system, by use. Zeros but for `snapshots` when stopped. */
void hl_tracer_memory(hl_tracer_bytes *bytes);

/* See to it that the hooks are still there, as hl_tracer_start does. If another tool had taken them off, all entries
 * are forgotten and count as lost: some of their blocks may have been freed unseen. `in_time`: the caller knows that
 * nothing was. HL_STOPPED when not tracing. */
hl_status hl_tracer_see_to_hooks(bool in_time);

/* What there is to say of the tracer beside the counts of a snapshot. It is found out in the same passage through the
 * gate as the counts, so both are of one instant. */
typedef struct {
    uint64_t traced, peak, lost;
    uint32_t interruptions; /* how often hl_tracer_see_to_hooks had to forget entries, since the last start */
    bool numbers;           /* as in the options of the last start */
    hl_tracer_bytes memory;
} hl_tracer_totals;

/* The ledger at the moment asked for; the peak is the greatest traced memory since start, clear or reset_peak.
 * HL_STOPPED when not tracing. */
hl_status hl_tracer_snapshot(hl_moment moment, hl_snapshot **snapshot) HL_MUST_USE;
/* Windows (core/window.h). The first starts the tracer, with tracebacks of `nframe` frames, where it is not running;
 * then the last to close stops it, unless hl_tracer_start was called meanwhile. *start is what is alive at the
 * opening. */
hl_status hl_tracer_open_window(uint32_t nframe, hl_window **window, hl_snapshot **start,
                                hl_tracer_totals *totals) HL_MUST_USE;
/* The peak among the facts is the window's. HL_STOPPED: the tracer was stopped since, and there are no answers. */
hl_status hl_tracer_close_window(hl_window *window, hl_window_answers *answers, hl_tracer_totals *totals) HL_MUST_USE;
/* For every window in the end, closed or not; stops the tracer where nobody else has asked for it. */
void hl_tracer_free_window(hl_window *window);
/* Several moments of the ledger, as it is at one instant: at most HL_MOMENTS of them. */
hl_status hl_tracer_capture(const hl_moment *moments, size_t count, hl_snapshot **snapshots,
                            hl_tracer_totals *totals) HL_MUST_USE;
/* Call `visitor` with the ledger and what there is to say of it, while its lock is held; answers what the visitor does,
 * or HL_STOPPED. Needs no thread state. In a signal handler it is HL_BUSY if the ledger is in use: the interrupted
 * thread may be the one that uses it. */
typedef hl_status hl_tracer_visitor(hl_ledger *ledger, const hl_tracer_totals *totals, void *context);
hl_status hl_tracer_visit(bool in_signal_handler, hl_tracer_visitor *visitor, void *context) HL_MUST_USE;
/* A snapshot of the one block at `address` under `domain`: *snapshot is NULL when it is not entered (or not
 * tracing). */
hl_status hl_tracer_find(uintptr_t address, uint32_t domain, hl_snapshot **snapshot) HL_MUST_USE;
/* Check the ledger's invariants; NULL when they hold, else a static sentence saying which does not. */
const char *hl_tracer_validate(void);

/* Allocations made by the calling thread while it is in the frame that is current now are the tracer's own work and
 * count nowhere: the binding brackets its functions with these, so that measuring does not disturb what is measured.
 * Python code that runs meanwhile (a finalizer, a callback) has a frame of its own and is entered as usual. Brackets
 * nest, and they may also end in another order than they began: greenlets leave one function in the middle to go on in
 * another. */
typedef struct {
    uint64_t id; /* of the bracket: no other bracket of the process has the same */
} hl_own_work;
void hl_tracer_begin_own_work(hl_own_work *work);
void hl_tracer_end_own_work(const hl_own_work *work);

/* The address of the block that holds `object` (a PyObject *): before it lie the collector's head and, for some types,
 * pointers to its dict and weak references. */
uintptr_t hl_tracer_block_of(const void *object);

#endif
