/* freelists_313.c: CPython 3.13. See freelists.h.
 *
 * A length of -1 is the interpreter's own sign for a disabled list. The interpreter sets it at its end, and every use
 * of a list respects it. There are two exceptions. A full collection sets the lengths of tuples and floats back to 0.
 * The cached slice has no length. freelists_mortal.h and freelists_floats.h handle these.
 */

#define Py_BUILD_CORE 1
#include "freelists.h"

#include <internal/pycore_context.h>
#include <internal/pycore_freelist.h>
#include <internal/pycore_interp.h>

#include "freelists_mortal.h"

enum { DISABLED = -1 };

static void empty_slices(PyInterpreterState *interpreter)
{
    struct _Py_slice_freelist *list = &interpreter->object_state.freelists.slices;
    PySliceObject *slice = list->slice_cache;
    list->slice_cache = NULL;
    if (slice != NULL)
        PyObject_GC_Del(slice);
}

static void disable_contexts(struct _Py_context_freelist *list)
{
    while (list->numfree > 0) {
        PyContext *context = list->items;
        list->items = (PyContext *)context->ctx_weakreflist;
        list->numfree--;
        PyObject_GC_Del(context);
    }
    list->numfree = DISABLED;
}

/* For a list that is an array. */
#define DISABLE(list, release)                       \
    do {                                             \
        while ((list).numfree > 0)                   \
            release((list).items[--(list).numfree]); \
        (list).numfree = DISABLED;                   \
    } while (0)

static void turn_off_floats(PyInterpreterState *interpreter)
{
    struct _Py_float_freelist *list = &interpreter->object_state.freelists.floats;
    while (list->items != NULL) {
        PyFloatObject *number = list->items;
        list->items = (PyFloatObject *)Py_TYPE(number);
        PyObject_Free(number);
    }
    list->numfree = DISABLED;
}

#include "freelists_floats.h"

static void destroy_tuple(PyObject *object);
static void destroy_slice(PyObject *object);

static mortal tuples = {.type = &PyTuple_Type, .ours = destroy_tuple};
static mortal slices = {.type = &PySlice_Type, .ours = destroy_slice};

static void destroy_tuple(PyObject *object)
{
    destroy(&tuples, object);
}

static void destroy_slice(PyObject *object)
{
    destroy_and_empty(&slices, object, empty_slices);
}

void hl_freelists_see_to(PyInterpreterState *interpreter)
{
    struct _Py_object_freelists *lists = &interpreter->object_state.freelists;
    if (atomic_load_explicit(&floats_too, memory_order_relaxed))
        turn_off_floats(interpreter);
    if (lists->lists.numfree == DISABLED)
        return;
    empty_tuples_of(lists->tuples.items, lists->tuples.numfree, PyTuple_NFREELISTS);
    empty_slices(interpreter);
    disable_contexts(&lists->contexts);
    DISABLE(lists->dicts, PyObject_GC_Del);
    DISABLE(lists->dictkeys, PyMem_Free);
    DISABLE(lists->async_gens, PyObject_GC_Del);
    DISABLE(lists->async_gen_asends, PyObject_GC_Del);
    DISABLE(lists->lists, PyObject_GC_Del); /* last: the check above reads this one */
}

void hl_freelists_turn_off(bool numbers)
{
    if (!is_nothing_kept()) {
        put_destructor(&tuples);
        put_destructor(&slices);
        atomic_store_explicit(&floats_too, numbers, memory_order_relaxed);
        atomic_store(&nothing_is_kept, true);
        if (numbers)
            watch_collections();
    }
    hl_freelists_see_to(PyInterpreterState_Get());
}

static void enable(int *length)
{
    if (*length == DISABLED)
        *length = 0;
}

void hl_freelists_turn_on(void)
{
    struct _Py_object_freelists *lists = &PyInterpreterState_Get()->object_state.freelists;
    if (!is_nothing_kept() || Py_IsFinalizing())
        return;
    hl_freelists_end();
    if (atomic_exchange(&floats_too, false))
        forget_collections();
    enable(&lists->floats.numfree);
    enable(&lists->contexts.numfree);
    enable(&lists->dicts.numfree);
    enable(&lists->dictkeys.numfree);
    enable(&lists->async_gens.numfree);
    enable(&lists->async_gen_asends.numfree);
    enable(&lists->lists.numfree);
}

void hl_freelists_end(void)
{
    atomic_store(&nothing_is_kept, false);
    put_destructor_back(&tuples);
    put_destructor_back(&slices);
}
