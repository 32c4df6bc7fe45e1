/* c_api.h: what we offer to extensions. See c_api.c. */
#ifndef HL_PY_C_API_H
#define HL_PY_C_API_H

#include "module.h"

/* Adds the capsule that heapledger.h looks for. Also installs the function that gets tracebacks for the interpreter. */
bool hl_py_c_api_add(PyObject *module);

#endif
