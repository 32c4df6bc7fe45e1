/* view.c: a core snapshot and the Python objects made from it, each at most once.
 *
 * Every lazy object (trace, traceback, statistic) holds a view and an id. On the first request the view makes a str per
 * file name, a tuple per line and a tuple per stack. Later requests get the same object. So tracebacks of one stack are
 * identical, as tools expect from the stdlib.
 *
 * Invariant: a view refers only to str, int and tuples of them. So it is in no reference cycle, and the collector does
 * not need to see it.
 *
 * Threading: the GIL. Making an object may run the collector, which may run any code. That code may even call this
 * file. So an object is made first and entered afterwards. If another one has been entered in between, that one is
 * used.
 */
#include "view.h"

#include "text.h"

/* --- id -> object --- */

static uint32_t slot_of(const hl_py_object_table *objects, uint32_t key)
{
    uint32_t slot = (uint32_t)hl_mix(objects->seed ^ key) & (objects->room - 1);

    while (objects->keys[slot] != 0 && objects->keys[slot] != key)
        slot = (slot + 1) & (objects->room - 1);
    return slot;
}

static bool objects_grow(hl_py_object_table *objects)
{
    hl_py_object_table bigger = {.room = objects->room ? objects->room * 2 : 64, .used = objects->used};
    bigger.seed = objects->room ? objects->seed : hl_os_random();

    bigger.keys = hl_os_alloc(bigger.room, sizeof(*bigger.keys));
    bigger.values = hl_os_alloc(bigger.room, sizeof(*bigger.values));
    if (bigger.keys == NULL || bigger.values == NULL) {
        hl_os_free(bigger.keys);
        hl_os_free(bigger.values);
        PyErr_NoMemory();
        return false;
    }
    for (uint32_t i = 0; i < objects->room; i++) {
        if (objects->keys[i] == 0)
            continue;
        uint32_t slot = slot_of(&bigger, objects->keys[i]);
        bigger.keys[slot] = objects->keys[i];
        bigger.values[slot] = objects->values[i];
    }
    hl_os_free(objects->keys);
    hl_os_free(objects->values);
    *objects = bigger;
    return true;
}

static PyObject *objects_get(const hl_py_object_table *objects, uint32_t key)
{
    if (objects->room == 0)
        return NULL;
    uint32_t slot = slot_of(objects, key);
    return objects->keys[slot] == 0 ? NULL : Py_NewRef(objects->values[slot]);
}

/* Enters `value` and returns it, or the object that was entered in the meantime. Steals `value`, which may be NULL with
 * an exception. */
static PyObject *objects_put(hl_py_object_table *objects, uint32_t key, PyObject *value)
{
    if (value == NULL)
        return NULL;
    if (objects->used >= objects->room / 4 * 3 && !objects_grow(objects)) {
        Py_DECREF(value);
        return NULL;
    }
    uint32_t slot = slot_of(objects, key);
    if (objects->keys[slot] != 0) {
        Py_DECREF(value);
        return Py_NewRef(objects->values[slot]);
    }
    objects->keys[slot] = key;
    objects->values[slot] = Py_NewRef(value);
    objects->used++;
    return value;
}

static void objects_free(hl_py_object_table *objects)
{
    for (uint32_t i = 0; i < objects->room; i++)
        Py_XDECREF(objects->values[i]);
    hl_os_free(objects->keys);
    hl_os_free(objects->values);
}

/* --- names --- */

bool hl_py_view_seed_string(hl_py_view *view, hl_string_id id, PyObject *text)
{
    PyObject *entered = objects_put(&view->strings, id, Py_NewRef(text));

    Py_XDECREF(entered);
    return entered != NULL;
}

PyObject *hl_py_view_string(hl_py_view *view, hl_string_id id)
{
    PyObject *text = objects_get(&view->strings, id);
    if (text != NULL)
        return text;
    const hl_string *string = hl_names_get_string(view->snapshot->names, id);
    return objects_put(&view->strings, id, hl_py_text_decode(string->bytes, string->length));
}

PyObject *hl_py_view_line(hl_py_view *view, hl_location_id id)
{
    const hl_location *location = hl_names_get_location(view->snapshot->names, id);
    uint32_t line_id = location->line_id;
    PyObject *pair = objects_get(&view->lines, line_id);
    if (pair != NULL)
        return pair;
    uint32_t line = location->line;
    PyObject *file = hl_py_view_string(view, location->file);
    if (file == NULL)
        return NULL;
    return objects_put(&view->lines, line_id, Py_BuildValue("(NI)", file, line));
}

