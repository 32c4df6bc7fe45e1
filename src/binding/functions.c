/* functions.c: the functions of the module.
 *
 * Names, arguments and errors are the same as in the stdlib. The functions that take snapshots are in take.c.
 *
 * Threading: the GIL.
 */
#include "functions.h"

#include "../core/group.h"
#include "arguments.h"
#include "call_tree.h"
#include "convert.h"
#include "files.h"
#include "metadata.h"
#include "snapshot_merge.h"
#include "sum_by.h"
#include "take.h"
#include "text.h"
#include "top_statistics.h"
#include "traceback.h"
#include "unpickle.h"
#include "view.h"

#include "../cpython/own_code.h"

/* --- the tracer --- */

bool hl_py_functions_nframe(PyObject *object, uint32_t *nframe)
{
    int overflow;
    long number = PyLong_AsLongAndOverflow(object, &overflow);

    if (number == -1 && overflow == 0 && PyErr_Occurred())
        return false;
    if (overflow != 0 || number > INT_MAX || number < INT_MIN) {
        PyErr_SetString(PyExc_OverflowError, "Python int too large to convert to C int");
        return false;
    }
    if (number < 1 || number > HL_MOST_FRAMES) {
        PyErr_Format(PyExc_ValueError, "the number of frames must be in range [1; %d]", HL_MOST_FRAMES);
        return false;
    }
    *nframe = (uint32_t)number;
    return true;
}

static PyObject *start(PyObject *module, PyObject *args, PyObject *keywords)
{
    static const char *const names[] = {"numbers"};
    static const hl_py_signature signature = {"start", names, 0, 0, 0, 1};
    PyObject *nframe = NULL, *numbers = NULL, *none = PyTuple_New(0);
    hl_tracer_options options = {.nframe = 1};

    (void)module;
    bool bound = none != NULL && PyArg_UnpackTuple(args, "start", 0, 1, &nframe) &&
                 hl_py_arguments_parse(&signature, none, keywords, &numbers);
    Py_XDECREF(none);
    int asked = !bound ? -1 : numbers == NULL ? 0 : PyObject_IsTrue(numbers);
    if (asked < 0 || (nframe != NULL && !hl_py_functions_nframe(nframe, &options.nframe)))
        return NULL;
    options.numbers = asked;
    hl_status status = hl_tracer_start(options);
    if (status != HL_OK)
        return hl_py_raise_status(status);
    Py_RETURN_NONE;
}

static PyObject *stop(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    hl_tracer_stop();
    Py_RETURN_NONE;
}

static PyObject *is_tracing(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(hl_tracer_is_tracing());
}

static PyObject *clear_traces(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    hl_status status = hl_tracer_clear();
    if (status != HL_OK)
        return hl_py_raise_status(status);
    Py_RETURN_NONE;
}

static PyObject *reset_peak(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    hl_status status = hl_tracer_reset_peak();
    if (status != HL_OK)
        return hl_py_raise_status(status);
    Py_RETURN_NONE;
}

static PyObject *get_traceback_limit(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromUnsignedLong(hl_tracer_nframe());
}

static PyObject *get_traced_memory(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    uint64_t current, peak;

    HL_PY_OWN_WORK;
    hl_tracer_traced(&current, &peak);
    return Py_BuildValue("KK", (unsigned long long)current, (unsigned long long)peak);
}

static PyObject *allocated(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    uint64_t bytes, blocks;

    HL_PY_OWN_WORK;
    hl_tracer_allocated(&bytes, &blocks);
    return Py_BuildValue("KK", (unsigned long long)bytes, (unsigned long long)blocks);
}

/* --- our own memory --- */

static PyObject *get_tracemalloc_memory(PyObject *module, PyObject *unused)
{
    (void)unused;
    hl_tracer_bytes bytes;

    HL_PY_OWN_WORK;
    if (!hl_tracer_is_tracing()) {
        PyObject *stdlib = hl_py_state_of_module(module)->stdlib_memory;
        return stdlib != NULL ? PyObject_CallNoArgs(stdlib) : PyLong_FromLong(0);
    }
    hl_tracer_memory(&bytes);
    return PyLong_FromUnsignedLongLong(hl_tracer_bytes_total(&bytes));
}

static PyObject *memory(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    hl_tracer_bytes bytes;

    HL_PY_OWN_WORK;
    hl_tracer_memory(&bytes);
    return Py_BuildValue("{s:n,s:n,s:n,s:n,s:n,s:K}", "map", (Py_ssize_t)bytes.map, "sites", (Py_ssize_t)bytes.sites,
                         "names", (Py_ssize_t)bytes.names, "caches", (Py_ssize_t)bytes.caches, "snapshots",
                         (Py_ssize_t)bytes.snapshots, "total", (unsigned long long)hl_tracer_bytes_total(&bytes));
}

