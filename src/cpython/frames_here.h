/* frames_here.h: the state of the calling thread, from 3.12 on. Included by the frames_3XX.c of these versions. */

#ifndef HL_FRAMES_HERE_H
#define HL_FRAMES_HERE_H

#include "this_thread.h"

static PyInterpreterState *main_interpreter;

void hl_frames_prepare(void)
{
    main_interpreter = PyInterpreterState_Main();
    hl_this_thread_prepare();
}

static inline bool is_of_main(const PyThreadState *thread)
{
    return thread != NULL && thread->interp == main_interpreter;
}

PyThreadState *hl_frames_at_once(bool attached)
{
    (void)attached;
    PyThreadState *thread = *hl_this_thread.look_at;
    return HL_LIKELY(is_of_main(thread)) ? thread : NULL;
}

bool hl_frames_here(bool attached, PyThreadState **thread)
{
    (void)attached;
    *thread = hl_this_thread_state();
    return is_of_main(*thread);
}

PyThreadState *hl_frames_detached(void)
{
#if PY_VERSION_HEX >= 0x030d0000
    bool is_ending = Py_IsFinalizing();
#else
    bool is_ending = _Py_IsFinalizing();
#endif
    return is_ending ? NULL : PyGILState_GetThisThreadState();
}

#endif
