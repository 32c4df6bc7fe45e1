/* snapshot_merge.h: the class method Snapshot.merge, and the same for captures. See snapshot_merge.c. */
#ifndef HL_PY_SNAPSHOT_MERGE_H
#define HL_PY_SNAPSHOT_MERGE_H

#include "module.h"

PyObject *hl_py_snapshot_merge(PyObject *type, PyObject *args, PyObject *kwargs);
PyObject *hl_py_snapshot_merge_captures(PyObject *module, PyObject *captures);

#endif
