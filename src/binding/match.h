/* match.h: does a trace match a filter? The methods of the filters. See match.c. */
#ifndef HL_PY_MATCH_H
#define HL_PY_MATCH_H

#include "../core/filter.h"
#include "module.h"

PyObject *hl_py_match_base(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *hl_py_match_frame_impl(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *hl_py_match_frame(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *hl_py_match_traceback(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *hl_py_match_filter(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *hl_py_match_domain_filter(PyObject *self, PyObject *args, PyObject *kwargs);
/* A file name or pattern as filters compare it. */
PyObject *hl_py_match_normalize(PyObject *filename);
/* Translate a filter of ours with plain values; 1 done, 0 it must be asked through its _match, -1 exception.
 * *owner keeps the pattern alive. */
int hl_py_match_translate(hl_py_state *state, PyObject *filter, hl_filter *translated, PyObject **owner);

#endif
