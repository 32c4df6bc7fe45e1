/* reftracer.c: see reftracer.h. */

#include "reftracer.h"

#include "hooks.h"

#if PY_VERSION_HEX >= 0x030d0000

/* What each layer was put over; `data` of the interpreter's slot says which layer it is. As with the hooks (layers.h), a
 * tracer above ours may pass on some objects only, and be taken for one that passes on none: a second layer over it leads
 * to what the first was put over in the end, and not round in a circle. Both look at an object then, which does no harm. */
typedef struct {
    PyRefTracer tracer;
    void *data;
    bool used;
    bool noticed; /* was told of an object by find_reached */
} layer;

enum { LAYERS = 4 };
static layer layers[LAYERS];

static int trace(PyObject *object, PyRefTracerEvent event, void *data)
{
    layer *here = data;
    if (HL_UNLIKELY(event > PyRefTracer_DESTROY))
        return 0; /* 3.15's farewell is ours alone: the tracer that we replaced had its own when we came */
    if (event == PyRefTracer_CREATE) {
        /* Mostly the object is in the block that was entered last. The block is claimed once: the next object at this
         * address comes from a freelist. If another thread has entered one meanwhile, looking again does no harm. */
        uintptr_t block = (uintptr_t)object - hl_frames_object_offset(Py_TYPE(object));
        bool fresh = block == atomic_load_explicit(&hl_hooks_last_block, memory_order_relaxed);
        atomic_store_explicit(&hl_hooks_last_block, 0, memory_order_relaxed);
        if (HL_UNLIKELY(!fresh) && atomic_load_explicit(&hl_hooks_tracing, memory_order_relaxed)) {
            if (HL_UNLIKELY(hl_hooks_this_thread.inside))
                here->noticed = true; /* by find_reached: an allocator creates no objects */
            else
                hl_hooks_reattribute(block);
        }
    }
    return here->tracer == NULL ? 0 : here->tracer(object, event, here->data);
}

/* Which layers does the tracer in the slot call? New objects tell, of several types: a tool may be after some types only.
 * None of them has a freelist, where the program would find a block that is not entered. Returns whether any is called. */
static bool find_reached(void)
{
    for (int i = 0; i < LAYERS; i++)
        layers[i].noticed = false;
    bool was_inside = hl_hooks_this_thread.inside;
    PyObject *raised = PyErr_GetRaisedException();
    hl_hooks_this_thread.inside = true; /* the objects' blocks are not to be entered */
    PyObject *objects[] = {PyByteArray_FromStringAndSize(NULL, 0), PySet_New(NULL), PyComplex_FromDoubles(0.5, 0.5),
                           PyUnicode_New(2, 127), PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type)};
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
        Py_XDECREF(objects[i]);
    hl_hooks_this_thread.inside = was_inside;
    PyErr_SetRaisedException(raised);
    for (int i = 0; i < LAYERS; i++)
        if (layers[i].noticed)
            return true;
    return false;
}

/* The layer that was over this tracer before, one that was never used, or one that is not called. */
static layer *choose_layer(PyRefTracer tracer, const void *data)
{
    for (int i = 0; i < LAYERS; i++)
        if (layers[i].used && layers[i].tracer == tracer && layers[i].data == data)
            return &layers[i];
    for (int i = 0; i < LAYERS; i++)
        if (!layers[i].used)
            return &layers[i];
    static int last;
    last = (last + 1) % LAYERS;
    return &layers[last];
}

void hl_reftracer_install(void)
{
    void *data, *still;
    PyRefTracer now = PyRefTracer_GetTracer(&data);
    if (now == trace || (now != NULL && find_reached()))
        return;
    if (PyRefTracer_GetTracer(&still) != now || still != data || !hl_hooks_are_tracing())
        return; /* other threads ran meanwhile: the next one sees to it */
    layer *here = choose_layer(now, data);
    here->tracer = now;
    here->data = data;
    here->used = true;
    PyRefTracer_SetTracer(trace, here);
}

void hl_reftracer_remove(void)
{
    void *data;
    if (PyRefTracer_GetTracer(&data) == trace)
        PyRefTracer_SetTracer(((layer *)data)->tracer, ((layer *)data)->data);
}

#else

void hl_reftracer_install(void)
{
}

void hl_reftracer_remove(void)
{
}

#endif
