/* convert.h: converts traces that are plain Python tuples into a view. See convert.c. */
#ifndef HL_PY_CONVERT_H
#define HL_PY_CONVERT_H

#include "module.h"
#include "view.h"

/* What a conversion needs beyond sizes and frames. */
enum {
    HL_PY_NEED_DOMAINS = 1, /* otherwise rows have domain 0 */
    HL_PY_NEED_FRAMES = 2,  /* an empty traceback raises an IndexError */
    HL_PY_NEED_TOTALS = 4,  /* otherwise the totals of the stacks are unknown */
    HL_PY_NEED_NAMES = 8,   /* frames are (file, line, function or None); otherwise (file, line) */
};
/* Makes a view with one row per trace of a sequence of plain tuples. A row's `allocated` is the index of the trace. */
hl_py_view *hl_py_convert_traces(hl_py_state *state, PyObject *traces, int needs);
/* The core snapshot behind one of our snapshots. If the traces are not native, `any_kind` decides: if true, they are
 * converted; if false, this returns NULL without an exception. */
hl_py_view *hl_py_convert_snapshot(hl_py_state *state, PyObject *snapshot, bool any_kind);
/* Makes native traces of rows from other sources. This is a function of the module. */
PyObject *hl_py_convert_rows(PyObject *module, PyObject *args);
/* Is there a trace without frames? This is a function of the module. */
PyObject *hl_py_convert_lacks_frames(PyObject *module, PyObject *traces);
/* Like hl_py_convert_traces, but for a file. The order of the traces is kept. Equal traces that follow each other share
 * a row. A trace may lack its total. Errors say which trace is wrong. In a name table a stack has only one total. If
 * that cannot represent the totals of the traces, *totals is the payload of the section TOTL as bytes, and no traces
 * share a row. Otherwise *totals is NULL. */
hl_py_view *hl_py_convert_for_file(hl_py_state *state, PyObject *traces, PyObject **totals);

#endif
