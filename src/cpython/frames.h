/* frames.h: the interpreter's frames, as one contract over all CPython versions.
 *
 * Each file frames_3XX.c serves one minor version or several. It says where things are in a frame and nothing else. The
 * walks are written once, in frames_walk.h and shadow_sync.h. From 3.12 on, frames_here.h finds the calling thread's
 * state.
 *
 * A frame is "complete" when the interpreter would show it in a traceback: it is Python code past its preamble, not a
 * shim of the interpreter's own.
 *
 * Threading: a walk reads the frames of the calling thread only. They do not change while the thread is inside a hook,
 * attached (with the GIL) or not. A walk takes no references and allocates nothing. The only thing that heapledger
 * changes in a frame is the mark of frames_mark.h.
 */
#ifndef HL_FRAMES_H
#define HL_FRAMES_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* The frame that a thread runs now, or NULL. The pointer identifies the frame, which may be incomplete. */
const void *hl_frames_current(PyThreadState *thread);

/* The first complete frame among `frame` and its callers, or NULL. */
const void *hl_frames_complete(const void *frame);
/* The nearest complete caller of a complete frame, or NULL. */
const void *hl_frames_caller(const void *frame);

/* Has heapledger marked this frame since it began (frames_mark.h)? */
bool hl_frames_is_marked(const void *frame);

/* The code that a complete frame runs (borrowed), and the instruction it is at. */
PyCodeObject *hl_frames_code(const void *frame);
uintptr_t hl_frames_instruction(const void *frame);
/* The address of a code object's first instruction. */
uintptr_t hl_frames_first_instruction(PyCodeObject *code);

/* The number of bytes between the start of an object's block and the object. They hold the collector's head and the
 * pointers to the object's dict and weak references. */
size_t hl_frames_object_offset(PyTypeObject *type);

/* Call this before the first walk, with an attached thread state. */
void hl_frames_prepare(void);
/* Sets *thread to the calling thread's state if the thread holds a GIL, else to NULL. Returns true only if that GIL is
 * certainly the main interpreter's. `attached`: the caller knows that the thread holds the GIL of some interpreter. */
bool hl_frames_here(bool attached, PyThreadState **thread);
/* The calling thread's state if three things are true: we know the state without a search, the thread certainly holds
 * the main interpreter's GIL, and nothing unusual happens in the thread (this_thread.h). Else NULL. Then call
 * hl_frames_here. */
PyThreadState *hl_frames_at_once(bool attached);
/* The state of the calling thread, which holds no GIL. NULL if the thread has no state, or if the state may be freed
 * soon.
 *
 * Hold the ledger's lock during this call and while you walk the thread's frames. The reason: when the interpreter
 * ends, the main thread frees the states of all other threads, even of running ones. It first announces that it is
 * finalizing. Freeing a state then calls our hook, which takes the lock. So a thread that holds the lock and sees no
 * finalization has a state that stays. */
PyThreadState *hl_frames_detached(void);

#endif
