/* trace.c: Trace: the domain, size and traceback of one block.
 *
 * A trace that we make is a row of a view. Its tuple is built when _trace is read. A trace that a caller makes, or
 * whose _trace has been set, holds that object and is not a row.
 *
 * Threading: the GIL.
 */
#include "trace.h"

#include "../core/group.h"
#include "arguments.h"
#include "objects.h"
#include "text.h"
#include "traceback.h"

typedef struct {
    PyObject_HEAD
    PyObject *trace;  /* NULL: a row, or not set */
    hl_py_view *view; /* NULL: not a row */
    size_t row;
} hl_py_trace;

PyObject *hl_py_trace_new(hl_py_state *state, hl_py_view *view, size_t row)
{
    hl_py_view_hold(view);
    hl_py_trace *self = PyObject_GC_New(hl_py_trace, state->trace);
    if (self == NULL) {
        Py_DECREF(view);
        return NULL;
    }
    /* The collector does not track the object until an attribute is set. */
    self->trace = NULL;
    self->view = view;
    self->row = row;
    return (PyObject *)self;
}

PyObject *hl_py_trace_wrap(hl_py_state *state, PyObject *trace)
{
    hl_py_trace *self = (hl_py_trace *)state->trace->tp_alloc(state->trace, 0);

    if (self != NULL)
        self->trace = Py_NewRef(trace);
    return (PyObject *)self;
}

bool hl_py_trace_is_row(PyObject *object, hl_py_state *state, const hl_py_view *view, size_t *row)
{
    if (!PyObject_TypeCheck(object, state->trace) || ((hl_py_trace *)object)->view != view)
        return false;
    *row = ((hl_py_trace *)object)->row;
    return true;
}

static int trace_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"trace"};
    static const hl_py_signature signature = {"Trace.__init__", names, 1, 1, 1, 1};
    hl_py_trace *self = (hl_py_trace *)object;
    PyObject *value;

    if (!hl_py_arguments_parse(&signature, args, kwargs, &value))
        return -1;
    if (!PyObject_GC_IsTracked(object)) /* a native trace had nothing to track */
        PyObject_GC_Track(object);
    Py_CLEAR(self->view);
    Py_XSETREF(self->trace, Py_NewRef(value));
    return 0;
}

static PyObject *trace_key(PyObject *object)
{
    hl_py_trace *self = (hl_py_trace *)object;

    if (self->view != NULL) {
        HL_PY_OWN_WORK;
        hl_py_view *view = hl_py_view_hold(self->view);
        PyObject *trace = hl_py_view_row(view, self->row);
        Py_DECREF(view);
        return trace;
    }
    return self->trace != NULL ? Py_NewRef(self->trace) : hl_py_object_missing(object, "_trace");
}

static PyObject *get_trace(PyObject *self, void *closure)
{
    (void)closure;
    return trace_key(self);
}

static int set_trace(PyObject *object, PyObject *value, void *closure)
{
    (void)closure;
    hl_py_trace *self = (hl_py_trace *)object;

    if (value == NULL && self->trace == NULL && self->view == NULL) {
        hl_py_object_missing(object, "_trace");
        return -1;
    }
    if (!PyObject_GC_IsTracked(object))
        PyObject_GC_Track(object);
    Py_CLEAR(self->view);
    Py_XSETREF(self->trace, Py_XNewRef(value));
    return 0;
}

static PyObject *part_of_tuple(PyObject *self, Py_ssize_t index)
{
    PyObject *trace = trace_key(self);
    if (trace == NULL)
        return NULL;
    PyObject *part = hl_py_object_item(trace, index);
    Py_DECREF(trace);
    return part;
}

static PyObject *get_domain(PyObject *object, void *closure)
{
    (void)closure;
    hl_py_trace *self = (hl_py_trace *)object;

    if (self->view == NULL)
        return part_of_tuple(object, 0);
    HL_PY_OWN_WORK;
    return PyLong_FromUnsignedLong(self->view->snapshot->rows[self->row].domain);
}

static PyObject *get_size(PyObject *object, void *closure)
{
    (void)closure;
    hl_py_trace *self = (hl_py_trace *)object;

    if (self->view == NULL)
        return part_of_tuple(object, 1);
    HL_PY_OWN_WORK;
    return PyLong_FromUnsignedLongLong(self->view->snapshot->rows[self->row].size);
}

/* Traceback(*self._trace[2:]) */
static PyObject *traceback_of_tuple(hl_py_state *state, PyObject *self)
{
    PyObject *traceback = NULL, *slice = NULL, *part = NULL, *args = NULL;
    PyObject *trace = trace_key(self);
    PyObject *two = trace != NULL ? PyLong_FromLong(2) : NULL;

    if (two != NULL)
        slice = PySlice_New(two, NULL, NULL);
    if (slice != NULL)
        part = PyObject_GetItem(trace, slice);
    if (part != NULL)
        args = PySequence_Tuple(part);
    if (args != NULL)
        traceback = PyObject_Call((PyObject *)state->traceback, args, NULL);
    Py_XDECREF(args);
    Py_XDECREF(part);
    Py_XDECREF(slice);
    Py_XDECREF(two);
    Py_XDECREF(trace);
    return traceback;
}

