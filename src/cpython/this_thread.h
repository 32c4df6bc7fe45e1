/* this_thread.h: what the hooks know about the thread that calls them.
 *
 * All of it is in one variable, so that a hook has to find the thread's variables only once.
 *
 * The first thing that a hook must find out is whether the thread holds the main interpreter's GIL. The interpreter
 * keeps the current thread state in a variable, one per thread from 3.12 on, one per process before. Asking the
 * interpreter for it is a function call. In a shared libpython, that function asks the dynamic linker where the
 * thread's copy of the variable is. This makes four calls for one load, twice for each block. But the copy stays in the
 * same place as long as the thread lives. So each thread remembers the place and looks there.
 *
 * A hook can only take the quick path if nothing unusual happens in the thread. While the thread is in one of our
 * functions (own_work.c), the hooks look at a place that holds no state. So they take the slow path, which calls
 * hl_this_thread_state and compares frames. This way, the quick path needs no extra check.
 *
 * Threading: each thread has its own variable.
 */
#ifndef HL_THIS_THREAD_H
#define HL_THIS_THREAD_H

#include <Python.h>
#include <stdint.h>

#include "../core/status.h"

typedef struct {
    PyThreadState *const *look_at; /* hooks look here: at `place`, or at hl_this_thread_nobody for the slow path */
    PyThreadState *const *place;   /* where the current thread state is; NULL: not known (yet) */
    const void *own_frame;         /* allocations in this frame are the tracer's own (own_work.c); NULL: none */
    uint8_t inside;                /* how many calls of allocators this call is nested in */
    uint8_t probed[3];             /* by domain: bits of the layers that passed a call on (layers.c) */
} hl_this_thread_data;
extern __thread hl_this_thread_data hl_this_thread;
extern PyThreadState *const hl_this_thread_nobody;

/* Find out where the interpreter keeps thread states. Needs an attached thread state. */
void hl_this_thread_prepare(void);

/* The current thread state, or NULL if the thread holds no GIL. In 3.11 it is the state of the thread that holds the
 * GIL, even if that is another thread. */
PyThreadState *hl_this_thread_state(void);

/* Allocations in `own_frame` are ours from now on. NULL: no frame is ours. */
static inline void hl_this_thread_set_own_frame(const void *own_frame)
{
    hl_this_thread.own_frame = own_frame;
    hl_this_thread.look_at = &hl_this_thread_nobody; /* hl_this_thread_state restores it when no frame is ours */
}

#endif
