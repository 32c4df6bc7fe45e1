/* rivals.h: other tools that hook the allocators, and hearing of it when one of them may have taken ours off.
 *
 * A tool that stops may put back the allocators that it found at its start, without ours that came later. Until we
 * notice, blocks come and go unseen (hl_tracer_see_to_hooks). So we do not wait for the next snapshot:
 *
 *   - the standard library's `_tracemalloc.stop` is wrapped, in the interpreter's own table of methods. The hooks are
 *     put back before it returns, and nothing is missed;
 *   - calls of PyMem_SetAllocator from other libraries come to us (interpose.h) and do what they always did. The tool
 *     may be in the middle of its work then, so the hooks are looked after by a pending call, a moment later. A tool
 *     that has asked for the allocator before is left alone: it puts itself over ours.
 */
#ifndef HL_RIVALS_H
#define HL_RIVALS_H

#include <Python.h>

/* In place of PyMem_GetAllocator and PyMem_SetAllocator, for other libraries. Any thread. */
void hl_rivals_get_allocator(PyMemAllocatorDomain domain, PyMemAllocatorEx *allocator);
void hl_rivals_set_allocator(PyMemAllocatorDomain domain, PyMemAllocatorEx *allocator);
/* Wrap the stdlib's `_tracemalloc.stop`, once. Needs the GIL. */
void hl_rivals_watch_stdlib(PyObject *stop);

#endif
