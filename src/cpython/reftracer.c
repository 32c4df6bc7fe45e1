/* reftracer.c: see reftracer.h. */

#include "reftracer.h"

#include "hooks.h"

#if PY_VERSION_HEX >= 0x030d0000

static PyRefTracer previous;
static void *previous_data;

static int trace(PyObject *object, PyRefTracerEvent event, void *data)
{
    (void)data;
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
                hl_hooks_this_thread.noticed = true; /* by reaches_ours: an allocator creates no objects */
            else
                hl_hooks_reattribute(block);
        }
    }
    return previous == NULL ? 0 : previous(object, event, previous_data);
}

/* Does the tracer in the slot call ours? A new object tells; one of a type without a freelist, where another tool that
 * knows its block would find it again. */
static bool reaches_ours(void)
{
    bool was_inside = hl_hooks_this_thread.inside;
    hl_hooks_this_thread.inside = true; /* the object's block is not to be entered */
    hl_hooks_this_thread.noticed = false;
    PyObject *object = PyByteArray_FromStringAndSize(NULL, 0);
    bool reached = hl_hooks_this_thread.noticed;
    if (object != NULL)
        Py_DECREF(object);
    else
        PyErr_Clear();
    hl_hooks_this_thread.inside = was_inside;
    return reached;
}

void hl_reftracer_install(void)
{
    void *data;
    PyRefTracer now = PyRefTracer_GetTracer(&data);
    if (now == trace || (now != NULL && reaches_ours()))
        return;
    previous = now;
    previous_data = data;
    PyRefTracer_SetTracer(trace, NULL);
}

void hl_reftracer_remove(void)
{
    void *data;
    if (PyRefTracer_GetTracer(&data) == trace)
        PyRefTracer_SetTracer(previous, previous_data);
}

#else

void hl_reftracer_install(void)
{
}

void hl_reftracer_remove(void)
{
}

#endif
