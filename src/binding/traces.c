/* traces.c: _Traces: the sequence of a snapshot's traces.
 *
 * If a caller makes it, it keeps the object that it was given. If we make it, it has a view: length, items and slices
 * come from the rows, and the list of tuples is built only when _traces is read. From then on items come from the list,
 * because a program may change it. Analyses still use the view as long as the list is unchanged, which a comparison of
 * pointers shows.
 *
 * Threading: the GIL.
 */
#include "traces.h"

#include "arguments.h"
#include "objects.h"
#include "sequence.h"
#include "trace.h"

typedef struct {
    PyObject_HEAD
    PyObject *list;   /* NULL: not built, or not set */
    hl_py_view *view; /* NULL: a caller made it, or _traces has been set */
    PyObject *dict;
    PyObject *weak;
} hl_py_traces;

PyObject *hl_py_traces_new(hl_py_state *state, hl_py_view *view)
{
    hl_py_traces *self = (hl_py_traces *)state->traces->tp_alloc(state->traces, 0);

    if (self != NULL)
        self->view = hl_py_view_hold(view);
    return (PyObject *)self;
}

static int traces_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"traces"};
    static const hl_py_signature signature = {"_Traces.__init__", names, 1, 1, 1, 1};
    hl_py_traces *self = (hl_py_traces *)object;
    PyObject *value;

    if (!hl_py_arguments_parse(&signature, args, kwargs, &value))
        return -1;
    Py_CLEAR(self->view);
    Py_XSETREF(self->list, Py_NewRef(value));
    return 0;
}

/* --- the two kinds --- */

static bool list_is_unchanged(const hl_py_traces *self)
{
    const hl_snapshot *snapshot = self->view->snapshot;
    size_t next = 0;

    if (!PyList_CheckExact(self->list) || (uint64_t)PyList_GET_SIZE(self->list) != snapshot->blocks)
        return false;
    for (size_t row = 0; row < snapshot->row_count; row++) {
        for (uint64_t i = 0; i < snapshot->rows[row].live; i++) {
            if (PyList_GET_ITEM(self->list, (Py_ssize_t)next++) != self->view->rows[row])
                return false;
        }
    }
    return true;
}

hl_py_view *hl_py_traces_view(hl_py_state *state, PyObject *object)
{
    hl_py_traces *self = (hl_py_traces *)object;

    if (!PyObject_TypeCheck(object, state->traces) || self->view == NULL)
        return NULL;
    if (self->list != NULL && !list_is_unchanged(self))
        return NULL;
    return hl_py_view_hold(self->view);
}

/* Items come from the rows, because no list has been built or given. */
static bool is_native(const hl_py_traces *self)
{
    return self->view != NULL && self->list == NULL;
}

/* The list that items come from, if the object is not native. */
static PyObject *given_list(PyObject *object)
{
    hl_py_traces *self = (hl_py_traces *)object;

    return self->list != NULL ? Py_NewRef(self->list) : hl_py_object_missing(object, "_traces");
}

static PyObject *build_list(hl_py_traces *self)
{
    hl_py_view *view = hl_py_view_hold(self->view);
    PyObject *list = hl_py_view_list(view);

    Py_DECREF(view);
    return list;
}

PyObject *hl_py_traces_list(hl_py_state *state, PyObject *object)
{
    if (!PyObject_TypeCheck(object, state->traces))
        return PyObject_GetAttrString(object, "_traces");
    hl_py_traces *self = (hl_py_traces *)object;
    return is_native(self) ? build_list(self) : given_list(object);
}

static PyObject *get_list(PyObject *object, void *closure)
{
    (void)closure;
    hl_py_traces *self = (hl_py_traces *)object;

    if (is_native(self)) {
        HL_PY_OWN_WORK;
        PyObject *list = build_list(self);
        if (list == NULL)
            return NULL;
        if (self->list == NULL)
            self->list = list;
        else
            Py_DECREF(list);
    }
    return given_list(object);
}

static int set_list(PyObject *object, PyObject *value, void *closure)
{
    (void)closure;
    hl_py_traces *self = (hl_py_traces *)object;

    if (value == NULL && self->list == NULL && self->view == NULL) {
        hl_py_object_missing(object, "_traces");
        return -1;
    }
    Py_CLEAR(self->view);
    Py_XSETREF(self->list, Py_XNewRef(value));
    return 0;
}

/* --- sequence --- */

static Py_ssize_t traces_length(PyObject *object)
{
    hl_py_traces *self = (hl_py_traces *)object;

    if (is_native(self))
        return (Py_ssize_t)self->view->snapshot->blocks;
    PyObject *list = given_list(object);
    if (list == NULL)
        return -1;
    Py_ssize_t length = PyObject_Size(list);
    Py_DECREF(list);
    return length;
}

