/* sequence.c: the mixin methods of collections.abc.Sequence.
 *
 * Traceback and _Traces are registered as Sequences. They are not derived from it, because a C type cannot have ABCMeta
 * as its type. So the mixin methods are written here. Like the originals, they use only len() and [] of the object.
 */
#include "sequence.h"

#include "arguments.h"

PyObject *hl_py_sequence_reversed(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *result = NULL;
    PyObject *indices = NULL, *backwards = NULL, *getter = NULL;
    Py_ssize_t length = PyObject_Size(self);

    if (length < 0)
        return NULL;
    indices = PyObject_CallFunction((PyObject *)&PyRange_Type, "n", length);
    if (indices != NULL)
        backwards = PyObject_CallOneArg((PyObject *)&PyReversed_Type, indices);
    if (backwards != NULL)
        getter = PyObject_GetAttrString(self, "__getitem__");
    if (getter != NULL)
        result = PyObject_CallFunctionObjArgs((PyObject *)&PyMap_Type, getter, backwards, NULL);
    Py_XDECREF(getter);
    Py_XDECREF(backwards);
    Py_XDECREF(indices);
    return result;
}

/* Reads a bound of index(). None gives `missing`. A negative bound counts from the end. */
static bool bound(PyObject *self, PyObject *value, Py_ssize_t missing, Py_ssize_t *out)
{
    if (value == NULL || value == Py_None) {
        *out = missing;
        return true;
    }
    /* The comparison comes before the conversion. So an invalid value raises the same message as in the stdlib. */
    PyObject *zero = PyLong_FromLong(0);
    int negative = zero != NULL ? PyObject_RichCompareBool(value, zero, Py_LT) : -1;
    Py_XDECREF(zero);
    Py_ssize_t number = negative >= 0 ? PyNumber_AsSsize_t(value, NULL) : -1;
    if (number == -1 && PyErr_Occurred())
        return false;
    if (number < 0) {
        Py_ssize_t length = PyObject_Size(self);
        if (length < 0)
            return false;
        number += length;
    }
    *out = number;
    return true;
}

/* Returns the item at `index`. Past the end, returns NULL without an exception. */
static PyObject *item_or_end(PyObject *self, Py_ssize_t index)
{
    PyObject *item = PySequence_GetItem(self, index);

    if (item == NULL && PyErr_ExceptionMatches(PyExc_IndexError))
        PyErr_Clear();
    return item;
}

PyObject *hl_py_sequence_index(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"value", "start", "stop"};
    static const hl_py_signature signature = {"Sequence.index", names, 1, 1, 3, 3};
    PyObject *values[3];
    Py_ssize_t start, stop;

    if (!hl_py_arguments_parse(&signature, args, kwargs, values) || !bound(self, values[1], 0, &start) ||
        !bound(self, values[2], PY_SSIZE_T_MAX, &stop))
        return NULL;
    for (Py_ssize_t i = start < 0 ? 0 : start; i < stop; i++) {
        PyObject *item = item_or_end(self, i);
        if (item == NULL)
            break;
        int equal = PyObject_RichCompareBool(item, values[0], Py_EQ);
        Py_DECREF(item);
        if (equal < 0)
            return NULL;
        if (equal)
            return PyLong_FromSsize_t(i);
    }
    if (!PyErr_Occurred())
        PyErr_SetNone(PyExc_ValueError);
    return NULL;
}

PyObject *hl_py_sequence_count(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"value"};
    static const hl_py_signature signature = {"Sequence.count", names, 1, 1, 1, 1};
    PyObject *value;
    Py_ssize_t count = 0;

    if (!hl_py_arguments_parse(&signature, args, kwargs, &value))
        return NULL;
    for (Py_ssize_t i = 0;; i++) {
        PyObject *item = item_or_end(self, i);
        if (item == NULL)
            break;
        int equal = PyObject_RichCompareBool(item, value, Py_EQ);
        Py_DECREF(item);
        if (equal < 0)
            return NULL;
        count += equal;
    }
    return PyErr_Occurred() ? NULL : PyLong_FromSsize_t(count);
}

PyObject *hl_py_sequence_wrap(hl_py_state *state, PyObject *items, PyObject *(*make)(hl_py_state *, PyObject *))
{
    PyObject *view = PySequence_Tuple(items);
    if (view == NULL)
        return NULL;
    PyObject *wrapped = PyTuple_New(PyTuple_GET_SIZE(view));
    for (Py_ssize_t i = 0; wrapped != NULL && i < PyTuple_GET_SIZE(view); i++) {
        PyObject *item = make(state, PyTuple_GET_ITEM(view, i));
        if (item == NULL)
            Py_CLEAR(wrapped);
        else
            PyTuple_SET_ITEM(wrapped, i, item);
    }
    Py_DECREF(view);
    return wrapped;
}
