/* domains.h: blocks that extensions report themselves, mostly under their own domain.
 *
 * The reports arrive in two ways: through the interpreter's PyTraceMalloc_Track and PyTraceMalloc_Untrack, whose calls
 * interpose.h redirects to us, and through the functions of heapledger.h, the header for extensions. We accept any
 * address and size. Nothing is known about them: an address may be inside another block, or no address at all.
 *
 * Threading: any thread, with or without the GIL. Hold no lock. These functions do not allocate with the hooked
 * allocators and call no Python function.
 */
#ifndef HL_DOMAINS_H
#define HL_DOMAINS_H

#include <Python.h>
#include <stdint.h>

/* The results of PyTraceMalloc_Track. */
enum { HL_DOMAINS_DONE = 0, HL_DOMAINS_NO_MEMORY = -1, HL_DOMAINS_NOT_TRACING = -2 };

/* Enter a block in the ledger under the traceback of the calling thread. It replaces a block with the same address and
 * domain. */
int hl_domains_track(unsigned int domain, uintptr_t address, size_t size);
/* Remove a block. Does nothing if the block is not in the ledger. */
int hl_domains_untrack(unsigned int domain, uintptr_t address);

/* Returns what the interpreter's private getter returns, for a block in the ledger: a new tuple of (file, line), newest
 * first. NULL without an exception: the block is not in the ledger. src/binding provides this function, because it
 * makes Python objects. */
typedef PyObject *hl_domains_getter(unsigned int domain, uintptr_t address);

/* Receive the calls that extensions make to the interpreter's functions. This covers all extensions that are loaded now
 * or later. `again`: also check those that were checked before. Needs an attached thread state. Hold no lock. */
void hl_domains_receive(bool again);
/* Call this before the first hl_domains_receive. */
void hl_domains_set_getter(hl_domains_getter *getter);

#endif
