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
/* Changes a file name or pattern into the form that filters compare. */
PyObject *hl_py_match_normalize(PyObject *filename);
/* Translates a filter of ours with plain values. Returns 1 if that is done, 0 if the filter's _match must be called,
 * and -1 with an exception. *owner keeps the pattern alive. */
int hl_py_match_translate(hl_py_state *state, PyObject *filter, hl_filter *translated, PyObject **owner);

#endif
