/* rivals.c: see rivals.h. */

#include "rivals.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "tracer.h"

static _Atomic bool looks_soon;

static int look(void *unused)
{
    (void)unused;
    atomic_store(&looks_soon, false);
    (void)hl_tracer_see_to_hooks(false); /* if memory ran out, the next call tries again */
    return 0;
}

/* We call these functions through pointers that no sweep changes, neither our own nor one of a second copy of
 * heapledger. The pointers are volatile, so that the compiler does not turn these calls into normal ones. */
static void (*volatile real_get_allocator)(PyMemAllocatorDomain, PyMemAllocatorEx *) = PyMem_GetAllocator;
static void (*volatile real_set_allocator)(PyMemAllocatorDomain, PyMemAllocatorEx *) = PyMem_SetAllocator;

/* By domain: has another library asked for the allocator since it was last set? */
static _Atomic bool asked_for[3];

static _Atomic bool *asked_for_in(PyMemAllocatorDomain domain)
{
    return &asked_for[(unsigned)domain % (sizeof asked_for / sizeof *asked_for)];
}

void hl_rivals_get_allocator(PyMemAllocatorDomain domain, PyMemAllocatorEx *allocator)
{
    real_get_allocator(domain, allocator);
    atomic_store(asked_for_in(domain), hl_tracer_is_tracing());
}

void hl_rivals_set_allocator(PyMemAllocatorDomain domain, PyMemAllocatorEx *allocator)
{
    bool puts_itself_over = atomic_exchange(asked_for_in(domain), false);
    real_set_allocator(domain, allocator);
    if (puts_itself_over || !hl_tracer_is_tracing() || atomic_exchange(&looks_soon, true))
        return;
    if (Py_AddPendingCall(look, NULL) != 0)
        atomic_store(&looks_soon, false); /* too many calls are pending; the next snapshot will check */
}

static PyCFunction real_stop;

static PyObject *watched_stop(PyObject *module, PyObject *unused)
{
    bool were_there = hl_tracer_see_to_hooks(false) == HL_OK;
    PyObject *result = real_stop(module, unused);
    if (were_there)
        (void)hl_tracer_see_to_hooks(true);
    return result;
}

void hl_rivals_watch_stdlib(PyObject *stop)
{
    if (!PyCFunction_CheckExact(stop) || real_stop != NULL)
        return;
    PyMethodDef *method = ((PyCFunctionObject *)stop)->m_ml;
    if (method->ml_flags != METH_NOARGS)
        return; /* not the function that we know */
    real_stop = method->ml_meth;
    method->ml_meth = watched_stop;
}
