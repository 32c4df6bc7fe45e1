/* top_statistics.h: _top_statistics: the first statistics of a snapshot. See top_statistics.c. */
#ifndef HL_PY_TOP_STATISTICS_H
#define HL_PY_TOP_STATISTICS_H

#include "module.h"

PyObject *hl_py_top_statistics(PyObject *module, PyObject *args);

#endif
