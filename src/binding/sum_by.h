/* sum_by.h: _sum_by and _split: sums and parts of a snapshot by a key. See sum_by.c. */
#ifndef HL_PY_SUM_BY_H
#define HL_PY_SUM_BY_H

#include "module.h"

PyObject *hl_py_sum_by(PyObject *module, PyObject *args);
PyObject *hl_py_sum_by_split(PyObject *module, PyObject *args);

#endif