static PyObject *get_traceback(PyObject *object, void *closure)
{
    (void)closure;
    hl_py_state *state = hl_py_state_of(Py_TYPE(object));
    hl_py_trace *self = (hl_py_trace *)object;

    HL_PY_OWN_WORK;
    if (self->view == NULL)
        return traceback_of_tuple(state, object);
    hl_py_view *view = hl_py_view_hold(self->view);
    hl_stack_id stack = view->snapshot->rows[self->row].stack;
    PyObject *total = hl_py_view_total(view, stack);
    PyObject *traceback = total != NULL ? hl_py_traceback_new(state, view, HL_BY_STACK, stack, total) : NULL;
    Py_DECREF(view);
    return traceback;
}

static PyObject *trace_compare(PyObject *self, PyObject *other, int op)
{
    return hl_py_object_compare(self, other, op, hl_py_state_of(Py_TYPE(self))->trace, false, trace_key);
}

static Py_hash_t trace_hash(PyObject *self)
{
    return hl_py_object_hash(self, trace_key);
}

static PyObject *size_text(PyObject *self)
{
    PyObject *size = PyObject_GetAttrString(self, "size");
    if (size == NULL)
        return NULL;
    PyObject *text = hl_py_text_size(size, false);
    Py_DECREF(size);
    return text;
}

static PyObject *trace_str(PyObject *self)
{
    PyObject *traceback = PyObject_GetAttrString(self, "traceback");
    PyObject *place = traceback != NULL ? PyObject_Str(traceback) : NULL;
    PyObject *size = place != NULL ? size_text(self) : NULL;
    PyObject *text = size != NULL ? PyUnicode_FromFormat("%U: %U", place, size) : NULL;

    Py_XDECREF(size);
    Py_XDECREF(place);
    Py_XDECREF(traceback);
    return text;
}

static PyObject *trace_repr(PyObject *self)
{
    PyObject *domain = PyObject_GetAttrString(self, "domain");
    PyObject *size = domain != NULL ? size_text(self) : NULL;
    PyObject *traceback = size != NULL ? PyObject_GetAttrString(self, "traceback") : NULL;

    if (traceback == NULL) {
        Py_XDECREF(size);
        Py_XDECREF(domain);
        return NULL;
    }
    return hl_py_text_format("<Trace domain=%s size=%s, traceback=%r>",
                             Py_BuildValue("(NNN)", domain, size, traceback));
}

static int trace_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((hl_py_trace *)self)->trace);
    return 0;
}

static int trace_clear(PyObject *self)
{
    Py_CLEAR(((hl_py_trace *)self)->trace);
    Py_CLEAR(((hl_py_trace *)self)->view);
    return 0;
}

static void trace_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, trace_dealloc)
    trace_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

PyTypeObject *hl_py_trace_type_new(PyObject *module)
{
    static const char *const names[] = {"_trace", NULL};
    static PyGetSetDef getset[] = {
        {"_trace", get_trace, set_trace, PyDoc_STR("(domain, size, frames newest first, total_nframe)."), NULL},
        HL_PY_READ_ONLY("domain", get_domain, "Address space of the block."),
        HL_PY_READ_ONLY("size", get_size, "Size of the block in bytes."),
        HL_PY_READ_ONLY("traceback", get_traceback, "Where the block was allocated."),
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyMethodDef methods[] = {
        {"__reduce__", hl_py_object_reduce, METH_NOARGS, NULL},
        {"__getstate__", hl_py_object_getstate, METH_NOARGS, NULL},
        {NULL, NULL, 0, NULL},
    };
    PyType_Slot slots[] = {
        {Py_tp_doc, (void *)"Trace(trace)\n--\n\nOne memory block."},
        {Py_tp_new, PyType_GenericNew},
        {Py_tp_init, trace_init},
        {Py_tp_richcompare, trace_compare},
        {Py_tp_hash, trace_hash},
        {Py_tp_str, trace_str},
        {Py_tp_repr, trace_repr},
        {Py_tp_getset, getset},
        {Py_tp_methods, methods},
        {Py_tp_traverse, trace_traverse},
        {Py_tp_clear, trace_clear},
        {Py_tp_dealloc, trace_dealloc},
        {0, NULL},
    };
    PyType_Spec spec = {
        .name = "heapledger.Trace",
        .basicsize = sizeof(hl_py_trace),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
        .slots = slots,
    };
    return hl_py_type_new(module, &spec, NULL, names);
}
