/* snapshot_merge.c: Snapshot.merge: adds up the snapshots of many processes in a private name table (core/merge.h).
 *
 * Captures have a snapshot of each moment. They are added up in one column per moment, and the sums share their name
 * table.
 *
 * A list or tuple is read in advance, so that the core knows which ledgers others have inherited from. Any other
 * iterable is iterated over once. The current snapshot is released before the next one is requested. So a generator
 * that loads files has one snapshot in memory at a time.
 *
 * Threading: the GIL, released while the core adds. Iterating and reading attributes may run any code. What is in use
 * is held, and only this call knows the merge.
 */
#include "snapshot_merge.h"

#include "../core/merge.h"
#include "arguments.h"
#include "convert.h"
#include "snapshot_object.h"
#include "traces.h"
#include "view.h"

typedef struct {
    hl_py_state *state;
    hl_merge *merge;
    Py_ssize_t count; /* number of snapshots so far */
    hl_moment moment; /* of these snapshots */
    PyObject *limit;  /* the largest limit of these snapshots; NULL if there are none yet */
} merging;

static bool check_type(const merging *work, PyObject *snapshot, Py_ssize_t index)
{
    if (PyObject_TypeCheck(snapshot, work->state->snapshot))
        return true;
    PyErr_Format(PyExc_TypeError, "snapshots[%zd] must be a Snapshot, not %.100s", index, Py_TYPE(snapshot)->tp_name);
    return false;
}

static bool check_moment(merging *work, hl_moment moment)
{
    static const char *const names[] = {
        [HL_LIVE] = "live blocks", [HL_PEAK] = "the peak", [HL_ALLOCATED] = "all blocks"};

    if (work->count == 0)
        work->moment = moment;
    if (work->moment == moment)
        return true;
    PyErr_Format(PyExc_ValueError, "cannot add up different moments: snapshots[0] is of %s, snapshots[%zd] of %s",
                 names[work->moment], work->count, names[moment]);
    return false;
}

static bool check_limit(merging *work, PyObject *snapshot)
{
    PyObject *limit = PyObject_GetAttrString(snapshot, "traceback_limit");
    if (limit == NULL)
        return false;
    int larger = work->limit != NULL ? PyObject_RichCompareBool(limit, work->limit, Py_GT) : 1;
    if (larger > 0)
        Py_XSETREF(work->limit, Py_NewRef(limit));
    Py_DECREF(limit);
    return larger >= 0;
}

static bool announce(merging *work, PyObject *snapshot, Py_ssize_t index)
{
    HL_PY_OWN_WORK;
    if (!check_type(work, snapshot, index))
        return false;
    hl_py_view *view = hl_py_convert_snapshot(work->state, snapshot, false);
    if (view == NULL && PyErr_Occurred())
        return false;
    hl_status status = view != NULL ? hl_merge_announce(work->merge, view->snapshot) : HL_OK;
    Py_XDECREF(view);
    if (status != HL_OK)
        hl_py_raise_status(status);
    return status == HL_OK;
}

static bool add(merging *work, PyObject *snapshot, Py_ssize_t index)
{
    hl_status status = HL_OK;

    HL_PY_OWN_WORK;
    if (!check_type(work, snapshot, index) || !check_limit(work, snapshot))
        return false;
    hl_py_view *view = hl_py_convert_snapshot(work->state, snapshot, true);
    if (view == NULL)
        return false;
    bool fits = check_moment(work, view->snapshot->moment);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        status = hl_merge_add(work->merge, view->snapshot);
        Py_END_ALLOW_THREADS
    }
    Py_DECREF(view);
    if (status != HL_OK)
        hl_py_raise_status(status);
    work->count++;
    return fits && status == HL_OK && PyErr_CheckSignals() == 0;
}

/* Calls `act` with an item: a snapshot, or one snapshot per column. A column may have None. */
static bool each_column(merging *works, Py_ssize_t columns, PyObject *item, Py_ssize_t index,
                        bool (*act)(merging *, PyObject *, Py_ssize_t))
{
    if (columns == 1)
        return act(works, item, index);
    if (!PyTuple_Check(item) || PyTuple_GET_SIZE(item) != columns) {
        PyErr_SetString(PyExc_TypeError, "a capture must be a tuple of snapshots");
        return false;
    }
    for (Py_ssize_t i = 0; i < columns; i++) {
        PyObject *snapshot = PyTuple_GET_ITEM(item, i);
        if (snapshot != Py_None && !act(&works[i], snapshot, index))
            return false;
    }
    return true;
}

