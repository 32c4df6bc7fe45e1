/* own_work.c: the brackets around our own work. See tracer.h.
 *
 * Each thread has a list of the brackets that it has opened and not closed, oldest first; the frame of the newest is the one
 * that the hooks compare with. A bracket knows itself by its id, not by what stood there before it, because greenlets end
 * brackets out of order. One that is never ended, because its greenlet never went on, drops out of the list as others come.
 */

#include "hooks.h"
#include "tracer.h"

enum { MOST_OPEN = 8 };

static __thread struct {
    const void *frames[MOST_OPEN];
    uint64_t ids[MOST_OPEN];
    uint32_t count;
} open;

static void close_place(uint32_t place)
{
    open.count--;
    for (; place < open.count; place++) {
        open.frames[place] = open.frames[place + 1];
        open.ids[place] = open.ids[place + 1];
    }
}

void hl_tracer_begin_own_work(hl_own_work *work)
{
    static _Atomic uint64_t last_id;
    PyThreadState *thread;
    (void)hl_frames_here(true, &thread);
    if (open.count == MOST_OPEN)
        close_place(0);
    work->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
    const void *frame = thread == NULL ? NULL : hl_frames_current(thread);
    open.frames[open.count] = frame;
    open.ids[open.count++] = work->id;
    hl_hooks_this_thread.own_frame = frame;
}

void hl_tracer_end_own_work(const hl_own_work *work)
{
    for (uint32_t place = open.count; place-- > 0;) {
        if (open.ids[place] == work->id) {
            close_place(place);
            break;
        }
    }
    hl_hooks_this_thread.own_frame = open.count == 0 ? NULL : open.frames[open.count - 1];
}
