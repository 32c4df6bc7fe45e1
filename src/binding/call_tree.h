/* call_tree.h: _call_tree: the call tree of several snapshots. See call_tree.c. */
#ifndef HL_PY_CALL_TREE_H
#define HL_PY_CALL_TREE_H

#include "module.h"

PyObject *hl_py_call_tree(PyObject *module, PyObject *args);

#endif
