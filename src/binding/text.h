/* text.h: strings: formatting, sizes, UTF-8. See text.c. */
#ifndef HL_PY_TEXT_H
#define HL_PY_TEXT_H

#include "module.h"

/* `format` % args. Steals the reference to `args`, which may be NULL with an exception set. */
PyObject *hl_py_text_format(const char *format, PyObject *args);
PyObject *hl_py_text_size(PyObject *size, bool sign);
/* The UTF-8 bytes of `text`, including lone surrogates. *owner keeps them alive. */
const char *hl_py_text_utf8(PyObject *text, size_t *length, PyObject **owner);
PyObject *hl_py_text_decode(const char *bytes, size_t length);

#endif
