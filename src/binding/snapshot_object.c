/* snapshot_object.c: Snapshot: traces, their frame limit, and the analyses.
 *
 * Attributes are in the instance's __dict__, as in the stdlib's class. So a user's own attributes, pickling and copying
 * need no special code. The raw metadata, from which a dict is made on demand, are not in the __dict__. No user has put
 * them there, and without them pickles and copies are like those of the stdlib. An analysis works on a core snapshot.
 * It belongs to native traces, or it is converted from tuples for this analysis.
 *
 * Threading: the GIL, released while the core groups.
 */
#include "snapshot_object.h"

#include "arguments.h"
#include "convert.h"
#include "objects.h"
#include "selection.h"
#include "snapshot_merge.h"
#include "statistic.h"
#include "traces.h"
#include "view.h"

typedef struct {
    PyObject_HEAD
    PyObject *dict;
    PyObject *weak;
    PyObject *raw_metadata; /* a bytearray of numbers, or bytes from a file; NULL if there are none */
} hl_py_snapshot;

static int set_attributes(PyObject *self, PyObject *traces, PyObject *limit)
{
    if (PyObject_SetAttrString(self, "traces", traces) < 0)
        return -1;
    return PyObject_SetAttrString(self, "traceback_limit", limit);
}

PyObject *hl_py_snapshot_new(hl_py_state *state, PyObject *traces, PyObject *limit)
{
    PyObject *self = NULL;

    if (traces != NULL && limit != NULL)
        self = state->snapshot->tp_alloc(state->snapshot, 0);
    if (self != NULL && set_attributes(self, traces, limit) < 0)
        Py_CLEAR(self);
    Py_XDECREF(traces);
    Py_XDECREF(limit);
    return self;
}

PyObject *hl_py_snapshot_with_raw_metadata(PyObject *snapshot, PyObject *raw_metadata)
{
    if (snapshot != NULL && raw_metadata != NULL) {
        Py_XSETREF(((hl_py_snapshot *)snapshot)->raw_metadata, raw_metadata);
        return snapshot;
    }
    Py_XDECREF(raw_metadata);
    Py_XDECREF(snapshot);
    return NULL;
}

PyObject *hl_py_snapshot_raw_metadata(PyObject *snapshot)
{
    PyObject *raw_metadata = ((hl_py_snapshot *)snapshot)->raw_metadata;

    return Py_NewRef(raw_metadata != NULL ? raw_metadata : Py_None);
}

static int snapshot_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"traces", "traceback_limit"};
    static const hl_py_signature signature = {"Snapshot.__init__", names, 1, 2, 2, 2};
    PyObject *values[2];

    if (!hl_py_arguments_parse(&signature, args, kwargs, values))
        return -1;
    PyObject *traces = PyObject_CallOneArg((PyObject *)hl_py_state_of(Py_TYPE(self))->traces, values[0]);
    if (traces == NULL)
        return -1;
    int result = set_attributes(self, traces, values[1]);
    Py_DECREF(traces);
    return result;
}

/* --- analyses --- */

typedef struct {
    hl_key_type type;
    bool cumulative;
} grouping;

static int equals_text(PyObject *value, const char *text)
{
    PyObject *other = PyUnicode_FromString(text);
    if (other == NULL)
        return -1;
    int equal = PyObject_RichCompareBool(value, other, Py_EQ);
    Py_DECREF(other);
    return equal;
}

bool hl_py_read_key_type(PyObject *name, hl_key_type *type)
{
    static const char *const names[] = {"traceback", "filename", "lineno"};
    static const hl_key_type types[] = {HL_BY_STACK, HL_BY_FILE, HL_BY_LINE};
    int found = 0, which = -1;

    while (found == 0 && ++which < 3)
        found = equals_text(name, names[which]);
    if (found < 0)
        return false;
    if (!found) {
        PyErr_Format(PyExc_ValueError, "unknown key_type: %R", name);
        return false;
    }
    *type = types[which];
    return true;
}

