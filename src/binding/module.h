/* module.h: the module's state, and the rules for all files of this folder, which creates the Python objects.
 *
 * There are two kinds of most objects. An object that a caller makes holds what the caller gave, like an object of the
 * stdlib. An object that we make holds numbers, ids and a reference to a view. It builds tuples and strings only when
 * they are read. Both kinds behave the same, also after a program has read or changed them.
 *
 * Invariants:
 *
 *   - We use only documented Python API. All objects and types belong to the module's state, so interpreters share
 *     nothing.
 *   - A function that returns PyObject * returns a new reference, or NULL with an exception set.
 *   - Creating an object may run the collector, and the collector may run any code. So an object's view is held while
 *     it is in use.
 *   - A public function uses HL_PY_OWN_WORK around everything that it allocates for its result. So that memory stays
 *     out of the ledger.
 *
 * Threading: the interpreter's GIL, which is released only around the core's analyses.
 */
#ifndef HL_PY_MODULE_H
#define HL_PY_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "../cpython/tracer.h"

typedef struct {
    PyTypeObject *view;
    PyTypeObject *frame;
    PyTypeObject *traceback;
    PyTypeObject *trace;
    PyTypeObject *traces;
    PyTypeObject *statistic;
    PyTypeObject *difference;
    PyTypeObject *base_filter;
    PyTypeObject *filter;
    PyTypeObject *domain_filter;
    PyTypeObject *snapshot;
    PyTypeObject *window;
    PyObject *malformed;     /* the exception for malformed bytes: (reason, offset) */
    PyObject *stdlib_memory; /* the stdlib's get_tracemalloc_memory, which a swap may hide; NULL if there is none */
} hl_py_state;

/* The state of the module that made `type` or one of its bases. Never NULL for our types. */
hl_py_state *hl_py_state_of(PyTypeObject *type);
hl_py_state *hl_py_state_of_module(PyObject *module);
/* Sets the exception for `status`. Returns NULL. */
PyObject *hl_py_raise_status(hl_status status);
/* Makes a type whose __slots__ are `slots` (a NULL-terminated list of names, or NULL). */
PyTypeObject *hl_py_type_new(PyObject *module, PyType_Spec *spec, PyTypeObject *base, const char *const *slots);

static inline void hl_py_own_work_end(const hl_own_work *work)
{
    hl_tracer_end_own_work(work);
}

/* Until the end of the enclosing block, the current frame's allocations count as our own work. This ends however the
 * block is left. */
#define HL_PY_OWN_WORK                                                 \
    __attribute__((cleanup(hl_py_own_work_end))) hl_own_work own_work; \
    hl_tracer_begin_own_work(&own_work)

#endif
