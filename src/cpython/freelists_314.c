/* freelists_314.c: CPython 3.14 and 3.15. See freelists.h.
 *
 * A size of -1 is the interpreter's own sign for a disabled list. The interpreter sets it at its end, and every use of
 * a list respects it.
 */

#define Py_BUILD_CORE 1
#include "freelists.h"

#include <internal/pycore_freelist.h>
#include <internal/pycore_interp.h>
#include <stdatomic.h>

enum { DISABLED = -1 };

static _Atomic bool numbers_too;

typedef void visitor(struct _Py_freelist *list, void (*release)(void *));

/* Free an object as the interpreter does when it clears a list. */
static void free_object(void *object)
{
    PyTypeObject *type = Py_TYPE((PyObject *)object);
    type->tp_free(object);
    Py_DECREF(type);
}

static void disable(struct _Py_freelist *list, void (*release)(void *))
{
    void *entry;
    while ((entry = _PyFreeList_PopNoStats(list)) != NULL)
        release(entry);
    list->size = DISABLED;
}

static void enable(struct _Py_freelist *list, void (*release)(void *))
{
    (void)release;
    if (list->size == DISABLED)
        list->size = 0;
}

static void visit_numbers(struct _Py_freelists *lists, visitor *visit)
{
    visit(&lists->ints, free_object);
#if PY_VERSION_HEX >= 0x030f0000
    visit(&lists->complexes, free_object);
#endif
    visit(&lists->floats, free_object); /* last: see are_numbers_off */
}

/* All other lists, except the one whose entries are raw memory of the collector. */
static void visit_others(struct _Py_freelists *lists, visitor *visit)
{
    for (int i = 0; i < PyTuple_MAXSAVESIZE; i++)
        visit(&lists->tuples[i], free_object);
    visit(&lists->list_iters, free_object);
    visit(&lists->tuple_iters, free_object);
    visit(&lists->dicts, free_object);
    visit(&lists->dictkeys, PyMem_Free);
    visit(&lists->slices, free_object);
    visit(&lists->ranges, free_object);
    visit(&lists->range_iters, free_object);
    visit(&lists->contexts, free_object);
    visit(&lists->async_gens, free_object);
    visit(&lists->async_gen_asends, free_object);
    visit(&lists->futureiters, free_object);
    visit(&lists->unicode_writers, PyMem_Free);
#if PY_VERSION_HEX >= 0x030f0000
    visit(&lists->bytes_writers, PyMem_Free);
#endif
    visit(&lists->pycfunctionobject, PyObject_GC_Del);
    visit(&lists->pycmethodobject, PyObject_GC_Del);
    visit(&lists->pymethodobjects, free_object);
    visit(&lists->lists, free_object); /* last: see are_others_off */
}

static bool are_numbers_off(const struct _Py_freelists *lists)
{
    return lists->floats.size == DISABLED;
}

static bool are_others_off(const struct _Py_freelists *lists)
{
    return lists->lists.size == DISABLED;
}

/* Cheap if the lists are off already. The user may ask for numbers later than for the others. */
static void turn_off(PyInterpreterState *interpreter)
{
    struct _Py_freelists *lists = &interpreter->object_state.freelists;
    if (!are_numbers_off(lists) && atomic_load_explicit(&numbers_too, memory_order_relaxed))
        visit_numbers(lists, disable);
    if (!are_others_off(lists))
        visit_others(lists, disable);
}

void hl_freelists_turn_off(bool numbers)
{
    atomic_store_explicit(&numbers_too, numbers, memory_order_relaxed);
    turn_off(PyInterpreterState_Get());
}

void hl_freelists_turn_on(void)
{
    struct _Py_freelists *lists = &PyInterpreterState_Get()->object_state.freelists;
    if (!are_others_off(lists) || Py_IsFinalizing())
        return;
    visit_numbers(lists, enable);
    visit_others(lists, enable);
}

void hl_freelists_see_to(PyInterpreterState *interpreter)
{
    turn_off(interpreter);
}

void hl_freelists_end(void)
{
}
