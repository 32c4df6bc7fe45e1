/* arguments.c: binds arguments as Python does for a function written in Python.
 *
 * The classes of the stdlib are Python code. Programs and tests read the messages of their TypeErrors, and the parser
 * of the C API uses other messages. The checks come in the interpreter's order: keywords first, then too many
 * arguments, then missing ones.
 */
#include "arguments.h"

static int find_name(const hl_py_signature *signature, PyObject *keyword)
{
    for (int i = 0; i < signature->count; i++) {
        if (PyUnicode_CompareWithASCIIString(keyword, signature->names[i]) == 0)
            return i;
    }
    return -1;
}

static bool bind_keywords(const hl_py_signature *signature, PyObject *kwargs, PyObject **values)
{
    Py_ssize_t position = 0;
    PyObject *keyword, *value;

    while (PyDict_Next(kwargs, &position, &keyword, &value)) {
        if (!PyUnicode_Check(keyword)) {
            PyErr_Format(PyExc_TypeError, "%s() keywords must be strings", signature->function);
            return false;
        }
        int found = find_name(signature, keyword);
        if (found < 0) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%S'", signature->function, keyword);
            return false;
        }
        if (values[found] != NULL) {
            PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%S'", signature->function, keyword);
            return false;
        }
        values[found] = value;
    }
    return true;
}

static void raise_too_many(const hl_py_signature *signature, Py_ssize_t given)
{
    int least = signature->required + signature->self;
    int most = signature->positional + signature->self;

    given += signature->self;
    const char *verb = given == 1 ? "was" : "were";
    if (least < most)
        PyErr_Format(PyExc_TypeError, "%s() takes from %d to %d positional arguments but %zd %s given",
                     signature->function, least, most, given, verb);
    else
        PyErr_Format(PyExc_TypeError, "%s() takes %d positional argument%s but %zd %s given", signature->function, most,
                     most == 1 ? "" : "s", given, verb);
}

static void raise_missing(const hl_py_signature *signature, PyObject **values)
{
    char list[200] = "";
    size_t length = 0;
    int missing = 0, listed = 0;

    for (int i = 0; i < signature->required; i++)
        missing += values[i] == NULL;
    for (int i = 0; i < signature->required; i++) {
        if (values[i] != NULL)
            continue;
        listed++;
        const char *before = "";
        if (listed > 1)
            before = listed < missing ? ", " : missing == 2 ? " and " : ", and ";
        int written = snprintf(list + length, sizeof(list) - length, "%s'%s'", before, signature->names[i]);
        length += (size_t)written;
        if (length >= sizeof(list))
            break;
    }
    PyErr_Format(PyExc_TypeError, "%s() missing %d required positional argument%s: %s", signature->function, missing,
                 missing == 1 ? "" : "s", list);
}

bool hl_py_arguments_parse(const hl_py_signature *signature, PyObject *args, PyObject *kwargs, PyObject **values)
{
    Py_ssize_t given = PyTuple_GET_SIZE(args);

    for (int i = 0; i < signature->count; i++)
        values[i] = i < given && i < signature->positional ? PyTuple_GET_ITEM(args, i) : NULL;
    if (kwargs != NULL && !bind_keywords(signature, kwargs, values))
        return false;
    if (given > signature->positional) {
        raise_too_many(signature, given);
        return false;
    }
    for (int i = 0; i < signature->required; i++) {
        if (values[i] == NULL) {
            raise_missing(signature, values);
            return false;
        }
    }
    return true;
}

static void raise_too_many_values(PyObject *object, int count)
{
#if PY_VERSION_HEX >= 0x030E0000
    if (PyTuple_CheckExact(object) || PyList_CheckExact(object) || PyDict_CheckExact(object)) {
        Py_ssize_t size = PyObject_Size(object);
        if (size > count) {
            PyErr_Format(PyExc_ValueError, "too many values to unpack (expected %d, got %zd)", count, size);
            return;
        }
    }
#else
    (void)object;
#endif
    PyErr_Format(PyExc_ValueError, "too many values to unpack (expected %d)", count);
}

static bool unpack_iterator(PyObject *object, PyObject *iterator, int count, PyObject **values)
{
    int got = 0;

    for (; got < count; got++) {
        values[got] = PyIter_Next(iterator);
        if (values[got] == NULL)
            break;
    }
    PyObject *extra = got == count ? PyIter_Next(iterator) : NULL;
    if (got == count && extra == NULL && !PyErr_Occurred())
        return true;
    if (extra != NULL) {
        Py_DECREF(extra);
        raise_too_many_values(object, count);
    } else if (!PyErr_Occurred()) {
        PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected %d, got %d)", count, got);
    }
    for (int i = 0; i < got; i++)
        Py_CLEAR(values[i]);
    return false;
}

bool hl_py_arguments_unpack(PyObject *object, int count, PyObject **values)
{
    if (PyTuple_CheckExact(object) && PyTuple_GET_SIZE(object) == count) {
        for (int i = 0; i < count; i++)
            values[i] = Py_NewRef(PyTuple_GET_ITEM(object, i));
        return true;
    }
    PyObject *iterator = PyObject_GetIter(object);
    if (iterator == NULL) {
        if (PyErr_ExceptionMatches(PyExc_TypeError) && Py_TYPE(object)->tp_iter == NULL && !PySequence_Check(object))
            PyErr_Format(PyExc_TypeError, "cannot unpack non-iterable %.200s object", Py_TYPE(object)->tp_name);
        return false;
    }
    bool done = unpack_iterator(object, iterator, count, values);
    Py_DECREF(iterator);
    return done;
}
