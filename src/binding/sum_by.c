/* sum_by.c: _sum_by and _split: sums and parts of a snapshot by a key. Python code gives each location its key
 * (core/sums.h).
 *
 * Threading: the GIL, released while the core reads the rows. Asking for keys runs any code, so the view is held in the
 * meantime.
 */
#include "sum_by.h"

#include "../core/sums.h"
#include "convert.h"
#include "snapshot_object.h"
#include "traces.h"
#include "view.h"

/* Returns a new reference to the key of a location. */
static PyObject *ask(hl_py_view *view, PyObject *function, hl_location_id id)
{
    const hl_location *location = hl_names_get_location(view->snapshot->names, id);
    PyObject *file = hl_py_view_string(view, location->file);
    PyObject *name = location->name != 0 ? hl_py_view_string(view, location->name) : Py_NewRef(Py_None);
    PyObject *key = NULL;
    if (file != NULL && name != NULL)
        key = PyObject_CallFunction(function, "OIO", file, (unsigned int)location->line, name);
    Py_XDECREF(file);
    Py_XDECREF(name);
    return key;
}

/* Finds the number of a key, counted from 0. `numbers` has all keys so far. Returns false with an exception. */
static bool number_of(PyObject *numbers, PyObject *key, uint32_t *number)
{
    PyObject *next = PyLong_FromSsize_t(PyDict_GET_SIZE(numbers));
    PyObject *found = next != NULL ? PyDict_SetDefault(numbers, key, next) : NULL; /* borrowed */
    *number = found != NULL ? (uint32_t)PyLong_AsUnsignedLong(found) : 0;
    Py_XDECREF(next);
    return found != NULL;
}

static bool number_keys(const hl_sums *sums, hl_py_view *view, PyObject *function, PyObject *numbers, uint32_t *keys)
{
    for (uint32_t i = 0; i < sums->count; i++) {
        PyObject *key = ask(view, function, sums->locations[i]);
        bool numbered = key == Py_None || (key != NULL && number_of(numbers, key, &keys[i]));
        if (key == Py_None)
            keys[i] = HL_SUMS_NO_KEY;
        Py_XDECREF(key);
        if (!numbered)
            return false;
    }
    return true;
}

/* If no row counts for a key, the key is not in the result. */
static bool put_sum(PyObject *made, PyObject *key, const hl_sum *result)
{
    if (result->blocks == 0)
        return true;
    PyObject *sum = Py_BuildValue("(KK)", (unsigned long long)result->bytes, (unsigned long long)result->blocks);
    bool done = sum != NULL && PyDict_SetItem(made, key, sum) == 0;
    Py_XDECREF(sum);
    return done;
}

/* Makes {key: (bytes, blocks)}. `results` has the order of `numbers`, and ends with the sum of what has no key. */
static PyObject *make_result(PyObject *numbers, const hl_sum *results)
{
    PyObject *made = PyDict_New(), *key, *number;
    Py_ssize_t at = 0;
    bool done = made != NULL;
    for (; done && PyDict_Next(numbers, &at, &key, &number); results++)
        done = put_sum(made, key, results);
    if (done)
        done = put_sum(made, Py_None, results);
    if (!done)
        Py_CLEAR(made);
    return made;
}

static PyObject *add_up(const hl_sums *sums, hl_py_view *view, PyObject *function)
{
    PyObject *numbers = PyDict_New(), *made = NULL;
    uint32_t *keys = PyMem_Malloc(((size_t)sums->count + 1) * sizeof *keys);
    hl_sum *results = NULL;
    if (numbers != NULL && keys != NULL && number_keys(sums, view, function, numbers, keys)) {
        uint32_t count = (uint32_t)PyDict_GET_SIZE(numbers);
        results = PyMem_Malloc(((size_t)count + 1) * sizeof *results);
        if (results != NULL) {
            hl_status status;
            Py_BEGIN_ALLOW_THREADS
            status = hl_sums_add(sums, keys, count, results);
            Py_END_ALLOW_THREADS
            made = status == HL_OK ? make_result(numbers, results) : hl_py_raise_status(status);
        }
    }
    if (made == NULL && !PyErr_Occurred())
        PyErr_NoMemory();
    PyMem_Free(results);
    PyMem_Free(keys);
    Py_XDECREF(numbers);
    return made;
}

