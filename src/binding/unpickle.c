/* unpickle.c: the fast part of python/heapledger/_unpickle.py, which reads pickles of snapshots.
 *
 * Such a pickle consists mostly of tuples of small numbers and of objects in the memo. This file executes runs of
 * instructions for these, on the lists of the Python code. It leaves everything else, and every error, to the Python
 * code. So this file raises no errors of its own, and both together do what the Python code alone would do.
 *
 * Threading: the GIL. Nothing else uses the lists.
 */
#include "unpickle.h"

#include "memo.h"

enum {
    BININT1 = 0x4b,
    BININT2 = 0x4d,
    BININT = 0x4a,
    NONE = 0x4e,
    MARK = 0x28,
    TUPLE = 0x74,
    TUPLE1 = 0x85,
    TUPLE2 = 0x86,
    TUPLE3 = 0x87,
    MEMOIZE = 0x94,
    BINGET = 0x68,
    LONG_BINGET = 0x6a,
    BINPUT = 0x71,
    LONG_BINPUT = 0x72,
};

typedef struct {
    PyObject *stack, *marks, *memo;
} machine;

static uint32_t little(const uint8_t *bytes, int count)
{
    uint32_t value = 0;

    for (int i = 0; i < count; i++)
        value |= (uint32_t)bytes[i] << 8 * i;
    return value;
}

/* The number of argument bytes of an instruction that this file executes. Returns -1 for other instructions. */
static int argument_length(uint8_t code)
{
    switch (code) {
    case NONE:
    case MARK:
    case TUPLE:
    case TUPLE1:
    case TUPLE2:
    case TUPLE3:
    case MEMOIZE:
        return 0;
    case BININT1:
    case BINGET:
    case BINPUT:
        return 1;
    case BININT2:
        return 2;
    case BININT:
    case LONG_BINGET:
    case LONG_BINPUT:
        return 4;
    default:
        return -1;
    }
}

/* Each of these functions returns 1 if the work is done, 0 to leave it to the Python code, and -1 with an exception. */

static int push(PyObject *list, PyObject *value)
{
    if (value == NULL)
        return -1;
    int result = PyList_Append(list, value);
    Py_DECREF(value);
    return result < 0 ? -1 : 1;
}

static int make_tuple(const machine *m, Py_ssize_t start)
{
    Py_ssize_t length = PyList_GET_SIZE(m->stack);

    if (start < 0 || start > length)
        return 0;
    PyObject *tuple = PyTuple_New(length - start);
    if (tuple == NULL)
        return -1;
    for (Py_ssize_t i = start; i < length; i++)
        PyTuple_SET_ITEM(tuple, i - start, Py_NewRef(PyList_GET_ITEM(m->stack, i)));
    if (PyList_SetSlice(m->stack, start, length, NULL) < 0) {
        Py_DECREF(tuple);
        return -1;
    }
    return push(m->stack, tuple);
}

static int make_marked_tuple(const machine *m)
{
    Py_ssize_t count = PyList_GET_SIZE(m->marks);

    if (count == 0)
        return 0;
    Py_ssize_t start = PyLong_AsSsize_t(PyList_GET_ITEM(m->marks, count - 1));
    if (start == -1 && PyErr_Occurred())
        return -1;
    if (start > PyList_GET_SIZE(m->stack))
        return 0;
    return PyList_SetSlice(m->marks, count - 1, count, NULL) < 0 ? -1 : make_tuple(m, start);
}

/* Handles only the next place of the memo. The Python code checks places further on. */
static int remember(const machine *m, uint32_t place)
{
    Py_ssize_t length = PyList_GET_SIZE(m->stack);

    if (length == 0 || (Py_ssize_t)place != PyList_GET_SIZE(m->memo))
        return 0;
    return push(m->memo, Py_NewRef(PyList_GET_ITEM(m->stack, length - 1)));
}

static int recall(const machine *m, uint32_t place)
{
    if ((Py_ssize_t)place >= PyList_GET_SIZE(m->memo))
        return 0;
    PyObject *found = PyList_GET_ITEM(m->memo, (Py_ssize_t)place);
    return found == Py_Ellipsis ? 0 : push(m->stack, Py_NewRef(found));
}

