/* reftracer.c: see reftracer.h. */

#include "reftracer.h"

#include "hooks.h"

#if PY_VERSION_HEX >= 0x030d0000

static PyRefTracer previous;
static void *previous_data;
static bool buried; /* ours could not be removed: another tool's tracer is on top and may call it */

/* The largest distance from the start of a block to the object in it: the collector's head and two pointers. */
enum { MOST_OFFSET = 32 };

static int trace(PyObject *object, PyRefTracerEvent event, void *data)
{
    (void)data;
    if (event == PyRefTracer_CREATE) {
        /* Mostly the object is in the block that this thread has just been given. The block is claimed once: the next
         * object at this address comes from a freelist. */
        uintptr_t last = hl_hooks_this_thread.last_block;
        hl_hooks_this_thread.last_block = 0;
        if (HL_UNLIKELY((uintptr_t)object - last > MOST_OFFSET) &&
            atomic_load_explicit(&hl_hooks_tracing, memory_order_relaxed))
            hl_hooks_reattribute((uintptr_t)object - hl_frames_object_offset(Py_TYPE(object)));
    }
    return previous == NULL ? 0 : previous(object, event, previous_data);
}

void hl_reftracer_install(void)
{
    void *data;
    PyRefTracer now = PyRefTracer_GetTracer(&data);
    if (buried || now == trace)
        return;
    previous = now;
    previous_data = data;
    PyRefTracer_SetTracer(trace, NULL);
}

void hl_reftracer_remove(void)
{
    void *data;
    PyRefTracer now = PyRefTracer_GetTracer(&data);
    /* An empty slot: some other tool has cleared it, ours is not in any chain. */
    buried = now != trace && now != NULL;
    if (now == trace)
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
