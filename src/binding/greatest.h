/* greatest.h: _greatest: the first of a snapshot's statistics. See greatest.c. */
#ifndef HL_PY_GREATEST_H
#define HL_PY_GREATEST_H

#include "module.h"

PyObject *hl_py_greatest(PyObject *module, PyObject *args);

#endif
