/* freelists_311.c: CPython 3.11 and 3.12. See freelists.h.
 *
 * These versions have no sign for a disabled list, so we keep dead objects out of the lists (freelists_mortal.h). The
 * list of floats is different. It is a linked list with a separate length, so it can look full and empty at the same
 * time.
 *
 * Key tables of small dicts have a list but no destructor. We empty that list whenever a dict dies.
 */

#define Py_BUILD_CORE 1
#include "freelists.h"

#include <internal/pycore_context.h>
#include <internal/pycore_dict.h>
#include <internal/pycore_interp.h>

#include "freelists_mortal.h"

static void empty_lists(PyInterpreterState *interpreter)
{
    struct _Py_list_state *state = &interpreter->list;
    while (state->numfree > 0)
        PyObject_GC_Del(state->free_list[--state->numfree]);
}

static void empty_tuples(PyInterpreterState *interpreter)
{
    empty_tuples_of(interpreter->tuple.free_list, interpreter->tuple.numfree, PyTuple_NFREELISTS);
}

static void empty_dicts(PyInterpreterState *interpreter)
{
    struct _Py_dict_state *state = &interpreter->dict_state;
    while (state->numfree > 0)
        PyObject_GC_Del(state->free_list[--state->numfree]);
    while (state->keys_numfree > 0)
        PyObject_Free(state->keys_free_list[--state->keys_numfree]);
}

static void empty_slices(PyInterpreterState *interpreter)
{
    PySliceObject *slice = interpreter->slice_cache;
    interpreter->slice_cache = NULL;
    if (slice != NULL)
        PyObject_GC_Del(slice);
}

static void empty_contexts(PyInterpreterState *interpreter)
{
    struct _Py_context_state *state = &interpreter->context;
    while (state->numfree > 0) {
        PyContext *context = state->freelist;
        state->freelist = (PyContext *)context->ctx_weakreflist;
        state->numfree--;
        PyObject_GC_Del(context);
    }
}

static void empty_async_generators(PyInterpreterState *interpreter)
{
    struct _Py_async_gen_state *state = &interpreter->async_gen;
    while (state->asend_numfree > 0)
        PyObject_GC_Del(state->asend_freelist[--state->asend_numfree]);
    while (state->value_numfree > 0)
        PyObject_GC_Del(state->value_freelist[--state->value_numfree]);
}

static void turn_off_floats(PyInterpreterState *interpreter)
{
    struct _Py_float_state *state = &interpreter->float_state;
    while (state->free_list != NULL) {
        PyFloatObject *number = state->free_list;
        state->free_list = (PyFloatObject *)Py_TYPE(number);
        PyObject_Free(number);
    }
    state->numfree = PyFloat_MAXFREELIST;
}

static void turn_on_floats(PyInterpreterState *interpreter)
{
    struct _Py_float_state *state = &interpreter->float_state;
    if (state->free_list == NULL)
        state->numfree = 0;
}

#include "freelists_floats.h"

static void destroy_list(PyObject *object);
static void destroy_tuple(PyObject *object);
static void destroy_dict(PyObject *object);
static void destroy_slice(PyObject *object);
static void destroy_context(PyObject *object);
static void destroy_send(PyObject *object);
static void destroy_value(PyObject *object);

static mortal lists = {.type = &PyList_Type, .ours = destroy_list};
static mortal tuples = {.type = &PyTuple_Type, .ours = destroy_tuple};
static mortal dicts = {.type = &PyDict_Type, .ours = destroy_dict};
static mortal slices = {.type = &PySlice_Type, .ours = destroy_slice};
static mortal contexts = {.type = &PyContext_Type, .ours = destroy_context};
static mortal sends = {.type = &_PyAsyncGenASend_Type, .ours = destroy_send};
static mortal values = {.type = &_PyAsyncGenWrappedValue_Type, .ours = destroy_value};

static mortal *const mortals[] = {&lists, &tuples, &dicts, &slices, &contexts, &sends, &values};
enum { MORTALS = sizeof mortals / sizeof *mortals };

static void destroy_list(PyObject *object)
{
    destroy(&lists, object);
}

/* The empty tuple is static. On 3.11 it survives its destructor, which an extension with a bug may call. */
static void destroy_tuple(PyObject *object)
{
    if (HL_UNLIKELY(Py_SIZE(object) == 0))
        tuples.original(object);
    else
        destroy(&tuples, object);
}

/* A watched dict keeps its type, because its watcher sees the dict and may keep it alive. */
static bool is_watched(PyObject *object)
{
#if PY_VERSION_HEX >= 0x030c0000
    return (((PyDictObject *)object)->ma_version_tag & (DICT_VERSION_INCREMENT - 1)) != 0;
#else
    (void)object;
    return false;
#endif
}

static void destroy_dict(PyObject *object)
{
    if (HL_UNLIKELY(is_watched(object)))
        dicts.original(object);
    else
        destroy(&dicts, object);
    if (is_nothing_kept())
        empty_dicts(PyInterpreterState_Get());
}

static void destroy_slice(PyObject *object)
{
    destroy_and_empty(&slices, object, empty_slices);
}

static void destroy_context(PyObject *object)
{
    destroy_and_empty(&contexts, object, empty_contexts);
}

static void destroy_send(PyObject *object)
{
    destroy_and_empty(&sends, object, empty_async_generators);
}

static void destroy_value(PyObject *object)
{
    destroy_and_empty(&values, object, empty_async_generators);
}

void hl_freelists_see_to(PyInterpreterState *interpreter)
{
    empty_lists(interpreter);
    empty_tuples(interpreter);
    empty_dicts(interpreter);
    empty_slices(interpreter);
    empty_contexts(interpreter);
    empty_async_generators(interpreter);
    if (atomic_load_explicit(&floats_too, memory_order_relaxed))
        turn_off_floats(interpreter);
}

void hl_freelists_turn_off(bool numbers)
{
    if (!is_nothing_kept()) {
        for (int i = 0; i < MORTALS; i++)
            put_destructor(mortals[i]);
        atomic_store_explicit(&floats_too, numbers, memory_order_relaxed);
        atomic_store(&nothing_is_kept, true);
        if (numbers)
            watch_collections();
    }
    hl_freelists_see_to(PyInterpreterState_Get());
}

void hl_freelists_turn_on(void)
{
    if (!is_nothing_kept())
        return;
    hl_freelists_end();
    if (atomic_exchange(&floats_too, false)) {
        forget_collections();
        turn_on_floats(PyInterpreterState_Get());
    }
}

void hl_freelists_end(void)
{
    atomic_store(&nothing_is_kept, false);
    for (int i = 0; i < MORTALS; i++)
        put_destructor_back(mortals[i]);
}
