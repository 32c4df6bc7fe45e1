/* frame.h: Frame, one line of a traceback. See frame.c. */
#ifndef HL_PY_FRAME_H
#define HL_PY_FRAME_H

#include "module.h"

PyTypeObject *hl_py_frame_type_new(PyObject *module);
/* Makes Frame(frame). `name` is the name of the function, or NULL. */
PyObject *hl_py_frame_new(hl_py_state *state, PyObject *frame, PyObject *name);

#endif
