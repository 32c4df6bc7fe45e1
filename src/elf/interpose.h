/* interpose.h: make calls from other loaded objects come to us instead of to the interpreter.
 *
 * An extension calls a function of the interpreter through a slot of its own, which the dynamic linker fills with the
 * function's address. We put ours there:
 *
 *     extension                              interpreter (libpython, or the executable where it is linked in)
 *     call *slot  ----- as linked ------->   PyTraceMalloc_Track
 *          '----------- from now on ----->   ours ------> PyTraceMalloc_Track
 *
 * This needs no preloading and works where libpython is part of the executable, whose symbols cannot be preempted.
 * Objects that are loaded later are seen because the interpreter's own call to dlopen comes to us as well, so an
 * extension's slots are ours before its module is initialised. Objects that others load are found by the next sweep.
 *
 * What is replaced is never put back: the object may be gone when we would. So a replacement must do the original's
 * work for ever, and this library is never unloaded (the linker is told so: -z nodelete).
 *
 * The interpreter's calls of its own functions and our own calls are left alone. Elsewhere than on 64-bit x86 and ARM
 * nothing is done.
 */
#ifndef HL_INTERPOSE_H
#define HL_INTERPOSE_H

#include <stdatomic.h>
#include <stdbool.h>

typedef struct {
    const char *symbol; /* NULL: the end of the list */
    void *function;
} hl_replacement;

typedef struct {
    const hl_replacement *replacements;
    const void *interpreter;    /* the address of something in the interpreter's object */
    const _Atomic bool *active; /* while this is false, what the interpreter loads is left to the next sweep */
} hl_interposition;

/* Sweep: let every loaded object that calls one of the symbols call its replacement. All calls must give the same
 * interposition. Objects that an earlier sweep has seen are skipped unless `again`. Any thread; no lock may be held. Of
 * concurrent calls one does the work of all. */
void hl_interpose(const hl_interposition *interposition, bool again);
/* After fork, in the child: a sweep that another thread was in has ended. */
void hl_interpose_forked(void);

#endif