static PyObject *lost_records(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    HL_PY_OWN_WORK;
    return PyLong_FromUnsignedLongLong(hl_tracer_lost());
}

static PyObject *validate(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    HL_PY_OWN_WORK;
    const char *broken = hl_tracer_validate();
    return broken == NULL ? Py_NewRef(Py_None) : PyUnicode_FromString(broken);
}

static PyObject *in_main_interpreter(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(PyInterpreterState_Get() == PyInterpreterState_Main());
}

/* --- one object --- */

/* *view is NULL if the object's block is not in the ledger. */
static bool find_object(hl_py_state *state, PyObject *object, hl_py_view **view)
{
    hl_snapshot *snapshot = NULL;
    hl_status status = hl_tracer_find(hl_tracer_block_of(object), 0, &snapshot);

    *view = NULL;
    if (status != HL_OK && status != HL_STOPPED) {
        hl_py_raise_status(status);
        return false;
    }
    if (snapshot == NULL)
        return true;
    *view = hl_py_view_new(state, snapshot);
    return *view != NULL;
}

static PyObject *get_object_frames(PyObject *module, PyObject *object)
{
    hl_py_view *view;

    HL_PY_OWN_WORK;
    if (!find_object(hl_py_state_of_module(module), object, &view))
        return NULL;
    if (view == NULL)
        Py_RETURN_NONE;
    PyObject *frames = hl_py_view_frames(view, view->snapshot->rows[0].stack);
    Py_DECREF(view);
    return frames;
}

static PyObject *get_object_traceback(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"obj"};
    static const hl_py_signature signature = {"get_object_traceback", names, 0, 1, 1, 1};
    hl_py_state *state = hl_py_state_of_module(module);
    PyObject *object;
    hl_py_view *view;

    if (!hl_py_arguments_parse(&signature, args, kwargs, &object))
        return NULL;
    HL_PY_OWN_WORK;
    if (!find_object(state, object, &view))
        return NULL;
    if (view == NULL)
        Py_RETURN_NONE;
    PyObject *traceback = hl_py_traceback_new(state, view, HL_BY_STACK, view->snapshot->rows[0].stack, NULL);
    Py_DECREF(view);
    return traceback;
}

/* --- what the package's Python code needs --- */

static PyObject *add_own_folder(PyObject *module, PyObject *folder)
{
    PyObject *owner;
    size_t length;

    (void)module;
    const char *path = hl_py_text_utf8(folder, &length, &owner);
    if (path == NULL)
        return NULL;
    /* Frozen code has no folder. An empty name would match every folder. */
    hl_status status = length > 0 ? hl_own_code_add_folder(path, length) : HL_OK;
    Py_DECREF(owner);
    if (status != HL_OK)
        return hl_py_raise_status(status);
    Py_RETURN_NONE;
}

/* --- helpers that tools use --- */

static PyObject *format_size(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"size", "sign"};
    static const hl_py_signature signature = {"_format_size", names, 0, 2, 2, 2};
    PyObject *values[2];

    (void)module;
    if (!hl_py_arguments_parse(&signature, args, kwargs, values))
        return NULL;
    int sign = PyObject_IsTrue(values[1]);
    return sign < 0 ? NULL : hl_py_text_size(values[0], sign);
}

#define KEYWORDS(function) (PyCFunction)(void (*)(void)) function, METH_VARARGS | METH_KEYWORDS

