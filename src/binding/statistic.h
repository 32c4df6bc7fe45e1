/* statistic.h: Statistic and StatisticDiff, the sums of one group of traces. See statistic.c. */
#ifndef HL_PY_STATISTIC_H
#define HL_PY_STATISTIC_H

#include "../core/group.h"
#include "module.h"
#include "view.h"

PyTypeObject *hl_py_statistic_type_new(PyObject *module);
PyTypeObject *hl_py_difference_type_new(PyObject *module);
PyObject *hl_py_statistic_new(hl_py_state *state, hl_py_view *view, hl_key_type kind, const hl_group *group);
PyObject *hl_py_difference_new(hl_py_state *state, hl_py_view *view, hl_key_type kind, const hl_difference *difference);

#endif
