/* text.c: strings: formatting as Python's % operator does, sizes for people, UTF-8.
 *
 * Formatting uses the % operator itself. So unusual values give the same text and the same errors as in the stdlib.
 */
#include "text.h"

PyObject *hl_py_text_format(const char *format, PyObject *args)
{
    if (args == NULL)
        return NULL;
    PyObject *text = NULL;
    PyObject *pattern = PyUnicode_FromString(format);
    if (pattern != NULL) {
        text = PyUnicode_Format(pattern, args);
        Py_DECREF(pattern);
    }
    Py_DECREF(args);
    return text;
}

/* abs(size) < limit: returns 1, 0, or -1 with an exception. */
static int magnitude_below(PyObject *size, long limit)
{
    PyObject *magnitude = PyNumber_Absolute(size);
    PyObject *bound = magnitude != NULL ? PyLong_FromLong(limit) : NULL;
    int below = bound != NULL ? PyObject_RichCompareBool(magnitude, bound, Py_LT) : -1;

    Py_XDECREF(bound);
    Py_XDECREF(magnitude);
    return below;
}

static PyObject *in_unit(PyObject *size, bool sign, bool fraction, const char *unit)
{
    char format[16];

    snprintf(format, sizeof(format), "%%%s.%df %s", sign ? "+" : "", fraction ? 1 : 0, unit);
    return hl_py_text_format(format, PyTuple_Pack(1, size));
}

PyObject *hl_py_text_size(PyObject *size, bool sign)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    const int last = (int)(sizeof(units) / sizeof(units[0])) - 1;
    PyObject *kilo = PyLong_FromLong(1024);
    PyObject *text = NULL;

    Py_INCREF(size);
    for (int i = 0; kilo != NULL && size != NULL; i++) {
        int small = magnitude_below(size, 100);
        int medium = small < 0 || i == last ? small : magnitude_below(size, 10 * 1024);
        if (small < 0 || medium < 0)
            break;
        if ((small && i > 0) || medium || i == last) {
            text = in_unit(size, sign, small && i > 0, units[i]);
            break;
        }
        Py_SETREF(size, PyNumber_TrueDivide(size, kilo));
    }
    Py_XDECREF(size);
    Py_XDECREF(kilo);
    return text;
}

const char *hl_py_text_utf8(PyObject *text, size_t *length, PyObject **owner)
{
    Py_ssize_t size;
    const char *bytes = PyUnicode_AsUTF8AndSize(text, &size);

    if (bytes != NULL) {
        *owner = Py_NewRef(text);
    } else {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
            return NULL;
        PyErr_Clear();
        *owner = PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass");
        if (*owner == NULL)
            return NULL;
        bytes = PyBytes_AS_STRING(*owner);
        size = PyBytes_GET_SIZE(*owner);
    }
    *length = (size_t)size;
    return bytes;
}

PyObject *hl_py_text_decode(const char *bytes, size_t length)
{
    return PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)length, "surrogatepass");
}
