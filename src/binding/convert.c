/* convert.c: enters traces that are plain Python tuples into a private name table. So one analysis serves both kinds of
 * traces.
 *
 * For a file the conversion also keeps the other values of a trace, and an error says which trace is wrong.
 *
 * Many traces usually share one traceback tuple. Each distinct tuple object is entered once and then found by its
 * address. A name table cannot hold a file name that is not a str, a line outside 0..2^32-1, a size outside 0..2^63-1,
 * or totals above 2^63-1. These raise a TypeError or an OverflowError. The core cannot group a traceback without
 * frames. It raises an IndexError if the caller needs frames.
 *
 * Threading: the GIL. Unpacking an object that is not a tuple may run Python code, so everything in use is held.
 */
#include "convert.h"

#include "arguments.h"
#include "memo.h"
#include "text.h"
#include "traces.h"

typedef struct {
    hl_py_view *view;
    hl_names *names;
    hl_py_memo memo;           /* traceback -> stack */
    hl_location_id *locations; /* room for the current traceback */
    Py_ssize_t locations_room;
    int needs;
    unsigned __int128 weight; /* of all rows */
    uint8_t *totals;          /* only for a file: the traces' totals, in the form of the section TOTL; else NULL */
    size_t totals_length;
    bool totals_differ; /* from the totals in the name table */
} conversion;

static bool check(hl_status status)
{
    if (status != HL_OK)
        hl_py_raise_status(status);
    return status == HL_OK;
}

static bool read_number(PyObject *value, const char *what, unsigned long long most, uint64_t *number)
{
    if (!PyLong_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s must be an int, not %.100s", what, Py_TYPE(value)->tp_name);
        return false;
    }
    int overflow;
    long long read = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (read == -1 && overflow == 0 && PyErr_Occurred())
        return false;
    if (overflow != 0 || read < 0 || (unsigned long long)read > most) {
        PyErr_Format(PyExc_OverflowError, "%s %S is not in range [0; %llu]", what, value, most);
        return false;
    }
    *number = (uint64_t)read;
    return true;
}

static bool enter_string(conversion *work, PyObject *text, const char *what, hl_string_id *string)
{
    size_t length;
    PyObject *owner;

    if (!PyUnicode_Check(text)) {
        PyErr_Format(PyExc_TypeError, "%s must be a str, not %.100s", what, Py_TYPE(text)->tp_name);
        return false;
    }
    const char *bytes = hl_py_text_utf8(text, &length, &owner);
    if (bytes == NULL)
        return false;
    bool entered = check(hl_names_string(work->names, bytes, length, string));
    Py_DECREF(owner);
    if (!entered)
        return false;
    /* An object of a subclass may refer back to the view. So only a plain str is kept. */
    entered = !PyUnicode_CheckExact(text) || hl_py_view_seed_string(work->view, *string, text);
    if (!entered)
        hl_names_release_string(work->names, *string);
    return entered;
}

/* `name`: the name of the function, or None. */
static bool enter_location(conversion *work, PyObject *file, PyObject *lineno, PyObject *name, hl_location_id *location)
{
    uint64_t line;
    hl_string_id file_id, name_id = 0;

    if (!enter_string(work, file, "file name", &file_id))
        return false;
    bool entered = read_number(lineno, "line number", UINT32_MAX, &line) &&
                   (name == Py_None || enter_string(work, name, "function name", &name_id)) &&
                   check(hl_names_location(work->names, file_id, (uint32_t)line, name_id, location));
    if (name_id != 0)
        hl_names_release_string(work->names, name_id);
    hl_names_release_string(work->names, file_id);
    return entered;
}

static bool enter_frame(conversion *work, PyObject *frame, hl_location_id *location)
{
    PyObject *parts[3] = {NULL, NULL, Py_None};
    int count = (work->needs & HL_PY_NEED_NAMES) != 0 ? 3 : 2;

    if (!hl_py_arguments_unpack(frame, count, parts))
        return false;
    bool entered = enter_location(work, parts[0], parts[1], parts[2], location);
    while (count > 0)
        Py_DECREF(parts[--count]);
    return entered;
}

static bool enter_frames(conversion *work, PyObject *traceback, hl_stack_id *stack)
{
    Py_ssize_t depth = PyTuple_GET_SIZE(traceback), done = 0;

    if (depth > work->locations_room || work->locations == NULL) { /* NULL is invalid, even without frames */
        hl_location_id *grown = hl_os_resize(work->locations, (size_t)depth, sizeof(*grown));
        if (grown == NULL) {
            PyErr_NoMemory();
            return false;
        }
        work->locations = grown;
        work->locations_room = depth;
    }
    while (done < depth && enter_frame(work, PyTuple_GET_ITEM(traceback, done), &work->locations[done]))
        done++;
    bool entered = done == depth && check(hl_names_stack(work->names, work->locations, (uint32_t)depth, 0, stack));
    for (Py_ssize_t i = 0; i < done; i++)
        hl_names_release_location(work->names, work->locations[i]);
    return entered;
}

