/* traceback.h: Traceback, a sequence of frames. See traceback.c and, for its text, traceback_format.c. */
#ifndef HL_PY_TRACEBACK_H
#define HL_PY_TRACEBACK_H

#include "../core/group.h"
#include "module.h"
#include "view.h"

PyTypeObject *hl_py_traceback_type_new(PyObject *module);
/* Makes the traceback of a group (hl_group.key) or, with HL_BY_STACK, of a trace. Steals `total`; NULL stands for
 * None. */
PyObject *hl_py_traceback_new(hl_py_state *state, hl_py_view *view, hl_key_type kind, uint32_t key, PyObject *total);

/* Traceback.format. */
PyObject *hl_py_traceback_format(PyObject *self, PyObject *args, PyObject *kwargs);

#endif
