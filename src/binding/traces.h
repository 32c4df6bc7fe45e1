/* traces.h: _Traces, the sequence of a snapshot's traces. See traces.c. */
#ifndef HL_PY_TRACES_H
#define HL_PY_TRACES_H

#include "module.h"
#include "view.h"

PyTypeObject *hl_py_traces_type_new(PyObject *module);
PyObject *hl_py_traces_new(hl_py_state *state, hl_py_view *view);
/* Returns the view of native traces that have not been changed (a new reference). Returns NULL without an exception for
 * others. */
hl_py_view *hl_py_traces_view(hl_py_state *state, PyObject *traces);
/* Returns traces._traces, but does not keep the list that it builds. */
PyObject *hl_py_traces_list(hl_py_state *state, PyObject *traces);

#endif