static bool enter_traceback(conversion *work, PyObject *traceback, hl_stack_id *stack, uint32_t *depth)
{
    hl_py_memo_entry *entry = hl_py_memo_find(&work->memo, traceback);
    if (entry == NULL)
        return false;
    if (entry->object == NULL) {
        if (PyObject_Hash(traceback) == -1)
            return false;
        if (!PyTuple_Check(traceback)) {
            PyErr_Format(PyExc_TypeError, "traceback must be a tuple, not %.100s", Py_TYPE(traceback)->tp_name);
            return false;
        }
        if ((work->needs & HL_PY_NEED_FRAMES) && PyTuple_GET_SIZE(traceback) == 0) {
            PyErr_SetString(PyExc_IndexError, "tuple index out of range");
            return false;
        }
        if (!enter_frames(work, traceback, stack))
            return false;
        hl_py_memo_enter(&work->memo, entry, traceback, *stack);
    }
    *stack = entry->number;
    *depth = hl_names_get_stack(work->names, *stack)->depth;
    return true;
}

/* Keeps the first known total of a stack. Ignores a total below the depth, which cannot be true. */
static bool keep_total(conversion *work, PyObject *value, hl_stack_id stack, uint32_t depth)
{
    uint64_t total = 0;

    if (value != Py_None && !read_number(value, "total_nframe", UINT32_MAX, &total))
        return false;
    if (total >= depth && hl_names_get_stack(work->names, stack)->total == 0)
        hl_names_set_total(work->names, stack, (uint32_t)total);
    return true;
}

static bool add_weight(conversion *work, const hl_row *row, uint32_t depth)
{
    work->weight += hl_row_weight(row, depth);
    if (work->weight > HL_MOST_WEIGHT)
        PyErr_SetString(PyExc_OverflowError, "the sum of the sizes exceeds 64 bits");
    return work->weight <= HL_MOST_WEIGHT;
}

static bool enter_values(conversion *work, PyObject **values, hl_row *row)
{
    uint64_t domain = 0;
    uint32_t depth;

    if ((work->needs & HL_PY_NEED_DOMAINS) && !read_number(values[0], "domain", UINT32_MAX, &domain))
        return false;
    if (!enter_traceback(work, values[2], &row->stack, &depth) ||
        !read_number(values[1], "size", INT64_MAX, &row->size))
        return false;
    if ((work->needs & HL_PY_NEED_TOTALS) && !keep_total(work, values[3], row->stack, depth))
        return false;
    row->domain = (uint32_t)domain;
    row->live = 1;
    return add_weight(work, row, depth);
}

static bool enter_traces(conversion *work, PyObject *traces)
{
    hl_snapshot *snapshot = work->view->snapshot;
    Py_ssize_t count = PyTuple_GET_SIZE(traces);

    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *values[4];
        if (!hl_py_arguments_unpack(PyTuple_GET_ITEM(traces, i), 4, values))
            return false;
        snapshot->rows[i].allocated = (uint64_t)i;
        bool entered = enter_values(work, values, &snapshot->rows[i]);
        for (int k = 0; k < 4; k++)
            Py_DECREF(values[k]);
        if (!entered)
            return false;
    }
    hl_snapshot_seal(snapshot, (size_t)count);
    return true;
}

static hl_py_view *new_private_view(hl_py_state *state, size_t rows)
{
    hl_names *names;
    hl_snapshot *snapshot;

    hl_status status = hl_names_new(false, &names);
    if (status == HL_OK) {
        status = hl_snapshot_new(names, rows, &snapshot);
        hl_names_drop(names);
    }
    if (status != HL_OK) {
        hl_py_raise_status(status);
        return NULL;
    }
    return hl_py_view_new(state, snapshot);
}

static void conversion_free(conversion *work)
{
    hl_py_memo_free(&work->memo);
    hl_os_free(work->locations);
    hl_os_free(work->totals);
}

