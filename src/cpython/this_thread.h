/* this_thread.h: what the hooks know of the thread that they are called by.
 *
 * It is one variable, so that a hook asks once where the thread's variables are.
 *
 * Most of what a hook has to find out first is whether the thread holds the main interpreter's GIL. The interpreter
 * keeps the current thread state in a variable: of the thread from 3.12 on, of the process before. Asking for it is a
 * call, which in a shared libpython asks the dynamic linker where the thread's copy of the variable is: four calls for
 * one load, and that twice for each block. But the copy stays where it is as long as the thread lives. So each thread
 * remembers its place and looks there.
 *
 * A hook has a quick way only where nothing unusual goes on in the thread. While it is in a function of ours
 * (own_work.c), the hooks look at a place where there is no state. So they take the slow way, which asks
 * (hl_this_thread_state) and compares frames, and the quick way has nothing to ask.
 *
 * Threading: the thread's own.
 */
#ifndef HL_THIS_THREAD_H
#define HL_THIS_THREAD_H

#include <Python.h>
#include <stdint.h>

#include "../core/status.h"

typedef struct {
    PyThreadState *const
        *look_at; /* where hooks look for the state: `place` or, for the slow way, hl_this_thread_nobody */
    PyThreadState *const *place; /* of the current thread state; NULL: not known (yet) */
    const void *own_frame;       /* allocations made in this frame are the tracer's own: own_work.c; NULL: none */
    uint8_t inside;              /* calls of allocators that this one is called by */
    uint8_t probed[3];           /* by domain, bits of the layers that were called and passed through: layers.c */
} hl_this_thread_data;
extern __thread hl_this_thread_data hl_this_thread;
extern PyThreadState *const hl_this_thread_nobody;

/* Find out where the interpreter keeps thread states. Needs an attached thread state. */
void hl_this_thread_prepare(void);

/* The current state: NULL if the thread holds no GIL. In 3.11 it is that of the thread that holds the GIL, whichever it
 * is. */
PyThreadState *hl_this_thread_state(void);

/* `own_frame` is the one whose allocations are ours from now on; NULL: none. */
static inline void hl_this_thread_set_own_frame(const void *own_frame)
{
    hl_this_thread.own_frame = own_frame;
    hl_this_thread.look_at = &hl_this_thread_nobody; /* the next one who asks puts back what is to be there */
}

#endif
