/* view.h: a core snapshot and the Python objects made from it, each at most once. See view.c. */
#ifndef HL_PY_VIEW_H
#define HL_PY_VIEW_H

#include "module.h"

/* A table from ids to objects. Each object is made at most once. */
typedef struct {
    uint32_t *keys; /* 0 marks an empty slot */
    PyObject **values;
    uint32_t room; /* a power of two */
    uint32_t used;
    uint64_t seed; /* of the hashes, because a file may choose which ids are looked up */
} hl_py_object_table;

/* A view: one core snapshot and the Python objects made from it so far. Python code cannot see it. */
typedef struct {
    PyObject_HEAD
    hl_snapshot *snapshot;
    hl_py_object_table strings; /* string id -> str */
    hl_py_object_table lines;   /* line id -> (file, line) */
    hl_py_object_table stacks;  /* stack id -> tuple of those, newest first */
    PyObject **rows;            /* row -> (domain, size, frames, total); NULL until a row is requested */
    uint64_t *starts;           /* row -> index of its first block; NULL until needed */
} hl_py_view;

static inline hl_py_view *hl_py_view_hold(hl_py_view *view)
{
    return (hl_py_view *)Py_NewRef((PyObject *)view);
}

/* Takes ownership of the caller's reference to `snapshot`, also if it fails. */
hl_py_view *hl_py_view_new(hl_py_state *state, hl_snapshot *snapshot);
bool hl_py_view_seed_string(hl_py_view *view, hl_string_id id, PyObject *text);
PyObject *hl_py_view_string(hl_py_view *view, hl_string_id id);
PyObject *hl_py_view_line(hl_py_view *view, hl_location_id id);
/* The frames of a stack, newest first. */
PyObject *hl_py_view_frames(hl_py_view *view, hl_stack_id id);
/* Returns an int, or None if the depth is not known. */
PyObject *hl_py_view_total(hl_py_view *view, hl_stack_id id);
PyObject *hl_py_view_row(hl_py_view *view, size_t row);
/* Finds the row of a block. `block` is the index of the block in the order of rows. Returns false with an exception if
 * there is no memory. */
bool hl_py_view_row_of_block(hl_py_view *view, uint64_t block, size_t *row);
/* Makes a list with one tuple per live block. */
PyObject *hl_py_view_list(hl_py_view *view);
PyTypeObject *hl_py_view_type_new(PyObject *module);

#endif
