/* module.h: the module's state, and what holds for all files of this folder, which creates the Python objects.
 *
 * Two kinds of everything: objects made by a caller hold what they were given, like the stdlib's; objects made here
 * hold numbers and ids and a reference to a view, and build tuples and strings only when somebody looks. An object
 * that has been looked at or written to behaves the same either way.
 *
 * Invariants:
 *   - only documented Python API; no object or type outside the module's state, so that interpreters share nothing;
 *   - a function that returns PyObject * returns a new reference, or NULL with an exception set;
 *   - creating an object may run the collector, and with it any code: an object's view is held while it is used;
 *   - whatever a public function allocates for its result is bracketed by HL_PY_OWN_WORK and stays out of the ledger.
 *
 * Threading: the interpreter's GIL, which is released around the core's analyses only.
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
    PyObject *malformed;     /* the exception for bytes that are not what they should be: (reason, offset) */
    PyObject *stdlib_memory; /* the stdlib's get_tracemalloc_memory, which a swap may hide; NULL: not there */
} hl_py_state;

/* The state of the module that made `type` or one of its bases; never NULL for a type of ours. */
hl_py_state *hl_py_state_of(PyTypeObject *type);
hl_py_state *hl_py_state_of_module(PyObject *module);
/* Set the exception that stands for `status`; returns NULL. */
PyObject *hl_py_raise_status(hl_status status);
/* Make a type and give it `slots` (names, NULL-terminated, or NULL) as its __slots__. */
PyTypeObject *hl_py_type_new(PyObject *module, PyType_Spec *spec, PyTypeObject *base, const char *const *slots);

static inline void hl_py_own_work_end(const hl_own_work *work)
{
    hl_tracer_end_own_work(work);
}

/* From here to the end of the enclosing block, on every way out, the current frame's allocations are our own work. */
#define HL_PY_OWN_WORK                                                 \
    __attribute__((cleanup(hl_py_own_work_end))) hl_own_work own_work; \
    hl_tracer_begin_own_work(&own_work)

#endif
