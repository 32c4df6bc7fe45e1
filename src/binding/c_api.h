/* c_api.h: what extensions get from us. See c_api.c. */
#ifndef HL_PY_C_API_H
#define HL_PY_C_API_H

#include "module.h"

/* Add what the header for extensions looks for, and be ready for what extensions ask the interpreter. */
bool hl_py_c_api_add(PyObject *module);

#endif
