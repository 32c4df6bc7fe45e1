/* convert.h: from traces that are plain Python tuples to a view. See convert.c. */
#ifndef HL_PY_CONVERT_H
#define HL_PY_CONVERT_H

#include "module.h"
#include "view.h"

/* What a conversion needs beyond sizes and frames. */
enum {
    HL_PY_NEED_DOMAINS = 1, /* else rows have domain 0 */
    HL_PY_NEED_FRAMES = 2,  /* an empty traceback is an IndexError */
    HL_PY_NEED_TOTALS = 4,  /* else the stacks' totals are not known */
    HL_PY_NEED_NAMES = 8,   /* frames are (file, line, function or None), else (file, line) */
};
/* A view with one row per trace of a sequence of plain tuples; a row's `allocated` is the trace's index. */
hl_py_view *hl_py_convert_traces(hl_py_state *state, PyObject *traces, int needs);
/* The core snapshot behind one of ours; without `any_kind` NULL without an exception where it had to be made first. */
hl_py_view *hl_py_convert_snapshot(hl_py_state *state, PyObject *snapshot, bool any_kind);
/* Native traces of rows that come from elsewhere: the module's function. */
PyObject *hl_py_convert_rows(PyObject *module, PyObject *args);
/* Is there a trace without frames? The module's function. */
PyObject *hl_py_convert_lacks_frames(PyObject *module, PyObject *traces);
/* hl_py_convert_traces for a file: the order of the traces is kept, those that are alike and follow each other share a
 * row, and a trace may lack its total. In a name table a stack has one total: where that cannot say what the traces
 * say, *totals is what the section TOTL has to say, as bytes, and no trace shares its row; else NULL. Errors say which
 * trace is to blame. */
hl_py_view *hl_py_convert_for_file(hl_py_state *state, PyObject *traces, PyObject **totals);

#endif
