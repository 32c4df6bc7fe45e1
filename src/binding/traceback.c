/* traceback.c: Traceback: a sequence of frames, oldest first.
 *
 * A traceback that we make holds a view and an id (a file, a line or a stack) until its frames are needed. A traceback
 * that a caller makes, or whose _frames have been set, holds that object. The view stays after the frames have been
 * built, because only the view knows the names of the functions.
 *
 * Threading: the GIL.
 */
#include "traceback.h"

#include "arguments.h"
#include "frame.h"
#include "objects.h"
#include "sequence.h"

typedef struct {
    PyObject_HEAD
    PyObject *frames; /* a tuple, unless something else was set; NULL: not built, or not set */
    PyObject *total;  /* NULL: not set */
    hl_py_view *view; /* NULL: there is no id */
    uint32_t key;
    hl_key_type kind;
} hl_py_traceback;

PyObject *hl_py_traceback_new(hl_py_state *state, hl_py_view *view, hl_key_type kind, uint32_t key, PyObject *total)
{
    hl_py_view_hold(view);
    hl_py_traceback *self = PyObject_GC_New(hl_py_traceback, state->traceback);
    if (self == NULL) {
        Py_DECREF(view);
        Py_XDECREF(total);
        return NULL;
    }
    /* The collector does not track the object. It cannot be part of a cycle until an attribute is set. */
    self->frames = NULL;
    self->total = total != NULL ? total : Py_NewRef(Py_None);
    self->view = view;
    self->key = key;
    self->kind = kind;
    return (PyObject *)self;
}

static int traceback_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"frames", "total_nframe"};
    static const hl_py_signature signature = {"Traceback.__init__", names, 1, 1, 2, 2};
    hl_py_traceback *self = (hl_py_traceback *)object;
    PyObject *values[2];

    if (!hl_py_arguments_parse(&signature, args, kwargs, values))
        return -1;
    PyObject *backwards = PyObject_CallOneArg((PyObject *)&PyReversed_Type, values[0]);
    if (backwards == NULL)
        return -1;
    PyObject *frames = PySequence_Tuple(backwards);
    Py_DECREF(backwards);
    if (frames == NULL)
        return -1;
    if (!PyObject_GC_IsTracked(object)) /* a native traceback had nothing to track */
        PyObject_GC_Track(object);
    Py_CLEAR(self->view);
    Py_XSETREF(self->frames, frames);
    Py_XSETREF(self->total, Py_NewRef(values[1] != NULL ? values[1] : Py_None));
    return 0;
}

/* --- frames --- */

static PyObject *build_frames(hl_py_view *view, hl_key_type kind, uint32_t key)
{
    PyObject *pair = NULL;

    if (kind == HL_BY_STACK) {
        PyObject *newest_first = hl_py_view_frames(view, key);
        if (newest_first == NULL)
            return NULL;
        Py_ssize_t depth = PyTuple_GET_SIZE(newest_first);
        PyObject *frames = PyTuple_New(depth);
        for (Py_ssize_t i = 0; frames != NULL && i < depth; i++)
            PyTuple_SET_ITEM(frames, i, Py_NewRef(PyTuple_GET_ITEM(newest_first, depth - 1 - i)));
        Py_DECREF(newest_first);
        return frames;
    }
    if (kind == HL_BY_LINE) {
        pair = hl_py_view_line(view, key);
    } else {
        PyObject *file = hl_py_view_string(view, key);
        if (file != NULL)
            pair = Py_BuildValue("(Ni)", file, 0);
    }
    return pair != NULL ? Py_BuildValue("(N)", pair) : NULL;
}

static PyObject *traceback_frames(PyObject *object)
{
    hl_py_traceback *self = (hl_py_traceback *)object;

    if (self->frames == NULL) {
        if (self->view == NULL)
            return hl_py_object_missing(object, "_frames");
        HL_PY_OWN_WORK;
        hl_py_view *view = hl_py_view_hold(self->view);
        PyObject *frames = build_frames(view, self->kind, self->key);
        Py_DECREF(view);
        if (frames == NULL)
            return NULL;
        Py_XSETREF(self->frames, frames);
    }
    return Py_NewRef(self->frames);
}

static PyObject *get_frames(PyObject *self, void *closure)
{
    (void)closure;
    return traceback_frames(self);
}

static int set_frames(PyObject *object, PyObject *value, void *closure)
{
    (void)closure;
    hl_py_traceback *self = (hl_py_traceback *)object;

    if (value == NULL && self->frames == NULL && self->view == NULL) {
        hl_py_object_missing(object, "_frames");
        return -1;
    }
    if (!PyObject_GC_IsTracked(object))
        PyObject_GC_Track(object);
    Py_CLEAR(self->view);
    Py_XSETREF(self->frames, Py_XNewRef(value));
    return 0;
}

