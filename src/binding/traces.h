/* traces.h: _Traces, the sequence of a snapshot's traces. See traces.c. */
#ifndef HL_PY_TRACES_H
#define HL_PY_TRACES_H

#include "module.h"
#include "view.h"

PyTypeObject *hl_py_traces_type_new(PyObject *module);
PyObject *hl_py_traces_new(hl_py_state *state, hl_py_view *view);
/* The view of native traces that nobody has changed (a new reference); NULL without an exception for others. */
hl_py_view *hl_py_traces_view(hl_py_state *state, PyObject *traces);
/* traces._traces, without keeping what it builds. */
PyObject *hl_py_traces_list(hl_py_state *state, PyObject *traces);

#endif
