/* filters.h: BaseFilter, Filter and DomainFilter. See filters.c. */
#ifndef HL_PY_FILTERS_H
#define HL_PY_FILTERS_H

#include "module.h"

PyTypeObject *hl_py_base_filter_type_new(PyObject *module);
PyTypeObject *hl_py_filter_type_new(PyObject *module, PyTypeObject *base);
PyTypeObject *hl_py_domain_filter_type_new(PyObject *module, PyTypeObject *base);

#endif