/* Returns the number of items, or -1 with an exception. */
static Py_ssize_t add_all(merging *works, Py_ssize_t columns, PyObject *items)
{
    PyObject *known = NULL, *item;
    Py_ssize_t count = 0;
    bool added = true;

    if (PyList_Check(items) || PyTuple_Check(items)) {
        known = PySequence_Tuple(items); /* a copy: code that runs in the meantime could change a list */
        for (Py_ssize_t i = 0; known != NULL && added && i < PyTuple_GET_SIZE(known); i++)
            added = each_column(works, columns, PyTuple_GET_ITEM(known, i), i, announce);
        if (known == NULL || !added) {
            Py_XDECREF(known);
            return -1;
        }
        items = known;
    }
    PyObject *iterator = PyObject_GetIter(items);
    Py_XDECREF(known);
    if (iterator == NULL)
        return -1;
    while (added && (item = PyIter_Next(iterator)) != NULL) {
        added = each_column(works, columns, item, count++, add);
        Py_DECREF(item);
    }
    Py_DECREF(iterator);
    if (PyErr_Occurred())
        return -1;
    if (count == 0)
        PyErr_SetString(PyExc_ValueError, "there is no snapshot to merge");
    return count > 0 ? count : -1;
}

/* Makes an object of a subclass with the usual call of its type, and then sets its traces. */
static PyObject *new_of_type(hl_py_state *state, PyTypeObject *type, PyObject *traces, PyObject *limit)
{
    if (type == state->snapshot)
        return hl_py_snapshot_new(state, Py_NewRef(traces), Py_NewRef(limit));
    PyObject *made = PyObject_CallFunction((PyObject *)type, "[]O", limit);
    if (made != NULL && PyObject_SetAttrString(made, "traces", traces) < 0)
        Py_CLEAR(made);
    return made;
}

static PyObject *finish(merging *work, PyTypeObject *type)
{
    hl_snapshot *merged = NULL;
    hl_status status;

    HL_PY_OWN_WORK;
    Py_BEGIN_ALLOW_THREADS
    status = hl_merge_finish(work->merge, &merged);
    Py_END_ALLOW_THREADS
    if (status != HL_OK)
        return hl_py_raise_status(status);
    hl_py_view *view = hl_py_view_new(work->state, merged);
    if (view == NULL)
        return NULL;
    PyObject *traces = hl_py_traces_new(work->state, view), *made = NULL;
    Py_DECREF(view);
    if (traces != NULL)
        made = new_of_type(work->state, type, traces, work->limit);
    Py_XDECREF(traces);
    return made;
}

static void close_columns(merging *works, size_t columns)
{
    for (size_t i = 0; i < columns; i++) {
        hl_merge_close(works[i].merge);
        Py_XDECREF(works[i].limit);
    }
}

/* The sums of all columns share one name table. Returns false with an exception. */
static bool open_columns(merging *works, size_t columns)
{
    for (size_t i = 0; i < columns; i++) {
        hl_status status = hl_merge_open(works[0].merge, &works[i].merge);
        if (status != HL_OK) {
            close_columns(works, i);
            hl_py_raise_status(status);
            return false;
        }
    }
    return true;
}

PyObject *hl_py_snapshot_merge(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"snapshots"};
    static const hl_py_signature signature = {"Snapshot.merge", names, 1, 1, 1, 1};
    merging work = {.state = hl_py_state_of((PyTypeObject *)type)};
    PyObject *snapshots, *made = NULL;

    if (!hl_py_arguments_parse(&signature, args, kwargs, &snapshots) || !open_columns(&work, 1))
        return NULL;
    if (add_all(&work, 1, snapshots) > 0)
        made = finish(&work, (PyTypeObject *)type);
    close_columns(&work, 1);
    return made;
}

/* Returns the sum of each column that every item has. The other columns have None. */
static PyObject *finish_columns(merging *works, Py_ssize_t count)
{
    PyObject *sums = PyTuple_New(HL_MOMENTS);

    for (Py_ssize_t i = 0; sums != NULL && i < HL_MOMENTS; i++) {
        PyObject *sum = works[i].count == count ? finish(&works[i], works[i].state->snapshot) : Py_NewRef(Py_None);
        if (sum == NULL)
            Py_CLEAR(sums);
        else
            PyTuple_SET_ITEM(sums, i, sum);
    }
    return sums;
}

PyObject *hl_py_snapshot_merge_captures(PyObject *module, PyObject *captures)
{
    merging works[HL_MOMENTS];
    PyObject *made = NULL;

    for (size_t i = 0; i < HL_MOMENTS; i++)
        works[i] = (merging){.state = hl_py_state_of_module(module)};
    if (!open_columns(works, HL_MOMENTS))
        return NULL;
    Py_ssize_t count = add_all(works, HL_MOMENTS, captures);
    if (count > 0)
        made = finish_columns(works, count);
    close_columns(works, HL_MOMENTS);
    return made;
}
