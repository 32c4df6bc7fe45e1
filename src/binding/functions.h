/* functions.h: the module's functions. See functions.c. */
#ifndef HL_PY_FUNCTIONS_H
#define HL_PY_FUNCTIONS_H

#include "module.h"

extern PyMethodDef hl_py_functions[];
/* A frame limit from the object a caller gave for it. */
bool hl_py_functions_nframe(PyObject *object, uint32_t *nframe);

#endif
