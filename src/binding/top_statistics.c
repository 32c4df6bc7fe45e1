/* top_statistics.c: _top_statistics: the first statistics of a snapshot, or the first differences of two snapshots.
 * This is for callers that show only these.
 *
 * The results and their order are those of Snapshot.statistics and compare_to, with one exception: a group that has not
 * changed is not a difference here. Making objects for all groups would take as long as finding the groups.
 *
 * Threading: the GIL, released while the core groups. Reading a snapshot's traces may run any code, so views are held
 * in the meantime.
 */
#include "top_statistics.h"

#include "../core/group.h"
#include "convert.h"
#include "snapshot_object.h"
#include "statistic.h"
#include "view.h"

/* Makes a list of the items at `differences`. They are statistics if there is no `before`. */
static PyObject *make_list(hl_py_state *state, hl_py_view *now, hl_py_view *before, hl_key_type type,
                           const hl_difference *differences, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        const hl_difference *one = &differences[i];
        hl_group group = {.key = one->key, .size = one->size, .count = one->count};
        PyObject *item = before == NULL ? hl_py_statistic_new(state, now, type, &group)
                                        : hl_py_difference_new(state, one->from_old ? before : now, type, one);
        if (item == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, item);
    }
    return list;
}

static PyObject *find(hl_py_state *state, hl_py_view *now, hl_py_view *before, hl_key_type type, size_t limit)
{
    const hl_snapshot *old = before != NULL ? before->snapshot : NULL;
    hl_difference *differences = NULL;
    size_t count = 0;
    hl_status status;

    Py_BEGIN_ALLOW_THREADS
    status = hl_group_changes(now->snapshot, old, type, limit, &differences, &count);
    Py_END_ALLOW_THREADS
    if (status != HL_OK)
        return hl_py_raise_status(status);
    PyObject *list = make_list(state, now, before, type, differences, count < limit ? count : limit);
    hl_os_free(differences);
    return list != NULL ? Py_BuildValue("(Nn)", list, (Py_ssize_t)count) : NULL;
}

PyObject *hl_py_top_statistics(PyObject *module, PyObject *args)
{
    hl_py_state *state = hl_py_state_of_module(module);
    PyObject *snapshot, *old_snapshot, *name;
    Py_ssize_t limit;
    hl_key_type type;

    if (!PyArg_ParseTuple(args, "O!OUn", state->snapshot, &snapshot, &old_snapshot, &name, &limit) ||
        !hl_py_read_key_type(name, &type))
        return NULL;
    if (old_snapshot != Py_None && !PyObject_TypeCheck(old_snapshot, state->snapshot))
        return PyErr_Format(PyExc_TypeError, "old_snapshot must be a Snapshot or None, not %.100s",
                            Py_TYPE(old_snapshot)->tp_name);
    HL_PY_OWN_WORK;
    bool compares = old_snapshot != Py_None;
    hl_py_view *now = hl_py_convert_snapshot(state, snapshot, true);
    hl_py_view *before = now != NULL && compares ? hl_py_convert_snapshot(state, old_snapshot, true) : NULL;
    PyObject *result = NULL;
    if (now != NULL && (before != NULL || !compares))
        result = find(state, now, before, type, limit > 0 ? (size_t)limit : 0);
    Py_XDECREF(before);
    Py_XDECREF(now);
    return result;
}
