/* frames_mark.h: a mark on frames by which they are known again, included by each frames_3XX.c.
 *
 * As long as a frame lives, its callers stand still, each at the instruction that called the next (jumps.h has the one
 * exception). But a frame cannot be told by its address: a call that returns and another one leave a new frame in the
 * same place. So a frame that was looked at gets a mark which the interpreter takes away when it makes a new one there.
 *
 * From 3.13 on the mark is None in `f_locals`, in frames of functions. The interpreter makes these with NULL there and
 * never puts anything else: local variables of a function are found without it (PEP 667). What it does with the field:
 * an import statement passes it on as `locals`, with None for NULL; the collector visits it, and None is not its
 * business; when the frame ends it is released, which does nothing to None. So the mark shows in one place only:
 * gc.get_referents() of a frame object that has outlived its call, which lists what the collector visits, has one None
 * more. No other field would do: pointers are followed, `owner` is compared with each of its values, `return_offset`
 * and the stack pointer are set by each call, `visited` (3.14) is the collector's, and padding is not set in a new
 * frame.
 *
 * Frames of generators and coroutines are left alone: they live on while their callers change. So are those of modules
 * and classes, which keep their variables there, and code of a function that somebody executes with locals of his own.
 *
 * In 3.11 and 3.12 local variables are gathered in that field. There the mark is -2 in `stacktop`, where the
 * interpreter puts -1 in a frame that is running, because its stack pointer is in a register: a value that nothing
 * reads but to see that it is negative. A frame that calls another one by itself, not through C, and a generator that
 * yields have their stack pointer there meanwhile, and have lost the mark when they go on.
 */
#ifndef HL_FRAMES_MARK_H
#define HL_FRAMES_MARK_H

/* mark: `f` is a complete frame of the calling thread. */

#if PY_VERSION_HEX >= 0x030d0000

static inline bool is_marked(const frame *f)
{
    return f->f_locals == Py_None && f->owner == FRAME_OWNED_BY_THREAD;
}

static inline void mark(const frame *f)
{
    if (f->f_locals == NULL && f->owner == FRAME_OWNED_BY_THREAD && (code_of(f)->co_flags & CO_OPTIMIZED) != 0)
        ((frame *)f)->f_locals = Py_None; /* immortal */
}

#else

enum { RUNNING = -1, MARKED = -2 };

static inline bool is_marked(const frame *f)
{
    return f->stacktop == MARKED;
}

static inline void mark(const frame *f)
{
    if (f->stacktop == RUNNING)
        ((frame *)f)->stacktop = MARKED;
}

#endif

#endif
