/* window_object.h: _Window, the base of heapledger.trace. See window_object.c. */
#ifndef HL_PY_WINDOW_OBJECT_H
#define HL_PY_WINDOW_OBJECT_H

#include "module.h"

PyTypeObject *hl_py_window_type_new(PyObject *module);

#endif