static bool read_frames(const char *name, hl_sums_frames *frames)
{
    static const char *const names[] = {[HL_SUMS_NEWEST] = "newest", [HL_SUMS_FIRST] = "first", [HL_SUMS_ALL] = "all"};
    for (int i = HL_SUMS_NEWEST; i <= HL_SUMS_ALL; i++) {
        *frames = (hl_sums_frames)i;
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

PyObject *hl_py_sum_by(PyObject *module, PyObject *args)
{
    hl_py_state *state = hl_py_state_of_module(module);
    PyObject *snapshot, *function, *made = NULL;
    const char *which;
    hl_sums_frames frames;
    hl_status status;
    hl_sums sums;

    if (!PyArg_ParseTuple(args, "O!Os", state->snapshot, &snapshot, &function, &which))
        return NULL;
    if (!read_frames(which, &frames))
        return PyErr_Format(PyExc_ValueError, "unknown frames: %R", PyTuple_GET_ITEM(args, 2));
    HL_PY_OWN_WORK;
    hl_py_view *view = hl_py_convert_snapshot(state, snapshot, true);
    if (view == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = hl_sums_open(&sums, view->snapshot, frames);
    Py_END_ALLOW_THREADS
    if (status == HL_OK) {
        made = add_up(&sums, view, function);
        hl_sums_close(&sums);
    } else {
        hl_py_raise_status(status);
    }
    Py_DECREF(view);
    return made;
}

/* --- _split --- */

/* Stores the function's answer for each location: 1, 0, or HL_SUMS_NO_KEY for None. */
static bool ask_all(const hl_sums *sums, hl_py_view *view, PyObject *function, uint32_t *keys)
{
    for (uint32_t i = 0; i < sums->count; i++) {
        PyObject *answer = ask(view, function, sums->locations[i]);
        int truth = answer != NULL && answer != Py_None ? PyObject_IsTrue(answer) : -1;
        bool none = answer == Py_None;
        Py_XDECREF(answer);
        if (truth < 0 && !none)
            return false;
        keys[i] = none ? HL_SUMS_NO_KEY : (uint32_t)truth;
    }
    return true;
}

/* Takes ownership of `part`. */
static PyObject *wrap_part(hl_py_state *state, hl_snapshot *part, PyObject *limit)
{
    hl_py_view *view = hl_py_view_new(state, part);
    PyObject *traces = view != NULL ? hl_py_traces_new(state, view) : NULL;
    Py_XDECREF(view);
    return hl_py_snapshot_new(state, traces, Py_NewRef(limit));
}

static PyObject *split(hl_py_state *state, const hl_sums *sums, hl_py_view *view, PyObject *function, PyObject *limit)
{
    uint32_t *keys = PyMem_Malloc(((size_t)sums->count + 1) * sizeof *keys);
    hl_snapshot *parts[2];
    PyObject *made = NULL;
    if (keys == NULL)
        return PyErr_NoMemory();
    if (ask_all(sums, view, function, keys)) {
        hl_status status;
        Py_BEGIN_ALLOW_THREADS
        status = hl_sums_split(sums, keys, parts);
        Py_END_ALLOW_THREADS
        if (status == HL_OK)
            made = Py_BuildValue("(NN)", wrap_part(state, parts[0], limit), wrap_part(state, parts[1], limit));
        else
            hl_py_raise_status(status);
    }
    PyMem_Free(keys);
    return made;
}

PyObject *hl_py_sum_by_split(PyObject *module, PyObject *args)
{
    hl_py_state *state = hl_py_state_of_module(module);
    PyObject *snapshot, *function, *made = NULL;
    hl_status status;
    hl_sums sums;

    if (!PyArg_ParseTuple(args, "O!O", state->snapshot, &snapshot, &function))
        return NULL;
    HL_PY_OWN_WORK;
    PyObject *limit = PyObject_GetAttrString(snapshot, "traceback_limit");
    hl_py_view *view = limit != NULL ? hl_py_convert_snapshot(state, snapshot, true) : NULL;
    if (view != NULL) {
        Py_BEGIN_ALLOW_THREADS
        status = hl_sums_open(&sums, view->snapshot, HL_SUMS_FIRST);
        Py_END_ALLOW_THREADS
        if (status == HL_OK) {
            made = split(state, &sums, view, function, limit);
            hl_sums_close(&sums);
        } else {
            hl_py_raise_status(status);
        }
        Py_DECREF(view);
    }
    Py_XDECREF(limit);
    return made;
}
