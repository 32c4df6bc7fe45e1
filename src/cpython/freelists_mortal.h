/* freelists_mortal.h: destructors that keep nothing, for versions where a freelist cannot be disabled.
 *
 * While we trace, the destructor of a type with such a list is ours. There are two ways to go on:
 *
 *   - Destructors of lists, dicts and tuples keep objects of exactly their type. So the object gets another type before
 *     it dies, one that is equal in everything else. That type has the interpreter's own destructor, by which the
 *     trashcan knows the objects that it may put off.
 *   - For other types, the list is emptied when the interpreter's destructor is done.
 *
 * Types that inherit from these while we trace inherit our destructor. They get the interpreter's back when their first
 * object dies. Another tool may put its destructor over ours: then ours stays below it and passes on after stop(). One
 * that was put there while we did not trace is left alone, and its type keeps its freelist.
 */
#ifndef HL_FREELISTS_MORTAL_H
#define HL_FREELISTS_MORTAL_H

#include <stdatomic.h>

#include "../core/os.h"

typedef struct {
    PyTypeObject *type;
    destructor ours;
    destructor original; /* NULL: not known yet */
    PyTypeObject dying;  /* what objects of the type become */
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

/* The first way. */
HL_INLINE void destroy(mortal *kind, PyObject *object)
{
    if (HL_UNLIKELY(!Py_IS_TYPE(object, kind->type) || !is_nothing_kept())) {
        destroy_other(kind, object);
        return;
    }
    Py_SET_TYPE(object, &kind->dying);
    kind->original(object);
}

/* The second. The object is not looked at any more: it may be alive again. */
HL_INLINE void destroy_and_empty(const mortal *kind, PyObject *object, void (*empty)(PyInterpreterState *))
{
    kind->original(object);
    if (is_nothing_kept())
        empty(PyInterpreterState_Get());
}

/* Dead tuples are linked by their first items, one list for each length. */
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
