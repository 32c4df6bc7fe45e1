/* metadata.h: what is known of the process and of the moment when a snapshot is taken. See metadata.c. */
#ifndef HL_PY_METADATA_H
#define HL_PY_METADATA_H

#include "module.h"

/* What is known of snapshots that were taken just now, at one instant, with the raw metadata of the tracer at that
 * instant: for each an object that python/heapledger/_metadata.py reads. False with an exception. */
bool hl_py_metadata_take(hl_snapshot *const *snapshots, size_t count, const hl_tracer_totals *tracer,
                         PyObject **raw_metadata);
PyObject *hl_py_metadata_process_memory(PyObject *module, PyObject *unused);

#endif
