/* view.h: a core snapshot and the Python objects made from it, each at most once. See view.c. */
#ifndef HL_PY_VIEW_H
#define HL_PY_VIEW_H

#include "module.h"

/* From ids to objects, each made at most once. */
typedef struct {
    uint32_t *keys; /* 0: empty */
    PyObject **values;
    uint32_t room; /* a power of two */
    uint32_t used;
    uint64_t seed; /* of the hashes: which ids are looked at may be a file's choice */
} hl_py_object_table;

/* A view of one core snapshot: it and the Python objects made from it so far. Not visible to Python. */
typedef struct {
    PyObject_HEAD
    hl_snapshot *snapshot;
    hl_py_object_table strings; /* string id -> str */
    hl_py_object_table lines;   /* line id -> (file, line) */
    hl_py_object_table stacks;  /* stack id -> tuple of those, newest first */
    PyObject **rows;            /* row -> (domain, size, frames, total); NULL until the first is asked for */
    uint64_t *starts;           /* row -> index of its first block; NULL until needed */
} hl_py_view;

static inline hl_py_view *hl_py_view_hold(hl_py_view *view)
{
    return (hl_py_view *)Py_NewRef((PyObject *)view);
}

/* Takes over the caller's hold on `snapshot`, also when it fails. */
hl_py_view *hl_py_view_new(hl_py_state *state, hl_snapshot *snapshot);
bool hl_py_view_seed_string(hl_py_view *view, hl_string_id id, PyObject *text);
PyObject *hl_py_view_string(hl_py_view *view, hl_string_id id);
PyObject *hl_py_view_line(hl_py_view *view, hl_location_id id);
/* Newest first. */
PyObject *hl_py_view_frames(hl_py_view *view, hl_stack_id id);
/* An int, or None when the depth is not known. */
PyObject *hl_py_view_total(hl_py_view *view, hl_stack_id id);
PyObject *hl_py_view_row(hl_py_view *view, size_t row);
/* Find the row of the block with this index in the order of rows; false with an exception when there is no memory. */
bool hl_py_view_row_of_block(hl_py_view *view, uint64_t block, size_t *row);
/* One tuple per live block. */
PyObject *hl_py_view_list(hl_py_view *view);
PyTypeObject *hl_py_view_type_new(PyObject *module);

#endif
