/* traceback_format.c: Traceback.format: a traceback as lines of text, with source lines if they can be found.
 *
 * This code uses only the public interface of the traceback, because subclasses may override it. It looks up linecache
 * at each call, because programs import it late and tests replace its getline.
 */
#include "traceback.h"

#include "arguments.h"

/* Returns self[-limit:], self[:limit] or self, reversed if requested. */
static PyObject *frames_to_format(PyObject *self, PyObject *limit, PyObject *most_recent_first)
{
    PyObject *chosen = NULL;

    if (limit == NULL || limit == Py_None) {
        chosen = Py_NewRef(self);
    } else {
        PyObject *zero = PyLong_FromLong(0);
        int newest = zero != NULL ? PyObject_RichCompareBool(limit, zero, Py_GT) : -1;
        Py_XDECREF(zero);
        if (newest < 0)
            return NULL;
        PyObject *bound = newest ? PyNumber_Negative(limit) : Py_NewRef(limit);
        PyObject *slice = NULL;
        if (bound != NULL)
            slice = newest ? PySlice_New(bound, NULL, NULL) : PySlice_New(NULL, bound, NULL);
        if (slice != NULL)
            chosen = PyObject_GetItem(self, slice);
        Py_XDECREF(slice);
        Py_XDECREF(bound);
    }
    int reverse = chosen == NULL || most_recent_first == NULL ? 0 : PyObject_IsTrue(most_recent_first);
    if (reverse < 0)
        Py_CLEAR(chosen);
    if (reverse > 0)
        Py_SETREF(chosen, PyObject_CallOneArg((PyObject *)&PyReversed_Type, chosen));
    return chosen;
}

static int append_new(PyObject *list, PyObject *item)
{
    if (item == NULL)
        return -1;
    int result = PyList_Append(list, item);
    Py_DECREF(item);
    return result;
}

/* Appends the line that names the frame and, if it can be found, its source line. */
static bool format_frame(PyObject *lines, PyObject *frame, PyObject *linecache)
{
    bool done = false;
    PyObject *source = NULL, *stripped = NULL;
    PyObject *filename = PyObject_GetAttrString(frame, "filename");
    PyObject *lineno = filename != NULL ? PyObject_GetAttrString(frame, "lineno") : NULL;

    if (lineno == NULL || append_new(lines, PyUnicode_FromFormat("  File \"%S\", line %S", filename, lineno)) < 0)
        goto out;
    source = PyObject_CallMethod(linecache, "getline", "OO", filename, lineno);
    stripped = source != NULL ? PyObject_CallMethod(source, "strip", NULL) : NULL;
    if (stripped == NULL)
        goto out;
    int there = PyObject_IsTrue(stripped);
    if (there < 0 || (there && append_new(lines, PyUnicode_FromFormat("    %S", stripped)) < 0))
        goto out;
    done = true;
out:
    Py_XDECREF(stripped);
    Py_XDECREF(source);
    Py_XDECREF(lineno);
    Py_XDECREF(filename);
    return done;
}

PyObject *hl_py_traceback_format(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"limit", "most_recent_first"};
    static const hl_py_signature signature = {"Traceback.format", names, 1, 0, 2, 2};
    PyObject *values[2];
    PyObject *iterator = NULL, *lines = NULL, *frame;

    if (!hl_py_arguments_parse(&signature, args, kwargs, values))
        return NULL;
    HL_PY_OWN_WORK;
    PyObject *linecache = PyImport_ImportModule("linecache");
    PyObject *chosen = linecache != NULL ? frames_to_format(self, values[0], values[1]) : NULL;
    if (chosen != NULL)
        iterator = PyObject_GetIter(chosen);
    if (iterator != NULL)
        lines = PyList_New(0);
    while (lines != NULL && (frame = PyIter_Next(iterator)) != NULL) {
        if (!format_frame(lines, frame, linecache))
            Py_CLEAR(lines);
        Py_DECREF(frame);
    }
    if (PyErr_Occurred())
        Py_CLEAR(lines);
    Py_XDECREF(iterator);
    Py_XDECREF(chosen);
    Py_XDECREF(linecache);
    return lines;
}
