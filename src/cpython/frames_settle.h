/* frames_settle.h: a mark on frames by which they are known again, for frames_3XX.c of 3.13 and later.
 *
 * As long as a frame lives, its callers stand still, each at the instruction that called the next. But a frame cannot be
 * told by its address: a call that returns and another one leave a new frame in the same place. So a frame that was
 * looked at gets a mark which the interpreter takes away when it makes a new one there.
 *
 * The mark is None in `f_locals`, in frames of functions. The interpreter makes these with NULL there and never puts
 * anything else: since 3.13 local variables of a function are found without it (PEP 667). What it does with the field:
 * an import statement passes it on as `locals`, with None for NULL; the collector visits it, and passes over None; when the
 * frame ends it is released, which does nothing to None. All of it is the same with the mark as without.
 *
 * Frames of generators and coroutines are left alone: they live on while their callers change. So are those of modules and
 * classes, which keep their variables there, and code of a function that somebody executes with locals of his own.
 */
#ifndef HL_FRAMES_SETTLE_H
#define HL_FRAMES_SETTLE_H

static inline bool is_settled(const frame *f)
{
    return f->f_locals == Py_None && f->owner == FRAME_OWNED_BY_THREAD;
}

/* `f` is a complete frame of the calling thread. */
static inline void settle(const frame *f)
{
    if (f->f_locals == NULL && f->owner == FRAME_OWNED_BY_THREAD && (code_of(f)->co_flags & CO_OPTIMIZED) != 0)
        ((frame *)f)->f_locals = Py_None; /* immortal */
}

#endif