static bool read_grouping(PyObject *key_type, PyObject *cumulative, grouping *by)
{
    if (!hl_py_read_key_type(key_type, &by->type))
        return false;
    int add_up = cumulative != NULL ? PyObject_IsTrue(cumulative) : 0;
    if (add_up < 0)
        return false;
    by->cumulative = add_up;
    if (by->cumulative && by->type == HL_BY_STACK) {
        PyErr_Format(PyExc_ValueError, "cumulative mode cannot by used with key type %R", key_type);
        return false;
    }
    return true;
}

/* The core snapshot behind a Snapshot. This is one of ours, of either kind, or any object with the same attributes. */
static hl_py_view *view_of(hl_py_state *state, PyObject *snapshot, const grouping *by)
{
    PyObject *traces = PyObject_GetAttrString(snapshot, "traces");
    if (traces == NULL)
        return NULL;
    hl_py_view *view = hl_py_traces_view(state, traces);
    if (view == NULL) {
        PyObject *list = hl_py_traces_list(state, traces);
        if (list != NULL)
            view = hl_py_convert_traces(state, list, by->cumulative ? 0 : HL_PY_NEED_FRAMES);
        Py_XDECREF(list);
    }
    Py_DECREF(traces);
    return view;
}

/* The collector is disabled while the list of results is filled. No result can be garbage yet, but the collector would
 * run again and again, sometimes on the whole heap. Only our code runs in the meantime. */

static PyObject *build_statistics(hl_py_state *state, hl_py_view *view, const grouping *by)
{
    hl_group *groups = NULL;
    size_t count = 0;
    hl_status status;

    Py_BEGIN_ALLOW_THREADS
    status = hl_group_rows(view->snapshot, by->type, by->cumulative, &groups, &count);
    Py_END_ALLOW_THREADS
    if (status != HL_OK)
        return hl_py_raise_status(status);
    int collecting = PyGC_Disable();
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *statistic = hl_py_statistic_new(state, view, by->type, &groups[i]);
        if (statistic == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, statistic);
    }
    if (collecting)
        PyGC_Enable();
    hl_os_free(groups);
    return list;
}

static PyObject *snapshot_statistics(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"key_type", "cumulative"};
    static const hl_py_signature signature = {"Snapshot.statistics", names, 1, 1, 2, 2};
    hl_py_state *state = hl_py_state_of(Py_TYPE(self));
    PyObject *values[2];
    grouping by;

    if (!hl_py_arguments_parse(&signature, args, kwargs, values) || !read_grouping(values[0], values[1], &by))
        return NULL;
    HL_PY_OWN_WORK;
    hl_py_view *view = view_of(state, self, &by);
    if (view == NULL)
        return NULL;
    PyObject *list = build_statistics(state, view, &by);
    Py_DECREF(view);
    return list;
}

static PyObject *build_differences(hl_py_state *state, hl_py_view *now, hl_py_view *before, const grouping *by)
{
    hl_difference *differences = NULL;
    size_t count = 0;
    hl_status status;

    Py_BEGIN_ALLOW_THREADS
    status = hl_group_compare(now->snapshot, before->snapshot, by->type, by->cumulative, &differences, &count);
    Py_END_ALLOW_THREADS
    if (status != HL_OK)
        return hl_py_raise_status(status);
    int collecting = PyGC_Disable();
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        hl_py_view *view = differences[i].from_old ? before : now;
        PyObject *difference = hl_py_difference_new(state, view, by->type, &differences[i]);
        if (difference == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, difference);
    }
    if (collecting)
        PyGC_Enable();
    hl_os_free(differences);
    return list;
}

/* An object that is not our Snapshot may be the stdlib's. An object without _group_by is neither. */
static bool is_snapshot(hl_py_state *state, PyObject *object)
{
    if (PyObject_TypeCheck(object, state->snapshot))
        return true;
    PyObject *group_by = PyObject_GetAttrString(object, "_group_by");
    Py_XDECREF(group_by);
    return group_by != NULL;
}

static PyObject *snapshot_compare_to(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"old_snapshot", "key_type", "cumulative"};
    static const hl_py_signature signature = {"Snapshot.compare_to", names, 1, 2, 3, 3};
    hl_py_state *state = hl_py_state_of(Py_TYPE(self));
    PyObject *list = NULL, *values[3];
    grouping by;

    if (!hl_py_arguments_parse(&signature, args, kwargs, values) || !read_grouping(values[1], values[2], &by))
        return NULL;
    HL_PY_OWN_WORK;
    hl_py_view *now = view_of(state, self, &by);
    hl_py_view *before = now != NULL && is_snapshot(state, values[0]) ? view_of(state, values[0], &by) : NULL;
    if (before != NULL)
        list = build_differences(state, now, before, &by);
    Py_XDECREF(before);
    Py_XDECREF(now);
    return list;
}

