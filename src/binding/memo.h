/* memo.h: objects found again by their address, with a number for each. See memo.c. */
#ifndef HL_PY_MEMO_H
#define HL_PY_MEMO_H

#include "module.h"

typedef struct {
    PyObject *object; /* held; NULL: empty */
    uint32_t number;
} hl_py_memo_entry;

typedef struct {
    hl_py_memo_entry *entries;
    size_t room; /* a power of two, or 0 */
    size_t used;
} hl_py_memo;

/* The entry of this very object, or an empty one for it; NULL with an exception when there is no memory. */
hl_py_memo_entry *hl_py_memo_find(hl_py_memo *memo, const PyObject *object);
/* Fill an empty entry that was found for the object, and after which no other was looked for. */
void hl_py_memo_enter(hl_py_memo *memo, hl_py_memo_entry *entry, PyObject *object, uint32_t number);
void hl_py_memo_free(hl_py_memo *memo);

#endif
