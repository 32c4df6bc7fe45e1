/* c_api.c: what we offer to extensions: the functions behind heapledger.h, and the interpreter's private function that
 * gets tracebacks.
 *
 * Threading: any thread may call the functions behind the header. The private function needs the GIL. An interpreter
 * that has not imported heapledger may call it, so it does not use the module's state.
 */
#include "c_api.h"

#include <heapledger.h>

#include "../cpython/domains.h"
#include "text.h"

static int is_tracing(void)
{
    return hl_tracer_is_tracing();
}

static PyObject *frame_tuple(const hl_names *names, hl_location_id id)
{
    const hl_location *location = hl_names_get_location(names, id);
    const hl_string *file = hl_names_get_string(names, location->file);

    return Py_BuildValue("(NI)", hl_py_text_decode(file->bytes, file->length), location->line);
}

static PyObject *get_traceback(unsigned int domain, uintptr_t address)
{
    hl_snapshot *snapshot = NULL;

    HL_PY_OWN_WORK;
    hl_status status = hl_tracer_find(address, domain, &snapshot);
    if (status != HL_OK && status != HL_STOPPED)
        return hl_py_raise_status(status);
    if (snapshot == NULL)
        return NULL;
    const hl_stack *stack = hl_names_get_stack(snapshot->names, snapshot->rows[0].stack);
    PyObject *frames = PyTuple_New(stack->depth);
    for (uint32_t i = 0; frames != NULL && i < stack->depth; i++) {
        PyObject *frame = frame_tuple(snapshot->names, stack->locations[i]);
        if (frame == NULL)
            Py_CLEAR(frames);
        else
            PyTuple_SET_ITEM(frames, i, frame);
    }
    hl_snapshot_drop(snapshot);
    return frames;
}

bool hl_py_c_api_add(PyObject *module)
{
    static const heapledger_api functions = {
        .version = HEAPLEDGER_API_VERSION,
        .track = hl_domains_track,
        .untrack = hl_domains_untrack,
        .is_tracing = is_tracing,
    };
    PyObject *capsule = PyCapsule_New((void *)(uintptr_t)&functions, HEAPLEDGER_CAPSULE, NULL);
    int added = PyModule_AddObjectRef(module, "_C_API", capsule);

    Py_XDECREF(capsule);
    hl_domains_set_getter(get_traceback);
    return added == 0;
}