hl_py_view *hl_py_convert_traces(hl_py_state *state, PyObject *traces, int needs)
{
    PyObject *copy = PySequence_Tuple(traces);
    if (copy == NULL)
        return NULL;
    conversion work = {.view = new_private_view(state, (size_t)PyTuple_GET_SIZE(copy)), .needs = needs};
    if (work.view != NULL) {
        work.names = work.view->snapshot->names;
        if (!enter_traces(&work, copy))
            Py_CLEAR(work.view);
    }
    conversion_free(&work);
    Py_DECREF(copy);
    return work.view;
}

/* Converts traces that are tuples, with everything that a merge or a tree can keep. */
static hl_py_view *convert_all(hl_py_state *state, PyObject *traces)
{
    PyObject *list = hl_py_traces_list(state, traces);
    if (list == NULL)
        return NULL;
    hl_py_view *view = hl_py_convert_traces(state, list, HL_PY_NEED_DOMAINS | HL_PY_NEED_FRAMES | HL_PY_NEED_TOTALS);
    Py_DECREF(list);
    if (view != NULL) {
        for (size_t i = 0; i < view->snapshot->row_count; i++)
            view->snapshot->rows[i].allocated = 1; /* not the index of the trace, which is not needed here */
    }
    return view;
}

hl_py_view *hl_py_convert_snapshot(hl_py_state *state, PyObject *snapshot, bool any_kind)
{
    PyObject *traces = PyObject_GetAttrString(snapshot, "traces");
    if (traces == NULL)
        return NULL;
    hl_py_view *view = hl_py_traces_view(state, traces);
    if (view == NULL && any_kind)
        view = convert_all(state, traces);
    Py_DECREF(traces);
    return view;
}

/* --- rows from other sources --- */

static bool enter_row(conversion *work, PyObject *given, hl_row *row)
{
    PyObject *values[3];
    uint32_t depth;
    uint64_t count;

    if (!hl_py_arguments_unpack(given, 3, values))
        return false;
    bool entered = enter_traceback(work, values[0], &row->stack, &depth) &&
                   read_number(values[1], "size", INT64_MAX, &row->size) &&
                   read_number(values[2], "number of blocks", ((uint64_t)1 << 56) - 1, &count);
    for (int i = 0; i < 3; i++)
        Py_DECREF(values[i]);
    if (!entered)
        return false;
    row->live = count;
    row->allocated = count;
    return add_weight(work, row, depth);
}

static bool enter_rows(conversion *work, PyObject *rows)
{
    hl_snapshot *snapshot = work->view->snapshot;
    Py_ssize_t count = PyTuple_GET_SIZE(rows), done = 0;

    while (done < count && enter_row(work, PyTuple_GET_ITEM(rows, done), &snapshot->rows[done]))
        done++;
    hl_snapshot_seal(snapshot, (size_t)done);
    return done == count;
}

PyObject *hl_py_convert_rows(PyObject *module, PyObject *args)
{
    hl_py_state *state = hl_py_state_of_module(module);
    PyObject *rows, *traces = NULL;
    unsigned int moment, limit;

    if (!PyArg_ParseTuple(args, "O!II", &PyTuple_Type, &rows, &moment, &limit))
        return NULL;
    if (moment >= HL_MOMENTS) {
        PyErr_SetString(PyExc_ValueError, "there is no such moment");
        return NULL;
    }
    HL_PY_OWN_WORK;
    conversion work = {.view = new_private_view(state, (size_t)PyTuple_GET_SIZE(rows)),
                       .needs = HL_PY_NEED_FRAMES | HL_PY_NEED_NAMES};
    if (work.view != NULL) {
        work.names = work.view->snapshot->names;
        work.view->snapshot->moment = (hl_moment)moment;
        work.view->snapshot->nframe = limit;
        if (enter_rows(&work, rows))
            traces = hl_py_traces_new(state, work.view);
        Py_DECREF(work.view);
    }
    conversion_free(&work);
    return traces;
}

PyObject *hl_py_convert_lacks_frames(PyObject *module, PyObject *traces)
{
    hl_py_state *state = hl_py_state_of_module(module);
    bool lacks = false;

    HL_PY_OWN_WORK;
    hl_py_view *view = hl_py_traces_view(state, traces);
    if (view != NULL) {
        const hl_snapshot *snapshot = view->snapshot;
        for (size_t i = 0; i < snapshot->row_count && !lacks; i++)
            lacks = hl_names_get_stack(snapshot->names, snapshot->rows[i].stack)->depth == 0;
        Py_DECREF(view);
        return PyBool_FromLong(lacks);
    }
    PyObject *list = hl_py_traces_list(state, traces);
    PyObject *tuples = list != NULL ? PySequence_Tuple(list) : NULL;
    Py_XDECREF(list);
    if (tuples == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuples) && !lacks; i++) {
        PyObject *trace = PyTuple_GET_ITEM(tuples, i);
        PyObject *frames = PyTuple_Check(trace) && PyTuple_GET_SIZE(trace) > 2 ? PyTuple_GET_ITEM(trace, 2) : NULL;
        lacks = frames != NULL && PyTuple_Check(frames) && PyTuple_GET_SIZE(frames) == 0;
    }
    Py_DECREF(tuples);
    return PyBool_FromLong(lacks);
}

