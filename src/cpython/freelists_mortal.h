/* freelists_mortal.h: destructors that keep nothing, for versions that cannot disable a freelist.
 *
 * While we trace, each type with such a list has our destructor. It works in one of two ways:
 *
 *   - Destructors of lists, dicts and tuples keep only objects of exactly their type. So we give the object another
 *     type before it dies. That type is equal in everything else. It has the interpreter's own destructor, by which the
 *     trashcan recognises the objects whose destruction it may delay.
 *   - For other types, we empty the list after the interpreter's destructor has run.
 *
 * Types that inherit from these while we trace also inherit our destructor. We give them the interpreter's destructor
 * when their first object dies. Another tool may put its destructor over ours. Then ours stays below it, and passes
 * calls on after stop(). If another tool put a destructor there while we did not trace, we leave it alone, and the type
 * keeps its freelist.
 */
#ifndef HL_FREELISTS_MORTAL_H
#define HL_FREELISTS_MORTAL_H

#include <stdatomic.h>

#include "../core/os.h"

typedef struct {
    PyTypeObject *type;
    destructor ours;
    destructor original; /* NULL: not known yet */
    PyTypeObject dying;  /* the type that a dying object gets */
} mortal;

static _Atomic bool nothing_is_kept;

static inline bool is_nothing_kept(void)
{
    return atomic_load_explicit(&nothing_is_kept, memory_order_relaxed);
}

static void put_destructor(mortal *kind)
{
    if (kind->original == NULL) {
        kind->dying = *kind->type;
        kind->original = kind->type->tp_dealloc;
    }
    if (kind->type->tp_dealloc == kind->original)
        kind->type->tp_dealloc = kind->ours;
}

static void put_destructor_back(mortal *kind)
{
    if (kind->type->tp_dealloc == kind->ours)
        kind->type->tp_dealloc = kind->original;
}

static __attribute__((noinline, cold)) void destroy_other(const mortal *kind, PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    if (type != kind->type && type->tp_dealloc == kind->ours)
        type->tp_dealloc = kind->original;
    kind->original(object);
}

/* The first way: change the type. */
HL_INLINE void destroy(mortal *kind, PyObject *object)
{
    if (HL_UNLIKELY(!Py_IS_TYPE(object, kind->type) || !is_nothing_kept())) {
        destroy_other(kind, object);
        return;
    }
    Py_SET_TYPE(object, &kind->dying);
    kind->original(object);
}

/* The second way: empty the list. Do not look at the object after its destructor has run. It may be alive again. */
HL_INLINE void destroy_and_empty(const mortal *kind, PyObject *object, void (*empty)(PyInterpreterState *))
{
    kind->original(object);
    if (is_nothing_kept())
        empty(PyInterpreterState_Get());
}

/* Dead tuples are linked through their first items. There is one list for each length. */
static void empty_tuples_of(PyTupleObject **lists, int *lengths, int count)
{
    for (int i = 0; i < count; i++) {
        while (lists[i] != NULL) {
            PyTupleObject *tuple = lists[i];
            lists[i] = (PyTupleObject *)tuple->ob_item[0];
            lengths[i]--;
            PyObject_GC_Del(tuple);
        }
    }
}

#endif
