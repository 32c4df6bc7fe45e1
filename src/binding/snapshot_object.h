/* snapshot_object.h: Snapshot. See snapshot_object.c. */
#ifndef HL_PY_SNAPSHOT_OBJECT_H
#define HL_PY_SNAPSHOT_OBJECT_H

#include "../core/group.h"
#include "module.h"

PyTypeObject *hl_py_snapshot_type_new(PyObject *module);
/* Snapshot with `traces` (stolen, may be NULL with an exception) as they are, and a limit (stolen too). */
PyObject *hl_py_snapshot_new(hl_py_state *state, PyObject *traces, PyObject *limit);
/* Give `snapshot` (stolen, may be NULL with an exception) its raw metadata (stolen too): see metadata.h. */
PyObject *hl_py_snapshot_with_raw_metadata(PyObject *snapshot, PyObject *raw_metadata);
/* A new reference; None when it has none. */
PyObject *hl_py_snapshot_raw_metadata(PyObject *snapshot);
/* What `name` groups by, 'traceback', 'filename' or 'lineno'. False with an exception: by none of these. */
bool hl_py_read_key_type(PyObject *name, hl_key_type *type);

#endif
