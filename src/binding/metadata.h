/* metadata.h: data about the process and the moment when a snapshot is taken. See metadata.c. */
#ifndef HL_PY_METADATA_H
#define HL_PY_METADATA_H

#include "module.h"

/* Makes the raw metadata of snapshots that were just taken at one instant. `tracer` holds the totals of the tracer at
 * that instant. The result is one object for each snapshot, which python/heapledger/_metadata.py reads. Returns false
 * with an exception. */
bool hl_py_metadata_take(hl_snapshot *const *snapshots, size_t count, const hl_tracer_totals *tracer,
                         PyObject **raw_metadata);
PyObject *hl_py_metadata_process_memory(PyObject *module, PyObject *unused);

#endif
