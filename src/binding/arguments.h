/* arguments.h: binds arguments as Python does for a function written in Python. See arguments.c. */
#ifndef HL_PY_ARGUMENTS_H
#define HL_PY_ARGUMENTS_H

#include "module.h"

/* The parameters of a function that the stdlib writes in Python. With them, our error messages are the same. */
typedef struct {
    const char *function;     /* the qualified name */
    const char *const *names; /* of the parameters, without self */
    int self;                 /* 1 for a method, because messages count self */
    int required;
    int positional; /* number of parameters that may be given by position */
    int count;      /* of all parameters; the others are keyword-only and optional */
} hl_py_signature;

/* Fills values[0..count) with borrowed references. The value is NULL if the argument is not given. */
bool hl_py_arguments_parse(const hl_py_signature *signature, PyObject *args, PyObject *kwargs, PyObject **values);
/* Unpacks exactly `count` values, as an assignment does, into new references. */
bool hl_py_arguments_unpack(PyObject *object, int count, PyObject **values);

#endif