PyMethodDef hl_py_functions[] = {
    {"start", KEYWORDS(start),
     PyDoc_STR(
         "start(nframe=1, /, *, numbers=False)\n--\n\nStart tracing, with at most nframe frames per traceback.\n\n"
         "With numbers, floats and ints that take the memory of dead ones are reported at their own line, too.")},
    {"stop", stop, METH_NOARGS, PyDoc_STR("stop()\n--\n\nStop tracing and forget everything traced.")},
    {"is_tracing", is_tracing, METH_NOARGS, PyDoc_STR("is_tracing()\n--\n\nTrue while allocations are traced.")},
    {"clear_traces", clear_traces, METH_NOARGS, PyDoc_STR("clear_traces()\n--\n\nForget everything traced so far.")},
    {"reset_peak", reset_peak, METH_NOARGS,
     PyDoc_STR("reset_peak()\n--\n\nSet the peak of traced memory to what is traced now.")},
    {"get_traced_memory", get_traced_memory, METH_NOARGS,
     PyDoc_STR("get_traced_memory()\n--\n\nBytes traced now and at the peak: (current, peak).")},
    {"get_tracemalloc_memory", get_tracemalloc_memory, METH_NOARGS,
     PyDoc_STR("get_tracemalloc_memory()\n--\n\nBytes that tracing itself uses.")},
    {"get_traceback_limit", get_traceback_limit, METH_NOARGS,
     PyDoc_STR("get_traceback_limit()\n--\n\nFrames kept per traceback at the most.")},
    {"get_object_traceback", KEYWORDS(get_object_traceback),
     PyDoc_STR("get_object_traceback(obj)\n--\n\nWhere obj was allocated: a Traceback, or None.")},
    {"take_snapshot", KEYWORDS(hl_py_take_snapshot),
     PyDoc_STR("take_snapshot()\n--\n\nA Snapshot of all traced blocks.")},
    {"take_capture", hl_py_take_capture, METH_NOARGS,
     PyDoc_STR(
         "take_capture()\n--\n\nA Capture: the ledger now, at the peak, and all that was allocated, at one instant.")},
    {"take_peak_snapshot", hl_py_take_peak_snapshot, METH_NOARGS,
     PyDoc_STR("take_peak_snapshot()\n--\n\n"
               "A Snapshot of the blocks that were traced at the moment of the greatest traced memory\n"
               "since start(), clear_traces() or reset_peak(); its sizes add up to get_traced_memory()[1].")},
    {"take_allocation_snapshot", hl_py_take_allocation_snapshot, METH_NOARGS,
     PyDoc_STR("take_allocation_snapshot()\n--\n\n"
               "A Snapshot of all blocks allocated since start() or clear_traces(), freed or not.\n\n"
               "A reallocation counts as an allocation of the new size. Blocks are counted by traceback and\n"
               "size: counters with no traced block left are reclaimed in time, and what they had counted is\n"
               "in allocated() only. Going through the traces one by one, and dump(), take a step for each\n"
               "block ever allocated; statistics, differences and filters do not.")},
    {"allocated", allocated, METH_NOARGS,
     PyDoc_STR("allocated()\n--\n\n"
               "All that was allocated since start() or clear_traces(), freed or not: (bytes, blocks).")},
    {"memory", memory, METH_NOARGS,
     PyDoc_STR("memory()\n--\n\nBytes that heapledger uses, by purpose: a dict with their total.")},
    {"lost_records", lost_records, METH_NOARGS,
     PyDoc_STR(
         "lost_records()\n--\n\nAllocations that could not be entered, or had to be forgotten, since the last start.")},
    {"_get_traces", hl_py_take_traces, METH_NOARGS,
     PyDoc_STR("_get_traces()\n--\n\nList of (domain, size, frames newest first, total_nframe), one per block.")},
    {"_get_object_traceback", get_object_frames, METH_O,
     PyDoc_STR("_get_object_traceback(obj, /)\n--\n\nTuple of (filename, lineno), newest first, or None.")},
    {"_add_own_folder", add_own_folder, METH_O,
     PyDoc_STR(
         "_add_own_folder(folder, /)\n--\n\n"
         "What functions allocate whose code is from this folder, given with its last separator, is our own work.")},
    {"_format_size", KEYWORDS(format_size), PyDoc_STR("_format_size(size, sign)\n--\n\nA size for people.")},
    {"_process_memory", hl_py_metadata_process_memory, METH_NOARGS,
     PyDoc_STR("_process_memory()\n--\n\n(arena bytes, (heap, mapped, used, free)), each None where not known.")},
    {"_make_capture", (PyCFunction)(void (*)(void))hl_py_make_capture, METH_FASTCALL,
     PyDoc_STR(
         "_make_capture(live, peak, allocated, /)\n--\n\nA Capture of snapshots that share their names, or None.")},
    {"_merge_captures", hl_py_snapshot_merge_captures, METH_O,
     PyDoc_STR(
         "_merge_captures(captures, /)\n--\n\nMany tuples of snapshots added up to one, which share their names.")},
    {"_file_prepare", hl_py_files_prepare, METH_VARARGS,
     PyDoc_STR("_file_prepare(traces, limit, /)\n--\n\n(traces for _file_write, limit, payload of TOTL or None).")},
    {"_file_write", hl_py_files_write, METH_VARARGS,
     PyDoc_STR("_file_write((traces, ...), sections, /)\n--\n\nThe bytes of a file; sections are (kind, bytes).")},
    {"_file_rows", hl_py_convert_rows, METH_VARARGS,
     PyDoc_STR("_file_rows(rows, moment, limit, /)\n--\n\nTraces for _file_write, of a tuple of (frames, size, blocks) "
               "whose frames are a tuple of\n(filename, lineno, function or None), the newest first.")},
    {"_file_read", hl_py_files_read, METH_O,
     PyDoc_STR("_file_read(data, /)\n--\n\n([(traces, limit, moment)], [(kind, offset, bytes)], all is known), or "
               "ValueError(what, where).")},
    {"_file_header", hl_py_files_header, METH_VARARGS,
     PyDoc_STR("_file_header(data, /)\n--\n\n(length, state, (major, minor) or None) of an .hlsnap file's header; None "
               "for another file.")},
    {"_file_section", hl_py_files_section, METH_VARARGS,
     PyDoc_STR(
         "_file_section(data, offset, /)\n--\n\n(kind, length, state) of what begins there, or None where no section "
         "can.\n\nThe state is 'sound', 'damaged' or 'cut off'.")},
    {"_file_totals", hl_py_files_totals, METH_VARARGS,
     PyDoc_STR("_file_totals(traces, payload, whole, /)\n--\n\nThe tuples of traces with the totals of TOTL, or "
               "ValueError.")},
    {"_unpickle_run", hl_py_unpickle_run, METH_VARARGS,
     PyDoc_STR("_unpickle_run(data, at, stack, marks, memo, /)\n--\n\nWhere it stopped: see _unpickle.py.")},
    {"_unpickle_check", hl_py_unpickle_check, METH_O,
     PyDoc_STR("_unpickle_check(traces, /)\n--\n\nNone, or the index of a trace that is none and why.")},
    {"_file_snapshot", hl_py_files_snapshot, METH_VARARGS,
     PyDoc_STR("_file_snapshot(traces, limit, raw_metadata, /)\n--\n\nA Snapshot with these very traces.")},
    {"_raw_metadata", hl_py_files_raw_metadata, METH_O,
     PyDoc_STR("_raw_metadata(snapshot, /)\n--\n\nWhat its metadata are made of; None for a snapshot without.")},
    {"_lacks_frames", hl_py_convert_lacks_frames, METH_O,
     PyDoc_STR("_lacks_frames(traces, /)\n--\n\nTrue if a trace has no frames, which analyses cannot show.")},
    {"_sum_by", hl_py_sum_by, METH_VARARGS,
     PyDoc_STR("_sum_by(snapshot, key, frames, /)\n--\n\n"
               "{key(filename, lineno, function or None): (bytes, blocks)} by the newest frame of each stack (frames\n"
               "is 'newest'), by the newest that has a key, which is one other than None ('first'), or by all its\n"
               "frames, where a block counts once for each key ('all'). What has no key counts for None.")},
    {"_split", hl_py_sum_by_split, METH_VARARGS,
     PyDoc_STR("_split(snapshot, answer, /)\n--\n\n"
               "Two Snapshots: the blocks for whose stacks the newest frame that has an answer says no, and those for\n"
               "which it says yes. answer(filename, lineno, function or None) is true, false, or None for none.")},
    {"_top_statistics", hl_py_top_statistics, METH_VARARGS,
     PyDoc_STR("_top_statistics(snapshot, old_snapshot or None, key_type, limit, /)\n--\n\n"
               "The first `limit` statistics of a snapshot, or of its differences from the old one that are not 0,\n"
               "and how many there are.")},
    {"_call_tree", hl_py_call_tree, METH_VARARGS,
     PyDoc_STR("_call_tree(snapshots, joined=False, /)\n--\n\n"
               "The call tree of a tuple of Snapshots and Nones: (parents, locations, ends, names, sums).\n\n"
               "Node 0 is the root, a parent precedes its children, and a node is followed by all that is below\n"
               "it. parents, locations and ends are bytes for array('I'): the parent of each node, an index into\n"
               "names, a tuple of (filename, lineno, function or None) with None for the root, and the number of\n"
               "the node after the last one below. sums has for each\n"
               "snapshot None, or bytes for array('Q'), a number for each node: (own bytes, own blocks, bytes,\n"
               "blocks), where own is what was allocated by the frame itself, and the others include its callees.\n"
               "joined puts stacks that were cut below the frame that has most likely called them: see tree.h.")},
    {"_validate", validate, METH_NOARGS,
     PyDoc_STR("_validate()\n--\n\nNone, or the invariant of the ledger that does not hold.")},
    {"_in_main_interpreter", in_main_interpreter, METH_NOARGS,
     PyDoc_STR("_in_main_interpreter()\n--\n\nTrue in the process's first interpreter.")},
    {NULL, NULL, 0, NULL},
};
