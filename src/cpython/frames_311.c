/* frames_311.c: CPython 3.11. See frames.h. */

#define Py_BUILD_CORE 1
#include "frames.h"

#include <internal/pycore_frame.h>
#include <internal/pycore_object.h>

#include "resolve.h"
#include "shadow.h"
#include "this_thread.h"

typedef _PyInterpreterFrame frame;

static inline frame *current_frame(PyThreadState *thread)
{
    return thread->cframe->current_frame;
}

static inline uintptr_t instruction_of(const frame *f)
{
    return (uintptr_t)f->prev_instr;
}

static inline bool is_shim(const frame *f)
{
    (void)f; /* 3.11 has no shims */
    return false;
}

static inline PyCodeObject *code_of(const frame *f)
{
    return f->f_code;
}

void hl_frames_prepare(void)
{
}

/* All interpreters share one GIL in 3.11. The "current" state belongs to the thread that holds the GIL, which need not
 * be the calling thread. */
PyThreadState *hl_frames_at_once(bool attached)
{
    return attached ? *hl_this_thread.look_at : NULL;
}

bool hl_frames_here(bool attached, PyThreadState **thread)
{
    PyThreadState *holder = hl_this_thread_state();
    *thread = attached || holder == hl_frames_detached() ? holder : NULL;
    return *thread != NULL;
}

PyThreadState *hl_frames_detached(void)
{
    return _Py_IsFinalizing() ? NULL : PyGILState_GetThisThreadState();
}

#include "frames_mark.h"
#include "frames_walk.h"
#include "shadow_sync.h"
