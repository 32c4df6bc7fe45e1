/* memo.h: finds objects by their address, with a number for each. See memo.c. */
#ifndef HL_PY_MEMO_H
#define HL_PY_MEMO_H

#include "module.h"

typedef struct {
    PyObject *object; /* a reference; NULL if the entry is empty */
    uint32_t number;
} hl_py_memo_entry;

typedef struct {
    hl_py_memo_entry *entries;
    size_t room; /* a power of two, or 0 */
    size_t used;
} hl_py_memo;

/* Returns the entry of this object, or an empty entry for it. Returns NULL with an exception if there is no memory. */
hl_py_memo_entry *hl_py_memo_find(hl_py_memo *memo, const PyObject *object);
/* Fills an empty entry that hl_py_memo_find returned for the object. There must be no other search in between. */
void hl_py_memo_enter(hl_py_memo *memo, hl_py_memo_entry *entry, PyObject *object, uint32_t number);
void hl_py_memo_free(hl_py_memo *memo);

#endif
