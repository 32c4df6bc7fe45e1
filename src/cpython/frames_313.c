/* frames_313.c: CPython 3.13. See frames.h. */

#define Py_BUILD_CORE 1
#include "frames.h"

#include <internal/pycore_frame.h>
#include <internal/pycore_object.h>

#include "resolve.h"
#include "shadow.h"

typedef _PyInterpreterFrame frame;

static inline frame *current_frame(PyThreadState *thread)
{
    return thread->current_frame;
}

static inline uintptr_t instruction_of(const frame *f)
{
    return (uintptr_t)f->instr_ptr;
}

static inline bool is_shim(const frame *f)
{
    return f->owner == FRAME_OWNED_BY_CSTACK;
}

static inline PyCodeObject *code_of(const frame *f)
{
    return (PyCodeObject *)f->f_executable;
}

#include "frames_here.h"
#include "frames_mark.h"
#include "frames_walk.h"
#include "shadow_sync.h"