static PyObject *native_item(hl_py_state *state, hl_py_traces *self, Py_ssize_t index)
{
    size_t row;

    if (index < 0 || (uint64_t)index >= self->view->snapshot->blocks) {
        PyErr_SetString(PyExc_IndexError, "list index out of range");
        return NULL;
    }
    if (!hl_py_view_row_of_block(self->view, (uint64_t)index, &row))
        return NULL;
    return hl_py_trace_new(state, self->view, row);
}

static PyObject *given_item(hl_py_state *state, PyObject *object, PyObject *index)
{
    PyObject *list = given_list(object);
    PyObject *found = list != NULL ? PyObject_GetItem(list, index) : NULL;
    PyObject *result = NULL;

    if (found != NULL)
        result =
            PySlice_Check(index) ? hl_py_sequence_wrap(state, found, hl_py_trace_wrap) : hl_py_trace_wrap(state, found);
    Py_XDECREF(found);
    Py_XDECREF(list);
    return result;
}

static PyObject *native_slice(hl_py_state *state, hl_py_traces *self, PyObject *slice)
{
    Py_ssize_t start, stop, step;

    if (PySlice_Unpack(slice, &start, &stop, &step) < 0)
        return NULL;
    if (!is_native(self)) /* __index__ may have run any code */
        return given_item(state, (PyObject *)self, slice);
    hl_py_view *view = hl_py_view_hold(self->view);
    Py_ssize_t count = PySlice_AdjustIndices((Py_ssize_t)view->snapshot->blocks, &start, &stop, step);
    PyObject *result = PyTuple_New(count);
    for (Py_ssize_t i = 0; result != NULL && i < count; i++) {
        size_t row;
        PyObject *trace = NULL;
        if (hl_py_view_row_of_block(view, (uint64_t)(start + i * step), &row))
            trace = hl_py_trace_new(state, view, row);
        if (trace == NULL)
            Py_CLEAR(result);
        else
            PyTuple_SET_ITEM(result, i, trace);
    }
    Py_DECREF(view);
    return result;
}

static PyObject *traces_subscript(PyObject *object, PyObject *index)
{
    hl_py_state *state = hl_py_state_of(Py_TYPE(object));
    hl_py_traces *self = (hl_py_traces *)object;

    HL_PY_OWN_WORK;
    if (!is_native(self))
        return given_item(state, object, index);
    if (PySlice_Check(index))
        return native_slice(state, self, index);
    if (!PyIndex_Check(index)) {
        PyErr_Format(PyExc_TypeError, "list indices must be integers or slices, not %.200s", Py_TYPE(index)->tp_name);
        return NULL;
    }
    Py_ssize_t position = PyNumber_AsSsize_t(index, PyExc_IndexError);
    if (position == -1 && PyErr_Occurred())
        return NULL;
    if (!is_native(self)) /* __index__ may have run any code */
        return given_item(state, object, index);
    return native_item(state, self, position < 0 ? position + (Py_ssize_t)self->view->snapshot->blocks : position);
}

static PyObject *traces_item(PyObject *object, Py_ssize_t index)
{
    hl_py_traces *self = (hl_py_traces *)object;

    HL_PY_OWN_WORK;
    if (is_native(self))
        return native_item(hl_py_state_of(Py_TYPE(object)), self, index);
    PyObject *position = PyLong_FromSsize_t(index);
    if (position == NULL)
        return NULL;
    PyObject *item = given_item(hl_py_state_of(Py_TYPE(object)), object, position);
    Py_DECREF(position);
    return item;
}

/* A cheap test that rules out most rows: does the tuple have this size? */
static bool may_equal(PyObject *trace, const hl_row *row)
{
    if (!PyTuple_CheckExact(trace) || PyTuple_GET_SIZE(trace) != 4)
        return true;
    PyObject *size = PyTuple_GET_ITEM(trace, 1);
    if (!PyLong_CheckExact(size))
        return true;
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(size, &overflow);
    return overflow == 0 && number >= 0 && (uint64_t)number == row->size;
}

static int view_contains(hl_py_view *view, PyObject *trace)
{
    int found = 0;

    for (size_t row = 0; found == 0 && row < view->snapshot->row_count; row++) {
        if (view->snapshot->rows[row].live == 0 || !may_equal(trace, &view->snapshot->rows[row]))
            continue;
        PyObject *mine = hl_py_view_row(view, row);
        found = mine != NULL ? PyObject_RichCompareBool(mine, trace, Py_EQ) : -1;
        Py_XDECREF(mine);
    }
    return found;
}

static int traces_contains(PyObject *object, PyObject *trace)
{
    hl_py_traces *self = (hl_py_traces *)object;
    size_t row;
    int found = -1;

    HL_PY_OWN_WORK;
    if (is_native(self) && hl_py_trace_is_row(trace, hl_py_state_of(Py_TYPE(object)), self->view, &row))
        return self->view->snapshot->rows[row].live > 0;
    PyObject *tuple = PyObject_GetAttrString(trace, "_trace");
    if (tuple == NULL)
        return -1;
    if (is_native(self)) {
        hl_py_view *view = hl_py_view_hold(self->view);
        found = view_contains(view, tuple);
        Py_DECREF(view);
    } else {
        PyObject *list = given_list(object);
        found = list != NULL ? PySequence_Contains(list, tuple) : -1;
        Py_XDECREF(list);
    }
    Py_DECREF(tuple);
    return found;
}

