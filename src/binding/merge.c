/* merge.c: Snapshot.merge: the snapshots of many processes added up to one, in a private book (core/merge.h).
 *
 * A list or tuple is looked through beforehand, so that the core knows which ledgers are inherited from. Anything else is
 * iterated over once, and the snapshot in hand is let go before the next is asked for: a generator that loads files has
 * one in memory at a time.
 *
 * Threading: the GIL, released while the core adds. Iterating and reading attributes may run any code; what it uses is
 * held, and the merge is known to this call alone.
 */
#include "binding.h"

#include "../core/merge.h"

typedef struct {
    hl_state *state;
    hl_merge *merge;
    Py_ssize_t count; /* snapshots so far */
    hl_moment moment; /* theirs */
    PyObject *limit;  /* the largest of theirs; NULL: none yet */
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

static bool announce(merging *work, PyObject *snapshots)
{
    HL_OWN_WORK;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(snapshots); i++) {
        PyObject *snapshot = PyTuple_GET_ITEM(snapshots, i);
        if (!check_type(work, snapshot, i))
            return false;
        hl_source *source = hl_convert_snapshot(work->state, snapshot, false);
        if (source == NULL && PyErr_Occurred())
            return false;
        hl_status status = source != NULL ? hl_merge_announce(work->merge, source->snapshot) : HL_OK;
        Py_XDECREF(source);
        if (status != HL_OK) {
            hl_raise_status(status);
            return false;
        }
    }
    return true;
}

static bool add(merging *work, PyObject *snapshot)
{
    hl_status status = HL_OK;

    HL_OWN_WORK;
    if (!check_type(work, snapshot, work->count) || !check_limit(work, snapshot))
        return false;
    hl_source *source = hl_convert_snapshot(work->state, snapshot, true);
    if (source == NULL)
        return false;
    bool fits = check_moment(work, source->snapshot->moment);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        status = hl_merge_add(work->merge, source->snapshot);
        Py_END_ALLOW_THREADS
    }
    Py_DECREF(source);
    if (status != HL_OK)
        hl_raise_status(status);
    work->count++;
    return fits && status == HL_OK && PyErr_CheckSignals() == 0;
}

static bool add_all(merging *work, PyObject *snapshots)
{
    PyObject *known = NULL, *iterator, *snapshot;
    bool added = true;

    if (PyList_Check(snapshots) || PyTuple_Check(snapshots)) {
        known = PySequence_Tuple(snapshots); /* a list could be changed meanwhile */
        if (known == NULL || !announce(work, known)) {
            Py_XDECREF(known);
            return false;
        }
        snapshots = known;
    }
    iterator = PyObject_GetIter(snapshots);
    Py_XDECREF(known);
    if (iterator == NULL)
        return false;
    while (added && (snapshot = PyIter_Next(iterator)) != NULL) {
        added = add(work, snapshot);
        Py_DECREF(snapshot);
    }
    Py_DECREF(iterator);
    if (PyErr_Occurred())
        return false;
    if (work->count == 0)
        PyErr_SetString(PyExc_ValueError, "there is no snapshot to merge");
    return work->count > 0;
}

/* An object of a subclass is made as its callers make it, and then given the traces. */
static PyObject *new_of_type(hl_state *state, PyTypeObject *type, PyObject *traces, PyObject *limit)
{
    if (type == state->snapshot)
        return hl_snapshot_object_new(state, Py_NewRef(traces), Py_NewRef(limit));
    PyObject *made = PyObject_CallFunction((PyObject *)type, "[]O", limit);
    if (made != NULL && PyObject_SetAttrString(made, "traces", traces) < 0)
        Py_CLEAR(made);
    return made;
}

static PyObject *finish(merging *work, PyTypeObject *type)
{
    hl_snapshot *merged = NULL;
    hl_status status;

    HL_OWN_WORK;
    Py_BEGIN_ALLOW_THREADS
    status = hl_merge_finish(work->merge, &merged);
    Py_END_ALLOW_THREADS
    if (status != HL_OK)
        return hl_raise_status(status);
    hl_source *source = hl_source_new(work->state, merged);
    if (source == NULL)
        return NULL;
    PyObject *traces = hl_traces_new(work->state, source), *made = NULL;
    Py_DECREF(source);
    if (traces != NULL)
        made = new_of_type(work->state, type, traces, work->limit);
    Py_XDECREF(traces);
    return made;
}

PyObject *hl_snapshot_merge(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"snapshots"};
    static const hl_signature signature = {"Snapshot.merge", names, 1, 1, 1, 1};
    merging work = {.state = hl_state_of((PyTypeObject *)type)};
    PyObject *snapshots, *made = NULL;

    if (!hl_arguments_parse(&signature, args, kwargs, &snapshots))
        return NULL;
    hl_status status = hl_merge_open(&work.merge);
    if (status != HL_OK)
        return hl_raise_status(status);
    if (add_all(&work, snapshots))
        made = finish(&work, (PyTypeObject *)type);
    hl_merge_close(work.merge);
    Py_XDECREF(work.limit);
    return made;
}
