/* interpose.h: makes calls from other loaded objects reach our functions instead of the interpreter's.
 *
 * An extension calls a function of the interpreter through a slot in the extension. The dynamic linker fills the slot
 * with the function's address. We put the address of our function there:
 *
 *     extension                              interpreter (libpython, or the executable where it is linked in)
 *     call *slot  ----- as linked ------->   PyTraceMalloc_Track
 *          '----------- from now on ----->   ours ------> PyTraceMalloc_Track
 *
 * This needs no preloading. It also works if libpython is part of the executable, whose symbols cannot be preempted.
 * The interpreter's own calls of dlopen reach us as well. So we see objects that are loaded later, and replace an
 * extension's slots before its module is initialised. The next sweep finds objects that others load.
 *
 * A replacement is never undone, because the object may no longer exist at that time. So a replacement must do the
 * original's work forever. This library is never unloaded (the linker option is -z nodelete).
 *
 * The interpreter's calls of its own functions stay as they are, and so do our own calls. On platforms other than
 * 64-bit x86 and ARM, these functions do nothing.
 */
#ifndef HL_INTERPOSE_H
#define HL_INTERPOSE_H

#include <stdatomic.h>
#include <stdbool.h>

typedef struct {
    const char *symbol; /* NULL marks the end of the list */
    void *function;
} hl_replacement;

typedef struct {
    const hl_replacement *replacements;
    const void *interpreter;    /* the address of something in the interpreter's object */
    const _Atomic bool *active; /* while this is false, objects that the interpreter loads wait for the next sweep */
} hl_interposition;

/* Sweeps: makes every loaded object that calls one of the symbols call its replacement. All calls must pass the same
 * interposition. Objects that an earlier sweep has seen are skipped unless `again`. Any thread may call this, without
 * holding a lock. If calls are concurrent, one of them does the work of all. */
void hl_interpose(const hl_interposition *interposition, bool again);
/* Call this in the child after a fork. If another thread was sweeping, that sweep does not exist in the child. */
void hl_interpose_forked(void);

#endif
