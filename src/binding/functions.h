/* functions.h: the functions of the module. See functions.c. */
#ifndef HL_PY_FUNCTIONS_H
#define HL_PY_FUNCTIONS_H

#include "module.h"

extern PyMethodDef hl_py_functions[];
/* Converts the object that a caller gave for the frame limit. */
bool hl_py_functions_nframe(PyObject *object, uint32_t *nframe);

#endif
