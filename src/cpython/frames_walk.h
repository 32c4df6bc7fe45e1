/* frames_walk.h: the walks over frames. Included at the end of each frames_3XX.c.
 *
 * The including file defines, for its version:
 *     typedef ... frame;                                   the interpreter's frame
 *     frame *current_frame(PyThreadState *)                the frame that the thread runs
 *     uintptr_t instruction_of(const frame *)              the instruction it is at
 *     bool is_shim(const frame *)                          the frame runs no Python code
 *     PyCodeObject *code_of(const frame *)                 for frames that are not shims
 *     bool is_marked(const frame *), void mark(...)        frames_mark.h
 */

#ifndef HL_FRAMES_WALK_H
#define HL_FRAMES_WALK_H

static inline bool is_complete(const frame *f)
{
    if (is_shim(f))
        return false;
    if (f->owner == FRAME_OWNED_BY_GENERATOR)
        return true;
    PyCodeObject *code = code_of(f);
    return instruction_of(f) >= (uintptr_t)(_PyCode_CODE(code) + code->_co_firsttraceable);
}

const void *hl_frames_current(PyThreadState *thread)
{
    return current_frame(thread);
}

const void *hl_frames_complete(const void *from)
{
    const frame *f = from;
    while (f != NULL && !is_complete(f))
        f = f->previous;
    return f;
}

const void *hl_frames_caller(const void *of)
{
    return hl_frames_complete(((const frame *)of)->previous);
}

bool hl_frames_is_marked(const void *of)
{
    return is_marked(of);
}

PyCodeObject *hl_frames_code(const void *of)
{
    return code_of(of);
}

uintptr_t hl_frames_instruction(const void *of)
{
    return instruction_of(of);
}

uintptr_t hl_frames_first_instruction(PyCodeObject *code)
{
    return (uintptr_t)_PyCode_CODE(code);
}

size_t hl_frames_object_offset(PyTypeObject *type)
{
    return _PyType_PreHeaderSize(type);
}

#endif
