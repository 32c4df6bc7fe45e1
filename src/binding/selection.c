/* selection.c: Snapshot.filter_traces: which traces pass a list of filters.
 *
 * Our filters with plain values are translated once, and the core filters row by row. For all other filters (a subclass
 * with its own _match, an unusual value, a foreign object) we call _match: once per row of a native snapshot, or once
 * per trace of the others. The evaluation stops early in the same cases as in the stdlib: at least one inclusive filter
 * must say yes, then no exclusive filter may say no.
 *
 * Threading: the GIL, released while the core filters.
 */
#include "selection.h"

#include "../core/filter.h"
#include "convert.h"
#include "match.h"
#include "traces.h"
#include "view.h"

typedef struct {
    PyObject *including; /* list */
    PyObject *excluding; /* list */
    hl_filter *plain;    /* all filters, translated; NULL if _match must be called for some */
    PyObject **owners;   /* keep the translated patterns alive */
    Py_ssize_t count;
} selection;

static void selection_free(selection *chosen)
{
    for (Py_ssize_t i = 0; chosen->owners != NULL && i < chosen->count; i++)
        Py_XDECREF(chosen->owners[i]);
    PyMem_Free(chosen->owners);
    PyMem_Free(chosen->plain);
    Py_XDECREF(chosen->including);
    Py_XDECREF(chosen->excluding);
}

static bool sort_out(selection *chosen, PyObject *filter)
{
    PyObject *inclusive = PyObject_GetAttrString(filter, "inclusive");
    if (inclusive == NULL)
        return false;
    int including = PyObject_IsTrue(inclusive);
    Py_DECREF(inclusive);
    return including >= 0 && PyList_Append(including ? chosen->including : chosen->excluding, filter) == 0;
}

static bool translate(hl_py_state *state, selection *chosen, PyObject *filters)
{
    for (Py_ssize_t i = 0; i < chosen->count; i++) {
        int plain = hl_py_match_translate(state, PyTuple_GET_ITEM(filters, i), &chosen->plain[i], &chosen->owners[i]);
        if (plain < 0)
            return false;
        if (plain == 0) {
            PyMem_Free(chosen->plain);
            chosen->plain = NULL;
            break;
        }
    }
    return true;
}

static bool selection_read(hl_py_state *state, selection *chosen, PyObject *filters)
{
    memset(chosen, 0, sizeof(*chosen));
    PyObject *all = PySequence_Tuple(filters);
    if (all == NULL)
        return false;
    size_t count = (size_t)PyTuple_GET_SIZE(all);
    bool read = false;

    chosen->including = PyList_New(0);
    chosen->excluding = PyList_New(0);
    chosen->plain = PyMem_Calloc(count + 1, sizeof(*chosen->plain));
    chosen->owners = PyMem_Calloc(count + 1, sizeof(*chosen->owners));
    chosen->count = (Py_ssize_t)count;
    if (chosen->plain == NULL || chosen->owners == NULL)
        PyErr_NoMemory();
    else if (chosen->including != NULL && chosen->excluding != NULL)
        read = true;
    for (size_t i = 0; read && i < count; i++)
        read = sort_out(chosen, PyTuple_GET_ITEM(all, (Py_ssize_t)i));
    read = read && translate(state, chosen, all);
    Py_DECREF(all);
    return read;
}

/* --- calling _match --- */

/* Does any filter of the list answer `wanted`? Returns 1, 0, or -1 with an exception. */
static int any_answers(PyObject *filters, PyObject *trace, bool wanted)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(filters); i++) {
        PyObject *answer = PyObject_CallMethod(PyList_GET_ITEM(filters, i), "_match", "(O)", trace);
        if (answer == NULL)
            return -1;
        int matched = PyObject_IsTrue(answer);
        Py_DECREF(answer);
        if (matched < 0 || (bool)matched == wanted)
            return matched < 0 ? -1 : 1;
    }
    return 0;
}

static int passes(const selection *chosen, PyObject *trace)
{
    if (PyList_GET_SIZE(chosen->including) > 0) {
        int included = any_answers(chosen->including, trace, true);
        if (included <= 0)
            return included;
    }
    int excluded = any_answers(chosen->excluding, trace, false);
    return excluded < 0 ? -1 : !excluded;
}

static PyObject *ask_traces(const selection *chosen, PyObject *list)
{
    PyObject *iterator = PyObject_GetIter(list);
    PyObject *passed = iterator != NULL ? PyList_New(0) : NULL;
    PyObject *trace;

    while (passed != NULL && (trace = PyIter_Next(iterator)) != NULL) {
        int keep = passes(chosen, trace);
        if (keep < 0 || (keep && PyList_Append(passed, trace) < 0))
            Py_CLEAR(passed);
        Py_DECREF(trace);
    }
    if (PyErr_Occurred())
        Py_CLEAR(passed);
    Py_XDECREF(iterator);
    return passed;
}

