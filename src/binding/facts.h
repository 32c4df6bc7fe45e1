/* facts.h: what is known of the process and of the moment when a snapshot is taken. See facts.c. */
#ifndef HL_PY_FACTS_H
#define HL_PY_FACTS_H

#include "module.h"

/* What is known of snapshots that were taken just now, at one instant, with the facts of the tracer at that instant:
 * for each an object that python/heapledger/_metadata.py reads. False with an exception. */
bool hl_py_facts_take(hl_snapshot *const *snapshots, size_t count, const hl_tracer_facts *tracer, PyObject **facts);
PyObject *hl_py_facts_process(PyObject *module, PyObject *unused);

#endif