/* --- comparison, text, pickling --- */

static PyObject *traces_key(PyObject *self)
{
    return hl_py_traces_list(hl_py_state_of(Py_TYPE(self)), self);
}

static PyObject *traces_compare(PyObject *self, PyObject *other, int op)
{
    HL_PY_OWN_WORK;
    return hl_py_object_compare(self, other, op, hl_py_state_of(Py_TYPE(self))->traces, false, traces_key);
}

static PyObject *traces_repr(PyObject *self)
{
    Py_ssize_t length = PyObject_Size(self);

    return length < 0 ? NULL : PyUnicode_FromFormat("<Traces len=%zd>", length);
}

/* The same state as in the stdlib: the instance's dict, where _traces is an item like any other. */
static PyObject *traces_getstate(PyObject *object, PyObject *unused)
{
    (void)unused;
    hl_py_traces *self = (hl_py_traces *)object;

    HL_PY_OWN_WORK;
    PyObject *state = self->dict != NULL ? PyDict_Copy(self->dict) : PyDict_New();
    if (state == NULL)
        return NULL;
    if (self->list == NULL && self->view == NULL)
        return state;
    PyObject *list = traces_key(object);
    if (list == NULL || PyDict_SetItemString(state, "_traces", list) < 0)
        Py_CLEAR(state);
    Py_XDECREF(list);
    return state;
}

static PyObject *traces_setstate(PyObject *self, PyObject *state)
{
    Py_ssize_t position = 0;
    PyObject *name, *value;

    if (!PyDict_Check(state)) {
        PyErr_SetString(PyExc_TypeError, "state is not a dictionary");
        return NULL;
    }
    HL_PY_OWN_WORK;
    PyObject *copy = PyDict_Copy(state);
    while (copy != NULL && PyDict_Next(copy, &position, &name, &value)) {
        if (PyObject_SetAttr(self, name, value) < 0)
            Py_CLEAR(copy);
    }
    if (copy == NULL)
        return NULL;
    Py_DECREF(copy);
    Py_RETURN_NONE;
}

/* --- the type --- */

static int traces_traverse(PyObject *object, visitproc visit, void *arg)
{
    hl_py_traces *self = (hl_py_traces *)object;

    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->list);
    Py_VISIT(self->dict);
    return 0;
}

static int traces_clear(PyObject *object)
{
    hl_py_traces *self = (hl_py_traces *)object;

    Py_CLEAR(self->list);
    Py_CLEAR(self->view);
    Py_CLEAR(self->dict);
    return 0;
}

static void traces_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, traces_dealloc)
    if (((hl_py_traces *)self)->weak != NULL)
        PyObject_ClearWeakRefs(self);
    traces_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

PyTypeObject *hl_py_traces_type_new(PyObject *module)
{
    static PyMemberDef members[] = {
        HL_PY_DICT_MEMBERS(hl_py_traces),
        {NULL, 0, 0, 0, NULL},
    };
    static PyGetSetDef getset[] = {
        {"_traces", get_list, set_list, PyDoc_STR("List of trace tuples."), NULL},
        {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyMethodDef methods[] = {
        HL_PY_SEQUENCE_METHODS,
        {"__reduce__", hl_py_object_reduce, METH_NOARGS, NULL},
        {"__getstate__", traces_getstate, METH_NOARGS, NULL},
        {"__setstate__", traces_setstate, METH_O, NULL},
        {NULL, NULL, 0, NULL},
    };
    PyType_Slot slots[] = {
        {Py_tp_doc, (void *)"_Traces(traces)\n--\n\nThe sequence of a snapshot's Traces."},
        {Py_tp_new, PyType_GenericNew},
        {Py_tp_init, traces_init},
        {Py_sq_length, traces_length},
        {Py_sq_item, traces_item},
        {Py_sq_contains, traces_contains},
        {Py_mp_length, traces_length},
        {Py_mp_subscript, traces_subscript},
        {Py_tp_iter, PySeqIter_New},
        {Py_tp_richcompare, traces_compare},
        {Py_tp_hash, PyObject_HashNotImplemented},
        {Py_tp_repr, traces_repr},
        {Py_tp_members, members},
        {Py_tp_getset, getset},
        {Py_tp_methods, methods},
        {Py_tp_traverse, traces_traverse},
        {Py_tp_clear, traces_clear},
        {Py_tp_dealloc, traces_dealloc},
        {0, NULL},
    };
    PyType_Spec spec = {
        .name = "heapledger._Traces",
        .basicsize = sizeof(hl_py_traces),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
        .slots = slots,
    };
    return hl_py_type_new(module, &spec, NULL, NULL);
}
