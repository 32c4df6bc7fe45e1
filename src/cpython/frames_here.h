/* frames_here.h: whose thread this is, from 3.12 on, included by the frames_3XX.c of these versions.
 *
 * The including file defines, for its version:
 *     PyThreadState *current_thread(void)     the calling thread's; NULL when it is detached
 *     void prepare_current_thread(void)       to be called before, once or more, by an attached thread
 *     bool is_finalizing(void)                the interpreter's end has begun
 */

#ifndef HL_FRAMES_HERE_H
#define HL_FRAMES_HERE_H

static PyInterpreterState *main_interpreter;

void hl_frames_prepare(void)
{
    main_interpreter = PyInterpreterState_Main();
    prepare_current_thread();
}

bool hl_frames_here(bool attached, PyThreadState **thread)
{
    (void)attached;
    *thread = current_thread();
    return *thread != NULL && (*thread)->interp == main_interpreter;
}

PyThreadState *hl_frames_detached(void)
{
    return is_finalizing() ? NULL : PyGILState_GetThisThreadState();
}

#endif
