/* take.c: functions that take snapshots of the ledger, and captures, which are snapshots of several moments.
 *
 * take_snapshot looks up its helpers in the package's namespace at each call, like the function of the stdlib. Tests
 * and tools replace them there.
 *
 * Threading: the GIL.
 */
#include "take.h"

#include "arguments.h"
#include "metadata.h"
#include "snapshot_object.h"
#include "traces.h"
#include "view.h"

PyObject *hl_py_take_traces(PyObject *module, PyObject *unused)
{
    (void)unused;
    hl_snapshot *snapshot;

    HL_PY_OWN_WORK;
    hl_status status = hl_tracer_snapshot(HL_LIVE, &snapshot);
    if (status == HL_STOPPED)
        return PyList_New(0);
    if (status != HL_OK)
        return hl_py_raise_status(status);
    hl_py_view *view = hl_py_view_new(hl_py_state_of_module(module), snapshot);
    if (view == NULL)
        return NULL;
    PyObject *list = hl_py_view_list(view);
    Py_DECREF(view);
    return list;
}

/* Steals both references. */
static PyObject *wrap_snapshot(hl_py_state *state, hl_snapshot *snapshot, PyObject *raw_metadata)
{
    PyObject *limit = PyLong_FromUnsignedLong(snapshot->nframe);
    hl_py_view *view = hl_py_view_new(state, snapshot);
    PyObject *traces = view != NULL ? hl_py_traces_new(state, view) : NULL;

    Py_XDECREF(view);
    return hl_py_snapshot_with_raw_metadata(hl_py_snapshot_new(state, traces, limit), raw_metadata);
}

bool hl_py_take_objects(hl_py_state *state, hl_snapshot *const *snapshots, size_t count, const hl_tracer_totals *tracer,
                        PyObject **objects)
{
    PyObject *raw_metadata[HL_MOMENTS];
    bool whole = true;

    if (!hl_py_metadata_take(snapshots, count, tracer, raw_metadata)) {
        for (size_t i = 0; i < count; i++)
            hl_snapshot_drop(snapshots[i]);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        objects[i] = wrap_snapshot(state, snapshots[i], raw_metadata[i]);
        whole = whole && objects[i] != NULL;
    }
    for (size_t i = 0; i < count && !whole; i++)
        Py_CLEAR(objects[i]);
    return whole;
}

/* Returns false with an exception. Otherwise objects[0..count) are Snapshots. */
static bool take_moments(hl_py_state *state, const hl_moment *moments, size_t count, PyObject **objects)
{
    hl_snapshot *snapshots[HL_MOMENTS];
    hl_tracer_totals tracer;
    hl_status status = hl_tracer_capture(moments, count, snapshots, &tracer);

    if (status != HL_OK)
        hl_py_raise_status(status);
    return status == HL_OK && hl_py_take_objects(state, snapshots, count, &tracer, objects);
}

static PyObject *take_native(hl_py_state *state, hl_moment moment)
{
    PyObject *snapshot;

    return take_moments(state, &moment, 1, &snapshot) ? snapshot : NULL;
}

/* Makes a Capture of snapshots and Nones, in the order of hl_moment. It does not call Capture.__init__, which always
 * raises. */
static PyObject *new_capture(PyObject *const *snapshots)
{
    PyObject *capture = NULL, *nothing = PyTuple_New(0);
    PyObject *package = PyImport_ImportModule("heapledger._capture");
    PyObject *type = package != NULL ? PyObject_GetAttrString(package, "Capture") : NULL;

    if (type != NULL && nothing != NULL && PyType_Check(type))
        capture = PyBaseObject_Type.tp_new((PyTypeObject *)type, nothing, NULL);
    for (size_t i = 0; capture != NULL && i < HL_MOMENTS; i++) {
        if (PyObject_SetAttrString(capture, hl_moment_names[i], snapshots[i]) < 0)
            Py_CLEAR(capture);
    }
    Py_XDECREF(type);
    Py_XDECREF(package);
    Py_XDECREF(nothing);
    return capture;
}

PyObject *hl_py_make_capture(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != HL_MOMENTS) {
        PyErr_SetString(PyExc_TypeError, "_make_capture takes three snapshots");
        return NULL;
    }
    HL_PY_OWN_WORK;
    return new_capture(args);
}

PyObject *hl_py_take_capture(PyObject *module, PyObject *unused)
{
    static const hl_moment moments[HL_MOMENTS] = {HL_LIVE, HL_PEAK, HL_ALLOCATED};
    PyObject *taken[HL_MOMENTS];

    (void)unused;
    HL_PY_OWN_WORK;
    if (!take_moments(hl_py_state_of_module(module), moments, HL_MOMENTS, taken))
        return NULL;
    PyObject *capture = new_capture(taken);
    for (size_t i = 0; i < HL_MOMENTS; i++)
        Py_DECREF(taken[i]);
    return capture;
}

/* Takes a snapshot with functions that replace ours. */
static PyObject *take_replaced(hl_py_state *state, PyObject *const *functions)
{
    PyObject *tracing = PyObject_CallNoArgs(functions[0]);
    int is_true = tracing != NULL ? PyObject_IsTrue(tracing) : -1;

    Py_XDECREF(tracing);
    if (is_true <= 0)
        return is_true == 0 ? hl_py_raise_status(HL_STOPPED) : NULL;
    PyObject *traces = PyObject_CallNoArgs(functions[1]);
    PyObject *limit = traces != NULL ? PyObject_CallNoArgs(functions[2]) : NULL;
    PyObject *snapshot = NULL;
    if (limit != NULL)
        snapshot = PyObject_CallFunctionObjArgs((PyObject *)state->snapshot, traces, limit, NULL);
    Py_XDECREF(limit);
    Py_XDECREF(traces);
    return snapshot;
}

PyObject *hl_py_take_snapshot(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static const hl_py_signature signature = {"take_snapshot", NULL, 0, 0, 0, 0};
    static const char *const names[] = {"is_tracing", "_get_traces", "get_traceback_limit"};
    PyObject *functions[3] = {NULL, NULL, NULL}, *snapshot = NULL;
    bool native = true;
    int found = 0;

    if (!hl_py_arguments_parse(&signature, args, kwargs, NULL))
        return NULL;
    HL_PY_OWN_WORK;
    PyObject *package = PyImport_ImportModule("heapledger");
    if (package == NULL)
        return NULL;
    while (found < 3 && (functions[found] = PyObject_GetAttrString(package, names[found])) != NULL) {
        PyObject *own = PyObject_GetAttrString(module, names[found]);
        native = native && functions[found] == own;
        Py_XDECREF(own);
        found++;
    }
    Py_DECREF(package);
    if (found == 3 && !PyErr_Occurred())
        snapshot = native ? take_native(hl_py_state_of_module(module), HL_LIVE)
                          : take_replaced(hl_py_state_of_module(module), functions);
    for (int i = 0; i < found; i++)
        Py_DECREF(functions[i]);
    return snapshot;
}

PyObject *hl_py_take_peak_snapshot(PyObject *module, PyObject *unused)
{
    (void)unused;
    HL_PY_OWN_WORK;
    return take_native(hl_py_state_of_module(module), HL_PEAK);
}

PyObject *hl_py_take_allocation_snapshot(PyObject *module, PyObject *unused)
{
    (void)unused;
    HL_PY_OWN_WORK;
    return take_native(hl_py_state_of_module(module), HL_ALLOCATED);
}
