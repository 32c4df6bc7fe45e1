/* unpickle.h: functions for python/heapledger/_unpickle.py. See unpickle.c. */
#ifndef HL_PY_UNPICKLE_H
#define HL_PY_UNPICKLE_H

#include "module.h"

PyObject *hl_py_unpickle_run(PyObject *module, PyObject *args);
PyObject *hl_py_unpickle_check(PyObject *module, PyObject *traces);

#endif
