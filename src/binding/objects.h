/* objects.h: what several types share: pickling, comparison, hash, members. See objects.c. */
#ifndef HL_PY_OBJECTS_H
#define HL_PY_OBJECTS_H

#include "module.h"

PyObject *hl_py_object_reduce(PyObject *self, PyObject *unused);
PyObject *hl_py_object_getstate(PyObject *self, PyObject *unused);
PyObject *hl_py_object_missing(PyObject *self, const char *name);
/* The setter of attributes that are properties without a setter in the stdlib. The closure is the attribute's name. */
int hl_py_object_refuse(PyObject *self, PyObject *value, void *name);
#define HL_PY_READ_ONLY(name, getter, doc) {name, getter, hl_py_object_refuse, PyDoc_STR(doc), (void *)name}
/* object[index], fast for tuples. */
PyObject *hl_py_object_item(PyObject *object, Py_ssize_t index);
/* Compares the values that `key` returns (new references), like a class with __eq__. If `ordered`, also like
 * total_ordering. */
PyObject *hl_py_object_compare(PyObject *self, PyObject *other, int op, PyTypeObject *type, bool ordered,
                               PyObject *(*key)(PyObject *));
Py_hash_t hl_py_object_hash(PyObject *self, PyObject *(*key)(PyObject *));

/* Members that give instances a __dict__ and weak references. */
#define HL_PY_DICT_MEMBERS(type)                                               \
    {"__dictoffset__", T_PYSSIZET, offsetof(type, dict), READONLY, NULL},      \
    {                                                                          \
        "__weaklistoffset__", T_PYSSIZET, offsetof(type, weak), READONLY, NULL \
    }

#endif
