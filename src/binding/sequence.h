/* sequence.h: the methods of collections.abc.Sequence, for Traceback and _Traces. See sequence.c. */
#ifndef HL_PY_SEQUENCE_H
#define HL_PY_SEQUENCE_H

#include "module.h"

PyObject *hl_py_sequence_reversed(PyObject *self, PyObject *unused);
PyObject *hl_py_sequence_index(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *hl_py_sequence_count(PyObject *self, PyObject *args, PyObject *kwargs);
/* tuple(make(item) for item in items) */
PyObject *hl_py_sequence_wrap(hl_py_state *state, PyObject *items, PyObject *(*make)(hl_py_state *, PyObject *));
#define HL_PY_SEQUENCE_METHODS                                                                     \
    {"__reversed__", hl_py_sequence_reversed, METH_NOARGS, NULL},                                  \
        {"index", (PyCFunction)(void (*)(void))hl_py_sequence_index, METH_VARARGS | METH_KEYWORDS, \
         PyDoc_STR("index(value, start=0, stop=None): first index of value, or ValueError.")},     \
    {                                                                                              \
        "count", (PyCFunction)(void (*)(void))hl_py_sequence_count, METH_VARARGS | METH_KEYWORDS,  \
            PyDoc_STR("count(value): number of occurrences of value.")                             \
    }

#endif
