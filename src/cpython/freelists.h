/* freelists.h: while we trace, the interpreter keeps no dead objects for later use.
 *
 * An object from a freelist passes no hook: it would have the line of the object that was in its memory before, and
 * dead objects in a freelist would count as alive. So the freelists are off while we trace, and every object comes from
 * the allocator and goes back to it. The lists of numbers are the exception, because numbers live and die millions of
 * times a second. They are off only if the user asks for it.
 *
 * Each file freelists_3XX.c says how the lists of its versions are turned off; docs/compat.md has them all in a table.
 *
 * Threading: an attached thread state, and no lock, as objects are freed. A thread may only touch the lists of the
 * interpreter whose GIL it holds. So those of another interpreter are turned off when it first allocates
 * (hl_freelists_see_to), and are left off by stop().
 */
#ifndef HL_FREELISTS_H
#define HL_FREELISTS_H

#include <Python.h>
#include <stdbool.h>

/* Turn off the freelists of the calling thread's interpreter; `numbers`: those of numbers, too. Does nothing where that
 * is done already. */
void hl_freelists_turn_off(bool numbers);
/* And on again. Does nothing where they are on. */
void hl_freelists_turn_on(void);
/* The same as the first in a thread of any interpreter, with what was asked for last. Cheap. */
void hl_freelists_see_to(PyInterpreterState *interpreter);
/* After the interpreter's end: what is not the interpreter's becomes as it was. */
void hl_freelists_end(void);

#endif