static PyObject *get_total(PyObject *self, void *closure)
{
    (void)closure;
    PyObject *total = ((hl_py_traceback *)self)->total;

    return total != NULL ? Py_NewRef(total) : hl_py_object_missing(self, "_total_nframe");
}

static int set_total(PyObject *object, PyObject *value, void *closure)
{
    (void)closure;
    hl_py_traceback *self = (hl_py_traceback *)object;

    if (value == NULL && self->total == NULL) {
        hl_py_object_missing(object, "_total_nframe");
        return -1;
    }
    if (!PyObject_GC_IsTracked(object))
        PyObject_GC_Track(object);
    Py_XSETREF(self->total, Py_XNewRef(value));
    return 0;
}

/* The function name of the frame at `index`, oldest first. Returns a new reference, or NULL without an exception. A
 * group by file or line has no name, because its blocks may come from several functions. */
static PyObject *name_at(hl_py_traceback *self, Py_ssize_t index)
{
    if (self->view == NULL || self->kind != HL_BY_STACK)
        return NULL;
    hl_py_view *view = hl_py_view_hold(self->view);
    const hl_names *names = view->snapshot->names;
    const hl_stack *stack = hl_names_get_stack(names, self->key);
    hl_string_id name = hl_names_get_location(names, stack->locations[(Py_ssize_t)stack->depth - 1 - index])->name;
    PyObject *text = name != 0 ? hl_py_view_string(view, name) : NULL;
    if (text == NULL)
        PyErr_Clear();
    Py_DECREF(view);
    return text;
}

static PyObject *frame_at(hl_py_state *state, hl_py_traceback *self, PyObject *frames, Py_ssize_t index)
{
    PyObject *name = name_at(self, index);
    PyObject *frame = hl_py_frame_new(state, PyTuple_GET_ITEM(frames, index), name);

    Py_XDECREF(name);
    return frame;
}

static PyObject *frame_wrap(hl_py_state *state, PyObject *frame)
{
    return hl_py_frame_new(state, frame, NULL);
}

/* --- sequence --- */

static Py_ssize_t traceback_length(PyObject *self)
{
    PyObject *frames = traceback_frames(self);
    if (frames == NULL)
        return -1;
    Py_ssize_t length = PyObject_Size(frames);
    Py_DECREF(frames);
    return length;
}

static PyObject *slice_frames(hl_py_state *state, hl_py_traceback *self, PyObject *frames, PyObject *slice)
{
    Py_ssize_t start, stop, step;

    if (PySlice_Unpack(slice, &start, &stop, &step) < 0)
        return NULL;
    Py_ssize_t count = PySlice_AdjustIndices(PyTuple_GET_SIZE(frames), &start, &stop, step);
    PyObject *result = PyTuple_New(count);
    for (Py_ssize_t i = 0; result != NULL && i < count; i++) {
        PyObject *frame = frame_at(state, self, frames, start + i * step);
        if (frame == NULL)
            Py_CLEAR(result);
        else
            PyTuple_SET_ITEM(result, i, frame);
    }
    return result;
}

/* If the frames are not a tuple, or the index is unusual, this does what Python does. */
static PyObject *generic_item(hl_py_state *state, PyObject *frames, PyObject *index)
{
    PyObject *found = PyObject_GetItem(frames, index);
    if (found == NULL)
        return NULL;
    PyObject *result =
        PySlice_Check(index) ? hl_py_sequence_wrap(state, found, frame_wrap) : hl_py_frame_new(state, found, NULL);
    Py_DECREF(found);
    return result;
}

static PyObject *traceback_subscript(PyObject *object, PyObject *index)
{
    hl_py_state *state = hl_py_state_of(Py_TYPE(object));
    hl_py_traceback *self = (hl_py_traceback *)object;
    PyObject *result = NULL;
    PyObject *frames = traceback_frames(object);

    if (frames == NULL)
        return NULL;
    HL_PY_OWN_WORK;
    if (PyTuple_CheckExact(frames) && PySlice_Check(index)) {
        result = slice_frames(state, self, frames, index);
    } else if (PyTuple_CheckExact(frames) && PyLong_Check(index)) {
        Py_ssize_t size = PyTuple_GET_SIZE(frames);
        Py_ssize_t position = PyNumber_AsSsize_t(index, PyExc_IndexError);
        if (position < 0 && !PyErr_Occurred())
            position += size;
        if (!PyErr_Occurred() && (position < 0 || position >= size))
            PyErr_SetString(PyExc_IndexError, "tuple index out of range");
        if (!PyErr_Occurred())
            result = frame_at(state, self, frames, position);
    } else {
        result = generic_item(state, frames, index);
    }
    Py_DECREF(frames);
    return result;
}

