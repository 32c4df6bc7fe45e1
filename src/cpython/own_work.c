/* own_work.c: the brackets around our own work. See tracer.h.
 *
 * The process has a table of all open brackets and the threads they belong to. The hooks compare with the frame of a
 * thread's newest bracket. A bracket keeps its own id, not the frame that was set before it, because greenlets close
 * brackets out of order. If the table is full, which takes 64 open brackets, a new bracket still works as long as no
 * other bracket of its thread closes before it.
 *
 * The table is not thread-local, because the C library has little room for thread-local variables (docs/platforms.md).
 *
 * Threading: an entry belongs to the thread that has put itself there. Any thread may free it.
 */

#include "hooks.h"
#include "tracer.h"

enum { PLACES = 64 };

static struct {
    _Atomic uintptr_t owner; /* a thread, by the address of its own variable; 0: free */
    const void *frame;
    _Atomic uint64_t id; /* 0: no bracket */
} open[PLACES];

static uintptr_t this_thread(void)
{
    return (uintptr_t)&hl_this_thread;
}

static bool is_mine(int place)
{
    return atomic_load_explicit(&open[place].owner, memory_order_relaxed) == this_thread();
}

void hl_tracer_begin_own_work(hl_own_work *work)
{
    static _Atomic uint64_t last_id;
    PyThreadState *thread;
    (void)hl_frames_here(true, &thread);
    const void *frame = thread == NULL ? NULL : hl_frames_current(thread);
    work->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
    for (int place = 0; place < PLACES; place++) {
        uintptr_t nobody = 0;
        if (atomic_compare_exchange_strong(&open[place].owner, &nobody, this_thread())) {
            open[place].frame = frame;
            open[place].id = work->id;
            break;
        }
    }
    hl_this_thread_set_own_frame(frame);
}

void hl_tracer_end_own_work(const hl_own_work *work)
{
    uint64_t newest = 0;
    const void *frame = NULL;
    for (int place = 0; place < PLACES; place++) {
        if (open[place].id == work->id) { /* it may belong to another thread: a coroutine may continue in this one */
            open[place].id = 0;
            atomic_store(&open[place].owner, 0);
        } else if (is_mine(place) && open[place].id > newest) {
            newest = open[place].id;
            frame = open[place].frame;
        }
    }
    hl_this_thread_set_own_frame(frame);
}