/* --- filtering --- */

static bool check_iterable(PyObject *filters)
{
    int iterable = -1;
    PyObject *abc = PyImport_ImportModule("_collections_abc");
    PyObject *type = abc != NULL ? PyObject_GetAttrString(abc, "Iterable") : NULL;

    if (type != NULL)
        iterable = PyObject_IsInstance(filters, type);
    Py_XDECREF(type);
    Py_XDECREF(abc);
    if (iterable == 0)
        PyErr_Format(PyExc_TypeError, "filters must be a list of filters, not %s", Py_TYPE(filters)->tp_name);
    return iterable > 0;
}

/* Without filters the result has the same traces. If they are in a list, the list is copied. */
static PyObject *copy_traces(hl_py_state *state, PyObject *traces)
{
    hl_py_view *view = hl_py_traces_view(state, traces);
    PyObject *copy = NULL;

    if (view != NULL) {
        copy = hl_py_traces_new(state, view);
        Py_DECREF(view);
        return copy;
    }
    PyObject *list = hl_py_traces_list(state, traces);
    if (list != NULL)
        copy = PyObject_CallMethod(list, "copy", NULL);
    Py_XDECREF(list);
    return copy;
}

static PyObject *snapshot_filter_traces(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"filters"};
    static const hl_py_signature signature = {"Snapshot.filter_traces", names, 1, 1, 1, 1};
    hl_py_state *state = hl_py_state_of(Py_TYPE(self));
    PyObject *filters, *result = NULL;

    if (!hl_py_arguments_parse(&signature, args, kwargs, &filters) || !check_iterable(filters))
        return NULL;
    HL_PY_OWN_WORK;
    int any = PyObject_IsTrue(filters);
    PyObject *traces = any >= 0 ? PyObject_GetAttrString(self, "traces") : NULL;
    if (traces != NULL)
        result = any ? hl_py_selection_filter(state, traces, filters) : copy_traces(state, traces);
    Py_XDECREF(traces);
    if (result != NULL && !PyObject_TypeCheck(result, state->traces))
        Py_SETREF(result, PyObject_CallOneArg((PyObject *)state->traces, result));
    if (result == NULL)
        return NULL;
    PyObject *filtered = hl_py_snapshot_new(state, result, PyObject_GetAttrString(self, "traceback_limit"));
    return hl_py_snapshot_with_raw_metadata(filtered, hl_py_snapshot_raw_metadata(self));
}

/* --- metadata --- */

static PyObject *call_package(const char *name, const char *function, const char *format, ...)
{
    PyObject *result = NULL;
    PyObject *module = PyImport_ImportModule(name);
    PyObject *callable = module != NULL ? PyObject_GetAttrString(module, function) : NULL;
    va_list values;

    va_start(values, format);
    PyObject *arguments = callable != NULL ? Py_VaBuildValue(format, values) : NULL;
    va_end(values);
    if (arguments != NULL)
        result = PyObject_CallObject(callable, arguments);
    Py_XDECREF(arguments);
    Py_XDECREF(callable);
    Py_XDECREF(module);
    return result;
}

/* A user may set an attribute of this name. It takes precedence over ours. */
static PyObject *get_metadata(PyObject *self, void *closure)
{
    PyObject *dict = ((hl_py_snapshot *)self)->dict;
    PyObject *set = dict != NULL ? PyDict_GetItemString(dict, "metadata") : NULL;

    (void)closure;
    if (set != NULL)
        return Py_NewRef(set);
    HL_PY_OWN_WORK;
    return call_package("heapledger._metadata", "describe", "(N)", hl_py_snapshot_raw_metadata(self));
}

