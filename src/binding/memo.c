/* memo.c: finds known objects again by their address, with a number for each.
 *
 * Many traces usually share one traceback tuple, and hashing a tuple takes as long as reading it.
 *
 * Threading: the GIL. A memo has one owner.
 */
#include "memo.h"

static hl_py_memo_entry *find(const hl_py_memo *memo, const PyObject *object)
{
    size_t slot = (size_t)hl_mix((uintptr_t)object) & (memo->room - 1);

    while (memo->entries[slot].object != NULL && memo->entries[slot].object != object)
        slot = (slot + 1) & (memo->room - 1);
    return &memo->entries[slot];
}

hl_py_memo_entry *hl_py_memo_find(hl_py_memo *memo, const PyObject *object)
{
    if (memo->used < memo->room / 2)
        return find(memo, object);
    hl_py_memo bigger = {.room = memo->room ? memo->room * 2 : 256, .used = memo->used};
    bigger.entries = hl_os_alloc(bigger.room, sizeof(*bigger.entries));
    if (bigger.entries == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (size_t i = 0; i < memo->room; i++) {
        if (memo->entries[i].object != NULL)
            *find(&bigger, memo->entries[i].object) = memo->entries[i];
    }
    hl_os_free(memo->entries);
    *memo = bigger;
    return find(memo, object);
}

void hl_py_memo_enter(hl_py_memo *memo, hl_py_memo_entry *entry, PyObject *object, uint32_t number)
{
    *entry = (hl_py_memo_entry){.object = Py_NewRef(object), .number = number};
    memo->used++;
}

void hl_py_memo_free(hl_py_memo *memo)
{
    for (size_t i = 0; i < memo->room; i++)
        Py_XDECREF(memo->entries[i].object);
    hl_os_free(memo->entries);
}
