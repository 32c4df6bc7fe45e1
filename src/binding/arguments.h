/* arguments.h: arguments the way Python binds those of a function written in Python. See arguments.c. */
#ifndef HL_PY_ARGUMENTS_H
#define HL_PY_ARGUMENTS_H

#include "module.h"

/* The parameters of a function that is written in Python in the stdlib, so that its errors read the same. */
typedef struct {
    const char *function;     /* qualified name */
    const char *const *names; /* of the parameters but self */
    int self;                 /* 1 for a method, which counts itself */
    int required;
    int positional; /* how many may be given by position */
    int count;      /* the rest is keyword-only and optional */
} hl_py_signature;

/* Fill values[0..count) with borrowed references, NULL where not given. */
bool hl_py_arguments_parse(const hl_py_signature *signature, PyObject *args, PyObject *kwargs, PyObject **values);
/* Unpack exactly `count` values as an assignment does, into new references. */
bool hl_py_arguments_unpack(PyObject *object, int count, PyObject **values);

#endif
