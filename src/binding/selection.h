/* selection.h: which traces pass a list of filters? See selection.c. */
#ifndef HL_PY_SELECTION_H
#define HL_PY_SELECTION_H

#include "module.h"

/* Snapshot.filter_traces, given the traces attribute: the new traces object, or a list for the caller to wrap. */
PyObject *hl_py_selection_filter(hl_py_state *state, PyObject *traces, PyObject *filters);

#endif
