/* window_object.c: _Window, the base of heapledger.trace: what was allocated between two moments, what stayed, and the
 * peak.
 *
 *     window._open(nframe)    starts the tracer if necessary; window._start is what is alive
 *     window._close()         sets window._peak, window._allocated and window._leaked, unless tracing was stopped
 *
 * Attributes are None until they are known. The snapshots are the only objects that are made, and none comes from a
 * freelist. So the code around the measured code does not show in the result. A window counts as our own work too, so a
 * trace inside another one does not show there. Nothing in a window refers back to it, so the collector does not need
 * to see it.
 *
 * Threading: the GIL.
 */
#include "window_object.h"

#include "functions.h"
#include "take.h"

typedef struct {
    PyObject_HEAD
    hl_window *window; /* NULL if the window is not open */
    PyObject *start, *peak, *allocated, *leaked;
} hl_py_window;

static PyObject *window_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args, (void)kwargs; /* __init__ reads them */
    HL_PY_OWN_WORK;
    return type->tp_alloc(type, 0);
}

static void forget_answers(hl_py_window *self)
{
    Py_CLEAR(self->start);
    Py_CLEAR(self->peak);
    Py_CLEAR(self->allocated);
    Py_CLEAR(self->leaked);
}

static PyObject *window_open(PyObject *object, PyObject *nframe_object)
{
    hl_py_window *self = (hl_py_window *)object;
    hl_window *window;
    hl_snapshot *start;
    PyObject *start_object;
    hl_tracer_totals tracer;
    uint32_t nframe;

    if (!hl_py_functions_nframe(nframe_object, &nframe))
        return NULL;
    if (self->window != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "this trace is running already");
        return NULL;
    }
    HL_PY_OWN_WORK;
    forget_answers(self); /* this may run any code */
    hl_status status = hl_tracer_open_window(nframe, &window, &start, &tracer);
    if (status != HL_OK)
        return hl_py_raise_status(status);
    if (self->window != NULL)
        hl_tracer_free_window(self->window);
    self->window = window;
    if (!hl_py_take_objects(hl_py_state_of(Py_TYPE(object)), &start, 1, &tracer, &start_object))
        return NULL;
    Py_XSETREF(self->start, start_object);
    Py_RETURN_NONE;
}

static bool keep_answers(hl_py_window *self, const hl_window_answers *answers, const hl_tracer_totals *tracer)
{
    hl_snapshot *const snapshots[] = {answers->peak, answers->allocated, answers->growth};
    PyObject *objects[3];

    if (!hl_py_take_objects(hl_py_state_of(Py_TYPE((PyObject *)self)), snapshots, 3, tracer, objects))
        return false;
    Py_XSETREF(self->peak, objects[0]);
    Py_XSETREF(self->allocated, objects[1]);
    Py_XSETREF(self->leaked, objects[2]);
    return true;
}

static PyObject *window_close(PyObject *object, PyObject *unused)
{
    hl_py_window *self = (hl_py_window *)object;
    hl_window *window = self->window;
    hl_window_answers answers;
    hl_tracer_totals tracer;
    bool kept = true;

    (void)unused;
    HL_PY_OWN_WORK;
    self->window = NULL;
    if (window == NULL)
        Py_RETURN_NONE;
    hl_status status = hl_tracer_close_window(window, &answers, &tracer);
    if (status == HL_OK)
        kept = keep_answers(self, &answers, &tracer);
    hl_tracer_free_window(window);
    if (status != HL_OK && status != HL_STOPPED)
        return hl_py_raise_status(status);
    return kept ? Py_NewRef(Py_None) : NULL;
}

static PyObject *is_open(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((hl_py_window *)object)->window != NULL);
}

static void window_dealloc(PyObject *object)
{
    hl_py_window *self = (hl_py_window *)object;
    PyTypeObject *type = Py_TYPE(object);

    if (self->window != NULL)
        hl_tracer_free_window(self->window);
    forget_answers(self);
    type->tp_free(object);
    Py_DECREF(type);
}

PyTypeObject *hl_py_window_type_new(PyObject *module)
{
    static PyMemberDef members[] = {
        {"_start", T_OBJECT, offsetof(hl_py_window, start), READONLY, NULL},
        {"_peak", T_OBJECT, offsetof(hl_py_window, peak), READONLY, NULL},
        {"_allocated", T_OBJECT, offsetof(hl_py_window, allocated), READONLY, NULL},
        {"_leaked", T_OBJECT, offsetof(hl_py_window, leaked), READONLY, NULL},
        {NULL, 0, 0, 0, NULL},
    };
    static PyGetSetDef getset[] = {
        {"_is_open", is_open, NULL, NULL, NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyMethodDef methods[] = {
        {"_open", window_open, METH_O, NULL},
        {"_close", window_close, METH_NOARGS, NULL},
        {NULL, NULL, 0, NULL},
    };
    PyType_Slot slots[] = {
        {Py_tp_doc, (void *)"What happens in the ledger between _open(nframe) and _close()."},
        {Py_tp_new, window_new},
        {Py_tp_members, members},
        {Py_tp_getset, getset},
        {Py_tp_methods, methods},
        {Py_tp_dealloc, window_dealloc},
        {0, NULL},
    };
    PyType_Spec spec = {
        .name = "heapledger._Window",
        .basicsize = sizeof(hl_py_window),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
        .slots = slots,
    };
    return hl_py_type_new(module, &spec, NULL, NULL);
}
