/* trace.h: Trace, one block. See trace.c. */
#ifndef HL_PY_TRACE_H
#define HL_PY_TRACE_H

#include "module.h"
#include "view.h"

PyTypeObject *hl_py_trace_type_new(PyObject *module);
PyObject *hl_py_trace_new(hl_py_state *state, hl_py_view *view, size_t row);
PyObject *hl_py_trace_wrap(hl_py_state *state, PyObject *trace);
/* Is the trace a row of `view`? If so, finds the row. Returns false also for a trace that has been changed. */
bool hl_py_trace_is_row(PyObject *trace, hl_py_state *state, const hl_py_view *view, size_t *row);

#endif