static PyObject *traceback_item(PyObject *self, Py_ssize_t index)
{
    PyObject *position = PyLong_FromSsize_t(index);
    if (position == NULL)
        return NULL;
    if (index < 0) {
        Py_DECREF(position);
        PyErr_SetString(PyExc_IndexError, "tuple index out of range");
        return NULL;
    }
    PyObject *item = traceback_subscript(self, position);
    Py_DECREF(position);
    return item;
}

static int traceback_contains(PyObject *self, PyObject *frame)
{
    PyObject *pair = PyObject_GetAttrString(frame, "_frame");
    PyObject *frames = pair != NULL ? traceback_frames(self) : NULL;
    int found = frames != NULL ? PySequence_Contains(frames, pair) : -1;

    Py_XDECREF(frames);
    Py_XDECREF(pair);
    return found;
}

/* --- comparison and text --- */

static PyObject *traceback_compare(PyObject *self, PyObject *other, int op)
{
    return hl_py_object_compare(self, other, op, hl_py_state_of(Py_TYPE(self))->traceback, true, traceback_frames);
}

static Py_hash_t traceback_hash(PyObject *self)
{
    return hl_py_object_hash(self, traceback_frames);
}

static PyObject *traceback_str(PyObject *self)
{
    PyObject *oldest = PySequence_GetItem(self, 0);
    if (oldest == NULL)
        return NULL;
    PyObject *text = PyObject_Str(oldest);
    Py_DECREF(oldest);
    return text;
}

static PyObject *traceback_repr(PyObject *self)
{
    PyObject *total = get_total(self, NULL);
    PyObject *frames = total != NULL ? PySequence_Tuple(self) : NULL;
    PyObject *text = NULL;

    if (frames != NULL && total == Py_None)
        text = PyUnicode_FromFormat("<Traceback %S>", frames);
    else if (frames != NULL)
        text = PyUnicode_FromFormat("<Traceback %S total_nframe=%S>", frames, total);
    Py_XDECREF(frames);
    Py_XDECREF(total);
    return text;
}

/* --- the type --- */

static int traceback_traverse(PyObject *object, visitproc visit, void *arg)
{
    hl_py_traceback *self = (hl_py_traceback *)object;

    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->frames);
    Py_VISIT(self->total);
    return 0;
}

static int traceback_clear(PyObject *object)
{
    hl_py_traceback *self = (hl_py_traceback *)object;

    Py_CLEAR(self->frames);
    Py_CLEAR(self->total);
    Py_CLEAR(self->view);
    return 0;
}

static void traceback_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, traceback_dealloc)
    traceback_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

PyTypeObject *hl_py_traceback_type_new(PyObject *module)
{
    static const char *const names[] = {"_frames", "_total_nframe", NULL};
    static PyGetSetDef getset[] = {
        {"_frames", get_frames, set_frames, PyDoc_STR("Tuple of (filename, lineno), oldest first."), NULL},
        {"_total_nframe", get_total, set_total, NULL, NULL},
        HL_PY_READ_ONLY("total_nframe", get_total, "Frames there were before the limit cut them, or None."),
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyMethodDef methods[] = {
        {"format", (PyCFunction)(void (*)(void))hl_py_traceback_format, METH_VARARGS | METH_KEYWORDS,
         PyDoc_STR("format(limit=None, most_recent_first=False): a list of lines, with the source where found.")},
        HL_PY_SEQUENCE_METHODS,
        {"__reduce__", hl_py_object_reduce, METH_NOARGS, NULL},
        {"__getstate__", hl_py_object_getstate, METH_NOARGS, NULL},
        {NULL, NULL, 0, NULL},
    };
    PyType_Slot slots[] = {
        {Py_tp_doc, (void *)"Traceback(frames, total_nframe=None)\n--\n\nA sequence of Frames, oldest first."},
        {Py_tp_new, PyType_GenericNew},
        {Py_tp_init, traceback_init},
        {Py_sq_length, traceback_length},
        {Py_sq_item, traceback_item},
        {Py_sq_contains, traceback_contains},
        {Py_mp_length, traceback_length},
        {Py_mp_subscript, traceback_subscript},
        {Py_tp_iter, PySeqIter_New},
        {Py_tp_richcompare, traceback_compare},
        {Py_tp_hash, traceback_hash},
        {Py_tp_str, traceback_str},
        {Py_tp_repr, traceback_repr},
        {Py_tp_getset, getset},
        {Py_tp_methods, methods},
        {Py_tp_traverse, traceback_traverse},
        {Py_tp_clear, traceback_clear},
        {Py_tp_dealloc, traceback_dealloc},
        {0, NULL},
    };
    PyType_Spec spec = {
        .name = "heapledger.Traceback",
        .basicsize = sizeof(hl_py_traceback),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
        .slots = slots,
    };
    return hl_py_type_new(module, &spec, NULL, names);
}
