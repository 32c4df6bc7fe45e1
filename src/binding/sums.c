/* sums.c: _sum_by: sums of a snapshot by a key that Python code gives each location (core/sums.h).
 *
 * Threading: the GIL, released while the core goes through the rows. Asking for keys runs any code; the source is held
 * meanwhile.
 */
#include "binding.h"

#include "../core/sums.h"

/* A new reference to the key of a location. */
static PyObject *ask(hl_source *source, PyObject *function, hl_location_id id)
{
    const hl_location *location = hl_book_get_location(source->snapshot->book, id);
    PyObject *file = hl_source_string(source, location->file);
    PyObject *name = location->name != 0 ? hl_source_string(source, location->name) : Py_NewRef(Py_None);
    PyObject *key = NULL;
    if (file != NULL && name != NULL)
        key = PyObject_CallFunction(function, "OIO", file, (unsigned int)location->line, name);
    Py_XDECREF(file);
    Py_XDECREF(name);
    return key;
}

/* The number of a key, counted from 0, in `numbers`, which has all keys so far; false with an exception. */
static bool number_of(PyObject *numbers, PyObject *key, uint32_t *number)
{
    PyObject *next = PyLong_FromSsize_t(PyDict_GET_SIZE(numbers));
    PyObject *found = next != NULL ? PyDict_SetDefault(numbers, key, next) : NULL; /* borrowed */
    *number = found != NULL ? (uint32_t)PyLong_AsUnsignedLong(found) : 0;
    Py_XDECREF(next);
    return found != NULL;
}

static bool number_keys(const hl_sums *sums, hl_source *source, PyObject *function, PyObject *numbers, uint32_t *keys)
{
    for (uint32_t i = 0; i < sums->count; i++) {
        PyObject *key = ask(source, function, sums->locations[i]);
        bool numbered = key != NULL && number_of(numbers, key, &keys[i]);
        Py_XDECREF(key);
        if (!numbered)
            return false;
    }
    return true;
}

/* {key: (bytes, blocks)}; the keys of `numbers` are numbered in its order. */
static PyObject *make_result(PyObject *numbers, const hl_sum *results)
{
    PyObject *made = PyDict_New(), *key, *number;
    Py_ssize_t at = 0;
    for (size_t i = 0; made != NULL && PyDict_Next(numbers, &at, &key, &number); i++) {
        PyObject *sum =
            Py_BuildValue("(KK)", (unsigned long long)results[i].bytes, (unsigned long long)results[i].blocks);
        if (sum == NULL || PyDict_SetItem(made, key, sum) < 0)
            Py_CLEAR(made);
        Py_XDECREF(sum);
    }
    return made;
}

static PyObject *add_up(const hl_sums *sums, hl_source *source, PyObject *function)
{
    PyObject *numbers = PyDict_New(), *made = NULL;
    uint32_t *keys = PyMem_Malloc(((size_t)sums->count + 1) * sizeof *keys);
    hl_sum *results = NULL;
    if (numbers != NULL && keys != NULL && number_keys(sums, source, function, numbers, keys)) {
        uint32_t count = (uint32_t)PyDict_GET_SIZE(numbers);
        results = PyMem_Malloc(((size_t)count + 1) * sizeof *results);
        if (results != NULL) {
            hl_status status;
            Py_BEGIN_ALLOW_THREADS
            status = hl_sums_add(sums, keys, count, results);
            Py_END_ALLOW_THREADS
            made = status == HL_OK ? make_result(numbers, results) : hl_raise_status(status);
        }
    }
    if (made == NULL && !PyErr_Occurred())
        PyErr_NoMemory();
    PyMem_Free(results);
    PyMem_Free(keys);
    Py_XDECREF(numbers);
    return made;
}

PyObject *hl_sum_by(PyObject *module, PyObject *args)
{
    hl_state *state = hl_state_of_module(module);
    PyObject *snapshot, *function, *made = NULL;
    int all_frames;
    hl_status status;
    hl_sums sums;

    if (!PyArg_ParseTuple(args, "O!Op", state->snapshot, &snapshot, &function, &all_frames))
        return NULL;
    HL_OWN_WORK;
    hl_source *source = hl_convert_snapshot(state, snapshot, true);
    if (source == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = hl_sums_open(&sums, source->snapshot, all_frames);
    Py_END_ALLOW_THREADS
    if (status == HL_OK) {
        made = add_up(&sums, source, function);
        hl_sums_close(&sums);
    } else {
        hl_raise_status(status);
    }
    Py_DECREF(source);
    return made;
}