static int set_metadata(PyObject *self, PyObject *value, void *closure)
{
    PyObject *dict = PyObject_GenericGetDict(self, NULL);
    int result = -1;

    (void)closure;
    if (dict == NULL)
        return -1;
    if (value != NULL)
        result = PyDict_SetItemString(dict, "metadata", value);
    else if (PyDict_GetItemString(dict, "metadata") != NULL)
        result = PyDict_DelItemString(dict, "metadata");
    else
        (void)hl_py_object_missing(self, "metadata");
    Py_DECREF(dict);
    return result;
}

/* --- files --- */

static PyObject *snapshot_dump(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"filename", "format"};
    static const hl_py_signature signature = {"Snapshot.dump", names, 1, 1, 2, 2};
    PyObject *values[2];

    if (!hl_py_arguments_parse(&signature, args, kwargs, values))
        return NULL;
    return call_package("heapledger._files", "dump", "(OOO)", self, values[0], values[1] != NULL ? values[1] : Py_None);
}

static PyObject *snapshot_load(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"filename"};
    static const hl_py_signature signature = {"Snapshot.load", names, 0, 1, 1, 1};
    PyObject *filename;

    (void)unused;
    if (!hl_py_arguments_parse(&signature, args, kwargs, &filename))
        return NULL;
    return call_package("heapledger._files", "load", "(O)", filename);
}

/* --- the type --- */

static int snapshot_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((hl_py_snapshot *)self)->dict);
    return 0;
}

static int snapshot_clear(PyObject *self)
{
    Py_CLEAR(((hl_py_snapshot *)self)->dict);
    Py_CLEAR(((hl_py_snapshot *)self)->raw_metadata);
    return 0;
}

static void snapshot_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, snapshot_dealloc)
    if (((hl_py_snapshot *)self)->weak != NULL)
        PyObject_ClearWeakRefs(self);
    snapshot_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

#define METHOD(name, function, flags, doc) \
    {name, (PyCFunction)(void (*)(void))function, METH_VARARGS | METH_KEYWORDS | flags, PyDoc_STR(doc)}

PyTypeObject *hl_py_snapshot_type_new(PyObject *module)
{
    static PyMemberDef members[] = {
        HL_PY_DICT_MEMBERS(hl_py_snapshot),
        {NULL, 0, 0, 0, NULL},
    };
    static PyGetSetDef getset[] = {
        {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
        {"metadata", get_metadata, set_metadata,
         PyDoc_STR("When, where and by what the snapshot was taken: a new dict; empty where nothing is known."), NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyMethodDef methods[] = {
        METHOD("statistics", snapshot_statistics, 0,
               "statistics(key_type, cumulative=False): sorted list of Statistic, grouped by 'filename', 'lineno' or "
               "'traceback'."),
        METHOD("compare_to", snapshot_compare_to, 0,
               "compare_to(old_snapshot, key_type, cumulative=False): sorted list of StatisticDiff."),
        METHOD("filter_traces", snapshot_filter_traces, 0,
               "filter_traces(filters): a new Snapshot with the traces that pass."),
        METHOD("dump", snapshot_dump, 0,
               "dump(filename, format=None): write the snapshot into a file, as 'hlsnap' or, for the standard library, "
               "'tracemalloc'."),
        {"__reduce__", hl_py_object_reduce, METH_NOARGS, NULL},
        METHOD("load", snapshot_load, METH_STATIC, "load(filename): read a snapshot from a file."),
        METHOD("merge", hl_py_snapshot_merge, METH_CLASS,
               "merge(snapshots): the sum of many processes' snapshots. What forked processes inherited counts once."),
        {NULL, NULL, 0, NULL},
    };
    PyType_Slot slots[] = {
        {Py_tp_doc, (void *)"Snapshot(traces, traceback_limit)\n--\n\nThe traces of one moment."},
        {Py_tp_init, snapshot_init},
        {Py_tp_members, members},
        {Py_tp_getset, getset},
        {Py_tp_methods, methods},
        {Py_tp_traverse, snapshot_traverse},
        {Py_tp_clear, snapshot_clear},
        {Py_tp_dealloc, snapshot_dealloc},
        {0, NULL},
    };
    PyType_Spec spec = {
        .name = "heapledger.Snapshot",
        .basicsize = sizeof(hl_py_snapshot),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
        .slots = slots,
    };
    return hl_py_type_new(module, &spec, NULL, NULL);
}
