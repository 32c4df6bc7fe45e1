/* selection.h: which traces pass a list of filters? See selection.c. */
#ifndef HL_PY_SELECTION_H
#define HL_PY_SELECTION_H

#include "module.h"

/* Implements Snapshot.filter_traces for the attribute `traces`. Returns the new traces object, or a list that the
 * caller must wrap. */
PyObject *hl_py_selection_filter(hl_py_state *state, PyObject *traces, PyObject *filters);

#endif