static int step(const machine *m, uint8_t code, const uint8_t *argument)
{
    switch (code) {
    case BININT1:
        return push(m->stack, PyLong_FromLong(argument[0]));
    case BININT2:
        return push(m->stack, PyLong_FromUnsignedLong(little(argument, 2)));
    case BININT:
        return push(m->stack, PyLong_FromLong((int32_t)little(argument, 4)));
    case NONE:
        return push(m->stack, Py_NewRef(Py_None));
    case MARK:
        return push(m->marks, PyLong_FromSsize_t(PyList_GET_SIZE(m->stack)));
    case TUPLE:
        return make_marked_tuple(m);
    case TUPLE1:
    case TUPLE2:
    case TUPLE3:
        return make_tuple(m, PyList_GET_SIZE(m->stack) - (code - TUPLE1 + 1));
    case MEMOIZE:
        return remember(m, (uint32_t)PyList_GET_SIZE(m->memo));
    case BINPUT:
        return remember(m, argument[0]);
    case LONG_BINPUT:
        return remember(m, little(argument, 4));
    case BINGET:
        return recall(m, argument[0]);
    default: /* LONG_BINGET */
        return recall(m, little(argument, 4));
    }
}

PyObject *hl_py_unpickle_run(PyObject *module, PyObject *args)
{
    PyObject *data;
    Py_ssize_t at;
    machine m;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!nO!O!O!", &PyBytes_Type, &data, &at, &PyList_Type, &m.stack, &PyList_Type, &m.marks,
                          &PyList_Type, &m.memo))
        return NULL;
    HL_PY_OWN_WORK;
    const uint8_t *bytes = (const uint8_t *)PyBytes_AS_STRING(data);
    Py_ssize_t length = PyBytes_GET_SIZE(data);
    while (at >= 0 && at < length) {
        int argument = argument_length(bytes[at]);
        if (argument < 0 || argument > length - at - 1)
            break;
        int done = step(&m, bytes[at], bytes + at + 1);
        if (done < 0)
            return NULL;
        if (done == 0)
            break;
        at += 1 + argument;
    }
    return PyLong_FromSsize_t(at);
}

/* --- traces --- */

static bool is_number(PyObject *value, long long most)
{
    int overflow;

    if (!PyLong_CheckExact(value))
        return false;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow == 0 && number >= 0 && number <= most;
}

static bool is_frame(PyObject *frame)
{
    return PyTuple_CheckExact(frame) && PyTuple_GET_SIZE(frame) == 2 &&
           PyUnicode_CheckExact(PyTuple_GET_ITEM(frame, 0)) && is_number(PyTuple_GET_ITEM(frame, 1), UINT32_MAX);
}

/* Is it (domain, size, frames, total)? The total may be missing. Returns 1 if so, 0 with *wrong set, or -1 with an
 * exception. The memo has the frames that are known to be valid. */
static int check_trace(PyObject *trace, hl_py_memo *memo, const char **wrong)
{
    Py_ssize_t length = PyTuple_CheckExact(trace) ? PyTuple_GET_SIZE(trace) : 0;

    *wrong = "is not a tuple of 4";
    if (length != 3 && length != 4)
        return 0;
    PyObject *frames = PyTuple_GET_ITEM(trace, 2);
    *wrong = "has no domain, size and frames";
    if (!is_number(PyTuple_GET_ITEM(trace, 0), UINT32_MAX) || !is_number(PyTuple_GET_ITEM(trace, 1), INT64_MAX) ||
        !PyTuple_CheckExact(frames))
        return 0;
    *wrong = "has a total that is no number of frames";
    if (length == 4 && PyTuple_GET_ITEM(trace, 3) != Py_None && !is_number(PyTuple_GET_ITEM(trace, 3), UINT32_MAX))
        return 0;
    hl_py_memo_entry *entry = hl_py_memo_find(memo, frames);
    if (entry == NULL)
        return -1;
    if (entry->object != NULL)
        return 1;
    *wrong = "has a frame that is not a file and a line";
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(frames); i++) {
        if (!is_frame(PyTuple_GET_ITEM(frames, i)))
            return 0;
    }
    hl_py_memo_enter(memo, entry, frames, 0);
    return 1;
}

PyObject *hl_py_unpickle_check(PyObject *module, PyObject *traces)
{
    hl_py_memo memo = {0};
    const char *wrong = NULL;
    int result = 1;

    (void)module;
    if (!PyList_CheckExact(traces)) {
        PyErr_SetString(PyExc_TypeError, "traces must be a list");
        return NULL;
    }
    HL_PY_OWN_WORK;
    Py_ssize_t at = 0;
    for (; at < PyList_GET_SIZE(traces) && result > 0; at++) {
        result = check_trace(PyList_GET_ITEM(traces, at), &memo, &wrong);
        if (at % 65536 == 65535 && PyErr_CheckSignals() < 0)
            result = -1;
    }
    hl_py_memo_free(&memo);
    if (result > 0)
        Py_RETURN_NONE;
    return result == 0 ? Py_BuildValue("(ns)", at - 1, wrong) : NULL;
}
