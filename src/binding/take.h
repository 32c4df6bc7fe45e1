/* take.h: functions that take snapshots and captures. See take.c. */
#ifndef HL_PY_TAKE_H
#define HL_PY_TAKE_H

#include "module.h"

PyObject *hl_py_take_traces(PyObject *module, PyObject *unused);
PyObject *hl_py_take_snapshot(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *hl_py_take_peak_snapshot(PyObject *module, PyObject *unused);
PyObject *hl_py_take_allocation_snapshot(PyObject *module, PyObject *unused);
PyObject *hl_py_take_capture(PyObject *module, PyObject *unused);
/* Makes objects of snapshots that were just taken. Takes ownership of the snapshots, also if it fails. */
bool hl_py_take_objects(hl_py_state *state, hl_snapshot *const *snapshots, size_t count, const hl_tracer_totals *tracer,
                        PyObject **objects);
/* Makes a Capture of the three given snapshots. Each may be None. */
PyObject *hl_py_make_capture(PyObject *module, PyObject *const *args, Py_ssize_t count);

#endif
