/* snapshot_object.h: Snapshot. See snapshot_object.c. */
#ifndef HL_PY_SNAPSHOT_OBJECT_H
#define HL_PY_SNAPSHOT_OBJECT_H

#include "../core/group.h"
#include "module.h"

PyTypeObject *hl_py_snapshot_type_new(PyObject *module);
/* Makes a Snapshot with `traces`, unchanged, and a limit. Steals both references. `traces` may be NULL with an
 * exception. */
PyObject *hl_py_snapshot_new(hl_py_state *state, PyObject *traces, PyObject *limit);
/* Gives `snapshot` its raw metadata (see metadata.h). Steals both references. `snapshot` may be NULL with an
 * exception. */
PyObject *hl_py_snapshot_with_raw_metadata(PyObject *snapshot, PyObject *raw_metadata);
/* Returns a new reference. Returns None if there are no raw metadata. */
PyObject *hl_py_snapshot_raw_metadata(PyObject *snapshot);
/* Reads the name of a key: 'traceback', 'filename' or 'lineno'. Returns false with an exception for any other name. */
bool hl_py_read_key_type(PyObject *name, hl_key_type *type);

#endif
