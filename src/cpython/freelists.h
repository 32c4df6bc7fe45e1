/* freelists.h: while we trace, the interpreter keeps no dead objects for later use.
 *
 * An object from a freelist passes no hook. It would have the line of the previous object in its memory, and dead
 * objects in a freelist would count as alive. So we turn the freelists off while we trace. Every object then comes from
 * the allocator and goes back to it. The lists of numbers are the exception, because numbers live and die millions of
 * times a second. We turn them off only if the user asks for it.
 *
 * Each file freelists_3XX.c turns off the lists of its versions. docs/compat.md has a table of all lists.
 *
 * Threading: these functions need an attached thread state. Hold no lock, because they free objects. A thread may only
 * touch the lists of the interpreter whose GIL it holds. So we turn off the lists of another interpreter when it first
 * allocates (hl_freelists_see_to). stop() leaves those lists off.
 */
#ifndef HL_FREELISTS_H
#define HL_FREELISTS_H

#include <Python.h>
#include <stdbool.h>

/* Turn off the freelists of the calling thread's interpreter. `numbers`: also those of numbers. Does nothing for lists
 * that are off already. */
void hl_freelists_turn_off(bool numbers);
/* Turn them on again. Does nothing if they are on. */
void hl_freelists_turn_on(void);
/* Like hl_freelists_turn_off, with its last `numbers`, for a thread of any interpreter. Cheap. */
void hl_freelists_see_to(PyInterpreterState *interpreter);
/* Call this after the interpreter's end. It restores what outlives the interpreter: the destructors of static types. */
void hl_freelists_end(void);

#endif
