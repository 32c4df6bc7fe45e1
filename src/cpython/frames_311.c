/* frames_311.c: CPython 3.11. See frames.h. */

#define Py_BUILD_CORE 1
#include "frames.h"

#include <internal/pycore_frame.h>
#include <internal/pycore_object.h>

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
    (void)f; /* there are none in 3.11 */
    return false;
}

static inline PyCodeObject *code_of(const frame *f)
{
    return f->f_code;
}

size_t hl_frames_object_offset(PyTypeObject *type)
{
    return _PyType_PreHeaderSize(type);
}

PyThreadState *hl_frames_thread(bool attached)
{
    /* The "current" state is the GIL holder's, not necessarily the caller's. */
    if (attached)
        return _PyThreadState_UncheckedGet();
    return _Py_IsFinalizing() ? NULL : PyGILState_GetThisThreadState();
}

#include "frames_walk.h"
