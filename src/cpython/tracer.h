/* tracer.h: the process's one tracer, as the binding sees it.
 *
 * There is one ledger per process, for any number of interpreters, because allocators are process-wide too. The tracer
 * owns the ledger and the hooks that fill it.
 *
 * Threading: any thread may call hl_tracer_start_before_main, hl_tracer_visit, and the functions that return one number
 * (hl_tracer_is_tracing and similar ones). All other functions need an attached thread state (the GIL of some
 * interpreter). Nothing here creates a Python object that stays, or sets a Python exception.
 */
#ifndef HL_TRACER_H
#define HL_TRACER_H

#include "../core/window.h"

/* The maximum number of frames in a traceback, as in the standard library. */
#define HL_MOST_FRAMES 65535

typedef struct {
    uint32_t nframe; /* the maximum number of frames in a traceback: 1 to HL_MOST_FRAMES */
    bool numbers;    /* numbers get their own lines, too: see freelists.h */
} hl_tracer_options;

/* Start. If the tracer is running already, this only makes sure that the hooks are still installed
 * (hl_tracer_see_to_hooks). */
hl_status hl_tracer_start(hl_tracer_options options) HL_MUST_USE;
/* Start before the interpreter has started, without a thread state. hl_tracer_adopt does later what needs a thread
 * state. Call it during the interpreter's start, as soon as there is a thread state. At any other time it does nothing.
 * If the interpreter has replaced the allocators meanwhile (PYTHONMALLOC, -X dev), tracing starts again there. */
hl_status hl_tracer_start_before_main(hl_tracer_options options) HL_MUST_USE;
void hl_tracer_adopt(void);
/* Stop and forget every entry. Does nothing when stopped. Snapshots stay valid. */
void hl_tracer_stop(void);
bool hl_tracer_is_tracing(void);
/* The frame limit of the last start that took effect. 1 before the first start. */
uint32_t hl_tracer_nframe(void);

/* Forget every entry and the peak. The frame limit and the hooks stay. On failure, nothing has changed. */
hl_status hl_tracer_clear(void) HL_MUST_USE;
/* Set the program's peak to what is traced now. On failure, nothing has changed. */
hl_status hl_tracer_reset_peak(void) HL_MUST_USE;
/* Bytes traced now and at the peak. Zeros when stopped. This function makes sure that the hooks are installed. So do
 * the functions for snapshots and single blocks. */
void hl_tracer_traced(uint64_t *current, uint64_t *peak);
/* All bytes and blocks allocated since start or clear, freed or not. Zeros when stopped. */
void hl_tracer_allocated(uint64_t *bytes, uint64_t *blocks);
/* The number of allocations since the last start that could not be entered. It survives stop. */
uint64_t hl_tracer_lost(void);

typedef struct {
    size_t map;       /* address -> site */
    size_t sites;     /* sites and their index */
    size_t names;     /* strings, locations, stacks */
    size_t caches;    /* instruction pointers -> sites, code objects */
    size_t snapshots; /* rows of all snapshots in the process, also of loaded ones */
} hl_tracer_bytes;
static inline uint64_t hl_tracer_bytes_total(const hl_tracer_bytes *bytes)
{
    return (uint64_t)bytes->map + bytes->sites + bytes->names + bytes->caches + bytes->snapshots;
}
/* Memory obtained from the system, by use. When stopped, all are zero except `snapshots`. */
void hl_tracer_memory(hl_tracer_bytes *bytes);

/* Make sure that the hooks are still installed, as hl_tracer_start does. If another tool has removed them, forget all
 * entries and count them as lost, because some of their blocks may have been freed unseen. `in_time`: the caller knows
 * that no block was. HL_STOPPED when not tracing. */
hl_status hl_tracer_see_to_hooks(bool in_time);

/* The tracer's totals, beside the counts of a snapshot. They are read while the same lock is held as for the counts, so
 * both describe the same instant. */
typedef struct {
    uint64_t traced, peak, lost;
    uint32_t interruptions; /* how often hl_tracer_see_to_hooks had to forget entries since the last start */
    bool numbers;           /* as in the options of the last start */
    hl_tracer_bytes memory;
} hl_tracer_totals;

/* A snapshot of the ledger at `moment`. The peak is the highest traced memory since start, clear or reset_peak.
 * HL_STOPPED when not tracing. */
hl_status hl_tracer_snapshot(hl_moment moment, hl_snapshot **snapshot) HL_MUST_USE;
/* Windows (core/window.h). If the tracer is not running, the first window starts it, with tracebacks of `nframe`
 * frames. Then it stops when the last window is closed and freed, unless hl_tracer_start was called meanwhile. *start
 * is what is alive when the window opens. */
hl_status hl_tracer_open_window(uint32_t nframe, hl_window **window, hl_snapshot **start,
                                hl_tracer_totals *totals) HL_MUST_USE;
/* totals->peak is the window's peak. HL_STOPPED: the tracer was stopped in between, and there are no answers. */
hl_status hl_tracer_close_window(hl_window *window, hl_window_answers *answers, hl_tracer_totals *totals) HL_MUST_USE;
/* Call this for every window in the end, closed or not. Stops the tracer if no other window is open and only windows
 * needed it. */
void hl_tracer_free_window(hl_window *window);
/* Snapshots of several moments of the ledger, all taken at one instant. At most HL_MOMENTS. */
hl_status hl_tracer_capture(const hl_moment *moments, size_t count, hl_snapshot **snapshots,
                            hl_tracer_totals *totals) HL_MUST_USE;
/* Call `visitor` with the ledger and the totals, while the ledger's lock is held. Returns what the visitor returns, or
 * HL_STOPPED. Needs no thread state. In a signal handler, it returns HL_BUSY if the ledger is in use, because the
 * interrupted thread may be the one that uses it. */
typedef hl_status hl_tracer_visitor(hl_ledger *ledger, const hl_tracer_totals *totals, void *context);
hl_status hl_tracer_visit(bool in_signal_handler, hl_tracer_visitor *visitor, void *context) HL_MUST_USE;
/* A snapshot of the one block at `address` under `domain`. *snapshot is NULL if the block is not in the ledger, or when
 * not tracing. */
hl_status hl_tracer_find(uintptr_t address, uint32_t domain, hl_snapshot **snapshot) HL_MUST_USE;
/* Check the ledger's invariants. Returns NULL if they hold, else a static sentence that says which one does not. */
const char *hl_tracer_validate(void);

/* Between begin and end, allocations that the calling thread makes in its current frame are the tracer's own work and
 * count nowhere. The binding brackets its functions with these calls, so that measuring does not disturb what is
 * measured. Python code that runs meanwhile (a finalizer, a callback) has its own frame, and we enter its blocks as
 * usual. Brackets nest. They may also end in another order than they began, because greenlets leave a function in the
 * middle and continue in another. */
typedef struct {
    uint64_t id; /* of the bracket, unique in the process */
} hl_own_work;
void hl_tracer_begin_own_work(hl_own_work *work);
void hl_tracer_end_own_work(const hl_own_work *work);

/* The address of the block that holds `object` (a PyObject *). Before the object, the block holds the collector's head
 * and, for some types, pointers to the object's dict and weak references. */
uintptr_t hl_tracer_block_of(const void *object);

#endif
