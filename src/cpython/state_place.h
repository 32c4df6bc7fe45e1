/* state_place.h: the calling thread's state, without asking the interpreter for it. From 3.12 on.
 *
 * From 3.12 on the interpreter keeps the current thread state in a thread-local variable. Asking for it is a call,
 * which in a shared libpython asks the dynamic linker where the thread's copy of the variable is: four calls for one
 * load, and that twice for each block. But the copy stays where it is as long as the thread lives. So each thread
 * remembers its place and looks there.
 *
 * No header says where in the interpreter's thread-local memory the variable is. It is found by its value: the word of
 * that memory that holds the state of the thread that is looking. From 3.15 on another variable mostly has the same
 * value, but keeps it when the thread gives up the GIL: so where several words match, the thread does that for a
 * moment. If still not one word is left, the interpreter is asked each time.
 *
 * Threading: hl_state_find_place needs an attached thread state; the others may be called from any thread.
 */
#ifndef HL_STATE_PLACE_H
#define HL_STATE_PLACE_H

#include <Python.h>

#include "../core/status.h"

void hl_state_find_place(void);

/* Never NULL: as long as the place is not known, this is that of a variable which is. */
extern __thread PyThreadState *const *hl_state_place;
__attribute__((noinline, cold)) PyThreadState *hl_state_ask(void);

/* NULL: the thread holds no GIL. */
static inline PyThreadState *hl_state_current(void)
{
    PyThreadState *thread = *hl_state_place;
    return HL_LIKELY(thread != NULL) ? thread : hl_state_ask();
}

#endif
