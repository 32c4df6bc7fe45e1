/* frames_mark.h: a mark on frames, so that we recognise them later. Included by each frames_3XX.c.
 *
 * While a frame lives, its callers do not move: each stays at the instruction that called the next frame. (jumps.h
 * describes the one exception.) But the address of a frame does not identify it: after a call returns, the next call
 * may create a frame at the same address. So we mark each frame that we look at. The interpreter removes the mark when
 * it creates a new frame there.
 *
 * From 3.13 on, the mark is None in `f_locals`, in frames of functions. The interpreter creates these frames with NULL
 * in that field and stores nothing else there, because it finds a function's local variables without it (PEP 667). The
 * interpreter uses the field in three places:
 *
 *   - An import statement passes it on as `locals`, and passes None if it is NULL.
 *   - The collector visits it, and ignores None.
 *   - The end of the frame releases it, which has no effect on None.
 *
 * So the mark is visible in one place only. gc.get_referents() lists what the collector visits. For a frame object that
 * has outlived its call, this list has one more None. No other field would work: the interpreter follows pointers, it
 * compares `owner` with each of its values, each call sets `return_offset` and the stack pointer, the collector uses
 * `visited` (3.14), and a new frame does not initialise its padding.
 *
 * We do not mark frames of generators and coroutines, because they live on while their callers change. We do not mark
 * frames of modules and classes, which keep their variables in this field. For the same reason we do not mark a
 * function's code that a program executes with its own locals.
 *
 * In 3.11 and 3.12, `f_locals` collects local variables. There the mark is -2 in `stacktop`. The interpreter stores -1
 * there in a running frame, because the stack pointer is in a register. The interpreter reads the value only to check
 * that it is negative. Two kinds of frames store their stack pointer there for a while: a frame that calls another
 * frame directly, not through C, and a generator that yields. They have lost the mark when they continue.
 */
#ifndef HL_FRAMES_MARK_H
#define HL_FRAMES_MARK_H

/* mark() needs a complete frame of the calling thread. */

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
