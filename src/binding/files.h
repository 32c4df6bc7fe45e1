/* files.h: functions for python/heapledger/_files.py. See files.c. */
#ifndef HL_PY_FILES_H
#define HL_PY_FILES_H

#include "module.h"

PyObject *hl_py_files_prepare(PyObject *module, PyObject *args);
PyObject *hl_py_files_write(PyObject *module, PyObject *args);
PyObject *hl_py_files_read(PyObject *module, PyObject *data);
PyObject *hl_py_files_header(PyObject *module, PyObject *args);
PyObject *hl_py_files_section(PyObject *module, PyObject *args);
PyObject *hl_py_files_totals(PyObject *module, PyObject *args);
PyObject *hl_py_files_snapshot(PyObject *module, PyObject *args);
PyObject *hl_py_files_raw_metadata(PyObject *module, PyObject *snapshot);

#endif
