/* frame.c: Frame: one line of a traceback.
 *
 * A frame keeps the object that it was given, which is usually a pair. It may also have the name of the function. The
 * name does not affect equality, hash, order or text.
 */
#include "frame.h"

#include "arguments.h"
#include "objects.h"
#include "text.h"

typedef struct {
    PyObject_HEAD
    PyObject *frame; /* NULL until __init__ */
    PyObject *name;  /* NULL: None */
} hl_py_frame;

PyObject *hl_py_frame_new(hl_py_state *state, PyObject *frame, PyObject *name)
{
    hl_py_frame *self = (hl_py_frame *)state->frame->tp_alloc(state->frame, 0);

    if (self != NULL) {
        self->frame = Py_NewRef(frame);
        self->name = Py_XNewRef(name);
    }
    return (PyObject *)self;
}

static int frame_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"frame", "name"};
    static const hl_py_signature signature = {"Frame.__init__", names, 1, 1, 1, 2};
    PyObject *values[2];

    if (!hl_py_arguments_parse(&signature, args, kwargs, values))
        return -1;
    Py_XSETREF(((hl_py_frame *)self)->frame, Py_NewRef(values[0]));
    Py_XSETREF(((hl_py_frame *)self)->name, Py_XNewRef(values[1]));
    return 0;
}

static PyObject *frame_key(PyObject *self)
{
    PyObject *frame = ((hl_py_frame *)self)->frame;

    return frame != NULL ? Py_NewRef(frame) : hl_py_object_missing(self, "_frame");
}

static PyObject *part(PyObject *self, Py_ssize_t index)
{
    PyObject *frame = frame_key(self);
    if (frame == NULL)
        return NULL;
    PyObject *found = hl_py_object_item(frame, index);
    Py_DECREF(frame);
    return found;
}

static PyObject *get_filename(PyObject *self, void *closure)
{
    (void)closure;
    return part(self, 0);
}

static PyObject *get_lineno(PyObject *self, void *closure)
{
    (void)closure;
    return part(self, 1);
}

static PyObject *frame_compare(PyObject *self, PyObject *other, int op)
{
    return hl_py_object_compare(self, other, op, hl_py_state_of(Py_TYPE(self))->frame, true, frame_key);
}

static Py_hash_t frame_hash(PyObject *self)
{
    return hl_py_object_hash(self, frame_key);
}

static PyObject *format_parts(PyObject *self, const char *format)
{
    PyObject *filename = PyObject_GetAttrString(self, "filename");
    PyObject *lineno = filename != NULL ? PyObject_GetAttrString(self, "lineno") : NULL;

    if (lineno == NULL) {
        Py_XDECREF(filename);
        return NULL;
    }
    return hl_py_text_format(format, Py_BuildValue("(NN)", filename, lineno));
}

static PyObject *frame_str(PyObject *self)
{
    return format_parts(self, "%s:%s");
}

static PyObject *frame_repr(PyObject *self)
{
    return format_parts(self, "<Frame filename=%r lineno=%r>");
}

static int frame_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((hl_py_frame *)self)->frame);
    Py_VISIT(((hl_py_frame *)self)->name);
    return 0;
}

static int frame_clear(PyObject *self)
{
    Py_CLEAR(((hl_py_frame *)self)->frame);
    Py_CLEAR(((hl_py_frame *)self)->name);
    return 0;
}

static void frame_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, frame_dealloc)
    frame_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

PyTypeObject *hl_py_frame_type_new(PyObject *module)
{
    static const char *const names[] = {"_frame", "name", NULL};
    static PyMemberDef members[] = {
        {"_frame", T_OBJECT_EX, offsetof(hl_py_frame, frame), 0, PyDoc_STR("The pair (filename, lineno).")},
        {"name", T_OBJECT, offsetof(hl_py_frame, name), 0, PyDoc_STR("Name of the function, or None.")},
        {NULL, 0, 0, 0, NULL},
    };
    static PyGetSetDef getset[] = {
        HL_PY_READ_ONLY("filename", get_filename, "File name."),
        HL_PY_READ_ONLY("lineno", get_lineno, "Line number."),
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyMethodDef methods[] = {
        {"__reduce__", hl_py_object_reduce, METH_NOARGS, NULL},
        {"__getstate__", hl_py_object_getstate, METH_NOARGS, NULL},
        {NULL, NULL, 0, NULL},
    };
    PyType_Slot slots[] = {
        {Py_tp_doc, (void *)"Frame(frame, *, name=None)\n--\n\nOne line of a traceback."},
        {Py_tp_new, PyType_GenericNew},
        {Py_tp_init, frame_init},
        {Py_tp_richcompare, frame_compare},
        {Py_tp_hash, frame_hash},
        {Py_tp_str, frame_str},
        {Py_tp_repr, frame_repr},
        {Py_tp_members, members},
        {Py_tp_getset, getset},
        {Py_tp_methods, methods},
        {Py_tp_traverse, frame_traverse},
        {Py_tp_clear, frame_clear},
        {Py_tp_dealloc, frame_dealloc},
        {0, NULL},
    };
    PyType_Spec spec = {
        .name = "heapledger.Frame",
        .basicsize = sizeof(hl_py_frame),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
        .slots = slots,
    };
    return hl_py_type_new(module, &spec, NULL, names);
}