/* --- for a file --- */

enum { LONGEST_TOTAL = 5 }; /* a number up to 2^32, seven bits per byte */

/* The name table holds the first total that a stack is seen with. There, 0 stands for None. */
static bool enter_total(conversion *work, PyObject *total, hl_stack_id stack, bool is_new)
{
    uint64_t number = 0;

    if (total != Py_None && !read_number(total, "total_nframe", UINT32_MAX, &number))
        return false;
    if (is_new && number != 0)
        hl_names_set_total(work->names, stack, (uint32_t)number);
    if (hl_names_get_stack(work->names, stack)->total != number || (number == 0 && total != Py_None))
        work->totals_differ = true;
    uint64_t code = total == Py_None ? 0 : number + 1;
    for (; code > 127; code >>= 7)
        work->totals[work->totals_length++] = (uint8_t)(code | 128);
    work->totals[work->totals_length++] = (uint8_t)code;
    return true;
}

static bool enter_for_file(conversion *work, PyObject *trace, hl_row *row)
{
    PyObject *values[4] = {NULL, NULL, NULL, NULL};
    uint32_t before = work->names->stacks.count;

    /* Until 3.8 traces had no total. The Trace of the stdlib still accepts such a tuple. */
    bool lacks_total = PyTuple_Check(trace) && PyTuple_GET_SIZE(trace) == 3;
    if (!hl_py_arguments_unpack(trace, lacks_total ? 3 : 4, values))
        return false;
    if (lacks_total)
        values[3] = Py_NewRef(Py_None);
    bool entered = enter_values(work, values, row) &&
                   enter_total(work, values[3], row->stack, work->names->stacks.count != before);
    row->allocated = 1;
    for (int i = 0; i < 4; i++)
        Py_DECREF(values[i]);
    return entered;
}

/* Adds the index of the trace to the current exception. */
static void blame_trace(Py_ssize_t index)
{
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    if (PyErr_GivenExceptionMatches(type, PyExc_TypeError) || PyErr_GivenExceptionMatches(type, PyExc_ValueError) ||
        PyErr_GivenExceptionMatches(type, PyExc_OverflowError)) {
        PyErr_NormalizeException(&type, &value, &traceback);
        PyErr_Format(type, "traces[%zd] can't be saved: %S", index, value);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
    } else {
        PyErr_Restore(type, value, traceback);
    }
}

static size_t join_equal_neighbours(hl_row *rows, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        hl_row *last = &rows[kept > 0 ? kept - 1 : 0];
        if (kept > 0 && last->stack == rows[i].stack && last->size == rows[i].size && last->domain == rows[i].domain) {
            last->live++;
            last->allocated++;
        } else {
            rows[kept++] = rows[i];
        }
    }
    return kept;
}

hl_py_view *hl_py_convert_for_file(hl_py_state *state, PyObject *traces, PyObject **totals)
{
    PyObject *copy = PySequence_Tuple(traces);
    if (copy == NULL)
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(copy), done = 0;
    conversion work = {.view = new_private_view(state, (size_t)count), .needs = HL_PY_NEED_DOMAINS};
    work.totals = hl_os_alloc((size_t)count + 1, LONGEST_TOTAL);
    if (work.totals == NULL)
        PyErr_NoMemory();
    if (work.view != NULL && work.totals != NULL) {
        hl_row *rows = work.view->snapshot->rows;
        work.names = work.view->snapshot->names;
        while (done < count && enter_for_file(&work, PyTuple_GET_ITEM(copy, done), &rows[done]))
            done++;
        if (done < count)
            blame_trace(done);
        else
            hl_snapshot_seal(work.view->snapshot,
                             work.totals_differ ? (size_t)count : join_equal_neighbours(rows, (size_t)count));
    }
    *totals = NULL;
    if (done == count && work.totals != NULL && work.totals_differ)
        *totals = PyBytes_FromStringAndSize((const char *)work.totals, (Py_ssize_t)work.totals_length);
    if (done < count || work.totals == NULL || (work.totals_differ && *totals == NULL))
        Py_CLEAR(work.view);
    conversion_free(&work);
    Py_DECREF(copy);
    return work.view;
}
