/* frames.h: the interpreter's frames, as one contract over all CPython versions.
 *
 * Each file frames_3XX.c serves one minor version or several. It says where things are in a frame and nothing else. The
 * walks are written once, in frames_walk.h and shadow_sync.h. From 3.12 on, frames_here.h finds out whose thread it is.
 *
 * A frame is "complete" when the interpreter would show it in a traceback: it is Python code past its preamble, not a
 * shim of the interpreter's own.
 *
 * Threading: a walk reads the frames of the calling thread only. They hold still while the thread is inside a hook,
 * attached (with the GIL) or not. A walk takes no references and allocates nothing. The only thing that heapledger
 * changes in a frame is the mark of frames_mark.h.
 */
#ifndef HL_FRAMES_H
#define HL_FRAMES_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* The frame a thread is in, or NULL. Identifies the frame; may be incomplete. */
const void *hl_frames_current(PyThreadState *thread);

/* The newest complete frame from `frame` on, or NULL. */
const void *hl_frames_complete(const void *frame);
/* The caller of a complete frame that is complete too, or NULL. */
const void *hl_frames_caller(const void *frame);

/* Does the frame bear the mark of one that was looked at (frames_mark.h)? */
bool hl_frames_is_marked(const void *frame);

/* What a complete frame runs (borrowed), and where it is. */
PyCodeObject *hl_frames_code(const void *frame);
uintptr_t hl_frames_instruction(const void *frame);
/* The address of a code object's first instruction. */
uintptr_t hl_frames_first_instruction(PyCodeObject *code);

/* The bytes between the start of an object's block and the object: the collector's head, dict and weak references. */
size_t hl_frames_object_offset(PyTypeObject *type);

/* To be called before the first walk, with an attached thread state. */
void hl_frames_prepare(void);
/* Sets *thread to the calling thread's state if it holds a GIL, else to NULL. Returns whether that is the main
 * interpreter's, for certain. `attached`: it is known to hold some interpreter's. */
bool hl_frames_here(bool attached, PyThreadState **thread);
/* The calling thread's state if that is known at once, the thread holds the main interpreter's GIL for certain, and
 * nothing unusual goes on in it (this_thread.h). Else NULL: then hl_frames_here is to be asked. */
PyThreadState *hl_frames_at_once(bool attached);
/* The state of the calling thread, which holds no GIL; NULL when it has none, or when it may be going away.
 *
 * To be called, and its frames to be walked, with the ledger's lock held: at the interpreter's end the main thread
 * frees the states of all others, wherever they are. It says that it is finalizing before it does, and freeing a state
 * is a call of our hook, which takes the lock: so whoever has the lock and sees no finalization, has a state that
 * stays. */
PyThreadState *hl_frames_detached(void);

#endif
