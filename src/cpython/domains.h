/* domains.h: blocks that extensions report themselves, mostly under a domain of their own.
 *
 * They arrive by two ways: by the interpreter's PyTraceMalloc_Track and PyTraceMalloc_Untrack, of which interpose.h
 * lets us have the calls, and by the functions of heapledger.h, the header for extensions. An address and a size are
 * taken as they come: nothing is known about them, they may be inside another block or no address at all.
 *
 * Threading: any thread, with or without the GIL. No lock may be held; nothing is allocated by the hooked allocators,
 * no Python function is called.
 */
#ifndef HL_DOMAINS_H
#define HL_DOMAINS_H

#include <Python.h>
#include <stdint.h>

/* What PyTraceMalloc_Track answers. */
enum { HL_DOMAINS_DONE = 0, HL_DOMAINS_NO_MEMORY = -1, HL_DOMAINS_NOT_TRACING = -2 };

/* Enter a block in the ledger, in place of one that stands at the same address and domain, under the traceback of the
 * calling thread. */
int hl_domains_track(unsigned int domain, uintptr_t address, size_t size);
/* Remove it; it need not be there. */
int hl_domains_untrack(unsigned int domain, uintptr_t address);

/* Answers the interpreter's private getter for a block in the ledger: a new tuple of (file, line), newest first; NULL
 * without an exception when it is not entered. src/binding makes Python objects, so it provides this. */
typedef PyObject *hl_domains_getter(unsigned int domain, uintptr_t address);

/* Receive the calls that extensions make to the interpreter's functions, in all extensions that are loaded now or will
 * be: `again`: look at those that were looked at before, too. Needs an attached thread state and no lock. */
void hl_domains_receive(bool again);
/* To be set before the first hl_domains_receive. */
void hl_domains_set_getter(hl_domains_getter *getter);

#endif