/* Takes over `passed`, which may be NULL with an exception. */
static PyObject *wrap_snapshot(hl_py_state *state, hl_snapshot *passed)
{
    hl_py_view *view = passed != NULL ? hl_py_view_new(state, passed) : NULL;
    if (view == NULL)
        return NULL;
    PyObject *traces = hl_py_traces_new(state, view);
    Py_DECREF(view);
    return traces;
}

static PyObject *ask_rows(hl_py_state *state, const selection *chosen, hl_py_view *from)
{
    const hl_snapshot *all = from->snapshot;
    hl_snapshot *some;
    size_t kept = 0;
    int keep = 0;

    hl_status status = hl_snapshot_derive(all, all->row_count, &some);
    if (status != HL_OK)
        return hl_py_raise_status(status);
    for (size_t row = 0; keep >= 0 && row < all->row_count; row++) {
        if (all->rows[row].live == 0)
            continue;
        PyObject *trace = hl_py_view_row(from, row);
        keep = trace != NULL ? passes(chosen, trace) : -1;
        Py_XDECREF(trace);
        if (keep > 0)
            some->rows[kept++] = all->rows[row];
    }
    hl_snapshot_seal(some, kept);
    if (keep < 0) {
        hl_snapshot_drop(some);
        return NULL;
    }
    return wrap_snapshot(state, some);
}

/* --- filtering in the core --- */

static hl_snapshot *core_filter(const selection *chosen, const hl_snapshot *snapshot)
{
    hl_snapshot *passed = NULL;
    hl_status status;

    Py_BEGIN_ALLOW_THREADS
    status = hl_filter_snapshot(snapshot, chosen->plain, (size_t)chosen->count, &passed);
    Py_END_ALLOW_THREADS
    if (status != HL_OK) {
        hl_py_raise_status(status);
        return NULL;
    }
    return passed;
}

/* Returns the tuples whose rows pass. Returns NULL without an exception if the tuples do not fit in a name table. */
static PyObject *filter_tuples(hl_py_state *state, const selection *chosen, PyObject *list)
{
    PyObject *tuples = PySequence_Tuple(list);
    if (tuples == NULL)
        return NULL;
    hl_py_view *view = hl_py_convert_traces(state, tuples, HL_PY_NEED_DOMAINS | HL_PY_NEED_FRAMES);
    hl_snapshot *passed = view != NULL ? core_filter(chosen, view->snapshot) : NULL;
    PyObject *result = NULL;
    if (view == NULL && PyErr_ExceptionMatches(PyExc_Exception) && !PyErr_ExceptionMatches(PyExc_MemoryError))
        PyErr_Clear();
    if (passed != NULL) {
        result = PyList_New((Py_ssize_t)passed->row_count);
        for (size_t i = 0; result != NULL && i < passed->row_count; i++) {
            PyObject *tuple = PyTuple_GET_ITEM(tuples, (Py_ssize_t)passed->rows[i].allocated);
            PyList_SET_ITEM(result, (Py_ssize_t)i, Py_NewRef(tuple));
        }
        hl_snapshot_drop(passed);
    }
    Py_XDECREF(view);
    Py_DECREF(tuples);
    return result;
}

static PyObject *select_tuples(hl_py_state *state, const selection *chosen, PyObject *traces)
{
    PyObject *result = NULL;
    PyObject *list = hl_py_traces_list(state, traces);

    if (list == NULL)
        return NULL;
    /* If filter_tuples fails, the traces are read a second time. Only a list or tuple allows that. */
    if (chosen->plain != NULL && (PyList_Check(list) || PyTuple_Check(list)))
        result = filter_tuples(state, chosen, list);
    if (result == NULL && !PyErr_Occurred())
        result = ask_traces(chosen, list);
    Py_DECREF(list);
    return result;
}

PyObject *hl_py_selection_filter(hl_py_state *state, PyObject *traces, PyObject *filters)
{
    selection chosen;
    PyObject *result = NULL;

    if (selection_read(state, &chosen, filters)) {
        hl_py_view *view = hl_py_traces_view(state, traces);
        if (view == NULL)
            result = select_tuples(state, &chosen, traces);
        else if (chosen.plain != NULL)
            result = wrap_snapshot(state, core_filter(&chosen, view->snapshot));
        else
            result = ask_rows(state, &chosen, view);
        Py_XDECREF(view);
    }
    selection_free(&chosen);
    return result;
}
