/* rivals.h: other tools that hook the allocators, and how we notice that one of them may have removed our hooks.
 *
 * A tool that stops may put back the allocators that it found when it started. If our hooks came later, they are gone.
 * Until we notice, we miss allocations and frees (hl_tracer_see_to_hooks). So we do not wait for the next snapshot:
 *
 *   - We wrap the standard library's `_tracemalloc.stop`, in the interpreter's own table of methods. We put our hooks
 *     back before it returns, so we miss nothing.
 *   - We receive calls of PyMem_SetAllocator from other libraries (interpose.h), and pass them on. The tool may be in
 *     the middle of its work then. So we check our hooks a moment later, in a pending call. If the tool has asked for
 *     the allocator before, we do not check, because it puts itself over our hooks.
 */
#ifndef HL_RIVALS_H
#define HL_RIVALS_H

#include <Python.h>

/* Other libraries call these instead of PyMem_GetAllocator and PyMem_SetAllocator. Any thread. */
void hl_rivals_get_allocator(PyMemAllocatorDomain domain, PyMemAllocatorEx *allocator);
void hl_rivals_set_allocator(PyMemAllocatorDomain domain, PyMemAllocatorEx *allocator);
/* Wrap the stdlib's `_tracemalloc.stop`, once. Needs the GIL. */
void hl_rivals_watch_stdlib(PyObject *stop);

#endif