PyObject *hl_py_view_frames(hl_py_view *view, hl_stack_id id)
{
    PyObject *frames = objects_get(&view->stacks, id);
    if (frames != NULL)
        return frames;
    const hl_stack *stack = hl_names_get_stack(view->snapshot->names, id);
    frames = PyTuple_New(stack->depth);
    for (uint32_t i = 0; frames != NULL && i < stack->depth; i++) {
        PyObject *pair = hl_py_view_line(view, stack->locations[i]);
        if (pair == NULL)
            Py_CLEAR(frames);
        else
            PyTuple_SET_ITEM(frames, i, pair);
    }
    return objects_put(&view->stacks, id, frames);
}

PyObject *hl_py_view_total(hl_py_view *view, hl_stack_id id)
{
    /* The ledger of the snapshot may set the total at the same time. */
    uint32_t total = __atomic_load_n(&hl_names_get_stack(view->snapshot->names, id)->total, __ATOMIC_RELAXED);

    return total == 0 ? Py_NewRef(Py_None) : PyLong_FromUnsignedLong(total);
}

/* --- rows and blocks --- */

PyObject *hl_py_view_row(hl_py_view *view, size_t row)
{
    if (view->rows == NULL) {
        view->rows = hl_os_alloc(view->snapshot->row_count, sizeof(*view->rows));
        if (view->rows == NULL)
            return PyErr_NoMemory();
    }
    if (view->rows[row] != NULL)
        return Py_NewRef(view->rows[row]);
    const hl_row *site = &view->snapshot->rows[row];
    PyObject *frames = hl_py_view_frames(view, site->stack);
    PyObject *total = frames != NULL ? hl_py_view_total(view, site->stack) : NULL;
    if (total == NULL) {
        Py_XDECREF(frames);
        return NULL;
    }
    PyObject *trace = Py_BuildValue("(IKNN)", site->domain, (unsigned long long)site->size, frames, total);
    if (trace != NULL && view->rows[row] == NULL)
        view->rows[row] = Py_NewRef(trace);
    else if (trace != NULL)
        Py_SETREF(trace, Py_NewRef(view->rows[row]));
    return trace;
}

bool hl_py_view_row_of_block(hl_py_view *view, uint64_t block, size_t *row)
{
    const hl_snapshot *snapshot = view->snapshot;

    if (view->starts == NULL) {
        uint64_t *starts = hl_os_alloc(snapshot->row_count, sizeof(*starts));
        if (starts == NULL) {
            PyErr_NoMemory();
            return false;
        }
        uint64_t start = 0;
        for (size_t i = 0; i < snapshot->row_count; i++) {
            starts[i] = start;
            start += snapshot->rows[i].live;
        }
        view->starts = starts;
    }
    /* Finds the last row that starts at or before the block. Rows without live blocks start where the next row
     * starts. */
    size_t low = 0, high = snapshot->row_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (view->starts[middle] <= block)
            low = middle;
        else
            high = middle;
    }
    *row = low;
    return true;
}

PyObject *hl_py_view_list(hl_py_view *view)
{
    const hl_snapshot *snapshot = view->snapshot;
    PyObject *list = PyList_New((Py_ssize_t)snapshot->blocks);
    Py_ssize_t next = 0;

    for (size_t row = 0; list != NULL && row < snapshot->row_count; row++) {
        if (snapshot->rows[row].live == 0)
            continue;
        PyObject *trace = hl_py_view_row(view, row);
        if (trace == NULL) {
            Py_CLEAR(list);
            break;
        }
        for (uint64_t i = 0; i < snapshot->rows[row].live; i++)
            PyList_SET_ITEM(list, next++, Py_NewRef(trace));
        Py_DECREF(trace);
    }
    return list;
}

/* --- the object --- */

hl_py_view *hl_py_view_new(hl_py_state *state, hl_snapshot *snapshot)
{
    hl_py_view *view = PyObject_New(hl_py_view, state->view);

    if (view == NULL) {
        hl_snapshot_drop(snapshot);
        return NULL;
    }
    memset((char *)view + sizeof(PyObject), 0, sizeof(*view) - sizeof(PyObject));
    view->snapshot = snapshot;
    return view;
}

static void view_dealloc(PyObject *self)
{
    hl_py_view *view = (hl_py_view *)self;
    PyTypeObject *type = Py_TYPE(self);

    for (size_t i = 0; view->rows != NULL && i < view->snapshot->row_count; i++)
        Py_XDECREF(view->rows[i]);
    hl_os_free(view->rows);
    hl_os_free(view->starts);
    objects_free(&view->stacks);
    objects_free(&view->lines);
    objects_free(&view->strings);
    hl_snapshot_drop(view->snapshot);
    PyObject_Free(view);
    Py_DECREF(type);
}

PyTypeObject *hl_py_view_type_new(PyObject *module)
{
    PyType_Slot slots[] = {
        {Py_tp_dealloc, view_dealloc},
        {0, NULL},
    };
    PyType_Spec spec = {
        .name = "heapledger._Source",
        .basicsize = sizeof(hl_py_view),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };
    return hl_py_type_new(module, &spec, NULL, NULL);
}
