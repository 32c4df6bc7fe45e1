/* call_tree.c: _call_tree: the call tree of several snapshots (core/tree.h), as arrays for Python code.
 *
 * Threading: the GIL, released while the core builds the tree. Reading a snapshot's traces may run any code, so the
 * views are held in the meantime.
 */
#include "call_tree.h"

#include "../core/tree.h"
#include "convert.h"
#include "text.h"
#include "view.h"

/* Finds the views of all snapshots, or returns false with an exception. The view of None stays NULL. */
static bool find_sources(hl_py_state *state, PyObject *snapshots, hl_py_view **views)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(snapshots); i++) {
        PyObject *snapshot = PyTuple_GET_ITEM(snapshots, i);
        if (snapshot == Py_None)
            continue;
        if (!PyObject_TypeCheck(snapshot, state->snapshot)) {
            PyErr_Format(PyExc_TypeError, "snapshots[%zd] must be a Snapshot or None, not %.100s", i,
                         Py_TYPE(snapshot)->tp_name);
            return false;
        }
        views[i] = hl_py_convert_snapshot(state, snapshot, true);
        if (views[i] == NULL)
            return false;
    }
    return true;
}

static PyObject *text_of(const hl_names *names, PyObject **texts, hl_string_id id)
{
    if (texts[id] == NULL) {
        const hl_string *string = hl_names_get_string(names, id);
        texts[id] = hl_py_text_decode(string->bytes, string->length);
    }
    return Py_XNewRef(texts[id]);
}

/* Makes the tuple of locations. `texts` has a place for each string of the name table. */
static PyObject *fill_names(const hl_tree *tree, PyObject **texts)
{
    PyObject *names = PyTuple_New((Py_ssize_t)tree->location_count + 1);
    if (names == NULL)
        return NULL;
    PyTuple_SET_ITEM(names, 0, Py_NewRef(Py_None));
    for (uint32_t id = 1; id <= tree->location_count; id++) {
        const hl_location *location = hl_names_get_location(tree->names, id);
        PyObject *file = text_of(tree->names, texts, location->file);
        PyObject *name = location->name != 0 ? text_of(tree->names, texts, location->name) : Py_NewRef(Py_None);
        PyObject *item = file != NULL && name != NULL ? Py_BuildValue("(OIO)", file, location->line, name) : NULL;
        Py_XDECREF(file);
        Py_XDECREF(name);
        if (item == NULL) {
            Py_DECREF(names);
            return NULL;
        }
        PyTuple_SET_ITEM(names, id, item);
    }
    return names;
}

static PyObject *make_names(const hl_tree *tree)
{
    size_t count = (size_t)tree->names->strings.used + 1;
    PyObject **texts = PyMem_Calloc(count, sizeof *texts);
    if (texts == NULL)
        return PyErr_NoMemory();
    PyObject *names = fill_names(tree, texts);
    for (size_t i = 0; i < count; i++)
        Py_XDECREF(texts[i]);
    PyMem_Free(texts);
    return names;
}

static PyObject *bytes_of(const void *items, size_t count, size_t size)
{
    return PyBytes_FromStringAndSize(items, (Py_ssize_t)(count * size));
}

static PyObject *make_sums(const hl_tree *tree)
{
    PyObject *all = PyTuple_New((Py_ssize_t)tree->sums_count);
    for (size_t i = 0; i < tree->sums_count && all != NULL; i++) {
        const hl_tree_sums *sums = &tree->sums[i];
        size_t count = tree->node_count;
        PyObject *item;
        if (sums->bytes == NULL)
            item = Py_NewRef(Py_None);
        else
            item = Py_BuildValue("(NNNN)", bytes_of(sums->own_bytes, count, 8), bytes_of(sums->own_blocks, count, 8),
                                 bytes_of(sums->bytes, count, 8), bytes_of(sums->blocks, count, 8));
        if (item == NULL)
            Py_CLEAR(all);
        else
            PyTuple_SET_ITEM(all, (Py_ssize_t)i, item);
    }
    return all;
}

static PyObject *make_result(const hl_tree *tree)
{
    return Py_BuildValue("(NNNNN)", bytes_of(tree->parents, tree->node_count, 4),
                         bytes_of(tree->locations, tree->node_count, 4), bytes_of(tree->ends, tree->node_count, 4),
                         make_names(tree), make_sums(tree));
}

static PyObject *build(hl_py_view *const *views, const hl_snapshot **snapshots, size_t count, bool joined)
{
    hl_tree tree;
    hl_status status;

    for (size_t i = 0; i < count; i++)
        snapshots[i] = views[i] != NULL ? views[i]->snapshot : NULL;
    Py_BEGIN_ALLOW_THREADS
    status = hl_tree_open(snapshots, count, joined, &tree);
    Py_END_ALLOW_THREADS
    if (status != HL_OK)
        return hl_py_raise_status(status);
    PyObject *result = make_result(&tree);
    hl_tree_close(&tree);
    return result;
}

PyObject *hl_py_call_tree(PyObject *module, PyObject *args)
{
    PyObject *snapshots, *result = NULL;
    int joined = false;

    if (!PyArg_ParseTuple(args, "O|p", &snapshots, &joined))
        return NULL;
    if (!PyTuple_Check(snapshots))
        return PyErr_Format(PyExc_TypeError, "snapshots must be a tuple, not %.100s", Py_TYPE(snapshots)->tp_name);
    HL_PY_OWN_WORK;
    size_t count = (size_t)PyTuple_GET_SIZE(snapshots);
    hl_py_view **views = PyMem_Calloc(count, sizeof *views);
    const hl_snapshot **cores = PyMem_Calloc(count, sizeof *cores);
    if (views == NULL || cores == NULL)
        PyErr_NoMemory();
    else if (find_sources(hl_py_state_of_module(module), snapshots, views))
        result = build(views, cores, count, joined);
    for (size_t i = 0; i < count && views != NULL; i++)
        Py_XDECREF(views[i]);
    PyMem_Free(views);
    PyMem_Free(cores);
    return result;
}
