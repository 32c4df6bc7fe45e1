/* statistic.c: Statistic and StatisticDiff: the sums of one group of traces, and how they changed.
 *
 * Both types share one struct: a traceback and two or four numbers. Objects that we make hold C integers, and make
 * their traceback later. So ten thousand of them are cheap. Values that a program sets are kept as Python objects.
 *
 * Threading: the GIL.
 */
#include "statistic.h"

#include "arguments.h"
#include "objects.h"
#include "text.h"
#include "traceback.h"

enum { SIZE, COUNT, SIZE_DIFF, COUNT_DIFF, NUMBERS };

typedef struct {
    PyObject_HEAD
    PyObject *traceback; /* NULL: not made yet, or not set */
    hl_py_view *view;    /* makes the traceback; NULL if there is none to make */
    uint32_t key;
    uint8_t kind;    /* hl_key_type */
    uint8_t natives; /* bit i: numbers[i] is a C integer */
    union {
        int64_t native;
        PyObject *object; /* NULL: not set */
    } numbers[NUMBERS];
} hl_py_statistic;

static const char *const number_names[NUMBERS] = {"size", "count", "size_diff", "count_diff"};

static bool is_native(const hl_py_statistic *self, int which)
{
    return (self->natives >> which) & 1;
}

static hl_py_statistic *new_native(PyTypeObject *type, hl_py_view *view, hl_key_type kind, uint32_t key)
{
    hl_py_view_hold(view);
    hl_py_statistic *self = PyObject_GC_New(hl_py_statistic, type);
    if (self == NULL) {
        Py_DECREF(view);
        return NULL;
    }
    /* The collector does not track the object until an attribute is set. */
    self->traceback = NULL;
    self->view = view;
    self->key = key;
    self->kind = (uint8_t)kind;
    self->natives = (1u << NUMBERS) - 1;
    memset(self->numbers, 0, sizeof(self->numbers));
    return self;
}

PyObject *hl_py_statistic_new(hl_py_state *state, hl_py_view *view, hl_key_type kind, const hl_group *group)
{
    hl_py_statistic *self = new_native(state->statistic, view, kind, group->key);

    if (self != NULL) {
        self->numbers[SIZE].native = (int64_t)group->size;
        self->numbers[COUNT].native = (int64_t)group->count;
    }
    return (PyObject *)self;
}

PyObject *hl_py_difference_new(hl_py_state *state, hl_py_view *view, hl_key_type kind, const hl_difference *difference)
{
    hl_py_statistic *self = new_native(state->difference, view, kind, difference->key);

    if (self != NULL) {
        self->numbers[SIZE].native = (int64_t)difference->size;
        self->numbers[COUNT].native = (int64_t)difference->count;
        self->numbers[SIZE_DIFF].native = (int64_t)(difference->size - difference->old_size);
        self->numbers[COUNT_DIFF].native = (int64_t)(difference->count - difference->old_count);
    }
    return (PyObject *)self;
}

/* --- attributes --- */

static PyObject *get_traceback(PyObject *object, void *closure)
{
    (void)closure;
    hl_py_statistic *self = (hl_py_statistic *)object;

    if (self->traceback == NULL) {
        if (self->view == NULL)
            return hl_py_object_missing(object, "traceback");
        HL_PY_OWN_WORK;
        PyObject *traceback =
            hl_py_traceback_new(hl_py_state_of(Py_TYPE(object)), self->view, (hl_key_type)self->kind, self->key, NULL);
        if (traceback == NULL)
            return NULL;
        /* From now on the caller may make it part of a cycle. */
        if (!PyObject_GC_IsTracked(object))
            PyObject_GC_Track(object);
        Py_XSETREF(self->traceback, traceback);
        Py_CLEAR(self->view);
    }
    return Py_NewRef(self->traceback);
}

static int set_traceback(PyObject *object, PyObject *value, void *closure)
{
    (void)closure;
    hl_py_statistic *self = (hl_py_statistic *)object;

    if (value == NULL && self->traceback == NULL && self->view == NULL) {
        hl_py_object_missing(object, "traceback");
        return -1;
    }
    if (!PyObject_GC_IsTracked(object))
        PyObject_GC_Track(object);
    Py_CLEAR(self->view);
    Py_XSETREF(self->traceback, Py_XNewRef(value));
    return 0;
}

static PyObject *get_number(PyObject *object, void *closure)
{
    hl_py_statistic *self = (hl_py_statistic *)object;
    int which = (int)(intptr_t)closure;

    if (is_native(self, which)) {
        HL_PY_OWN_WORK;
        return PyLong_FromLongLong(self->numbers[which].native);
    }
    PyObject *number = self->numbers[which].object;
    return number != NULL ? Py_NewRef(number) : hl_py_object_missing(object, number_names[which]);
}

static int set_number(PyObject *object, PyObject *value, void *closure)
{
    hl_py_statistic *self = (hl_py_statistic *)object;
    int which = (int)(intptr_t)closure;
    PyObject *old = is_native(self, which) ? NULL : self->numbers[which].object;

    if (value == NULL && old == NULL && !is_native(self, which)) {
        hl_py_object_missing(object, number_names[which]);
        return -1;
    }
    if (!PyObject_GC_IsTracked(object))
        PyObject_GC_Track(object);
    self->natives &= (uint8_t)~(1u << which);
    self->numbers[which].object = Py_XNewRef(value);
    Py_XDECREF(old);
    return 0;
}

static int set_all(PyObject *self, PyObject **values, const int *order, int count)
{
    if (set_traceback(self, values[0], NULL) < 0)
        return -1;
    for (int i = 0; i < count; i++) {
        if (set_number(self, values[i + 1], (void *)(intptr_t)order[i]) < 0)
            return -1;
    }
    return 0;
}

static const int statistic_order[] = {SIZE, COUNT};
static const int difference_order[] = {SIZE, SIZE_DIFF, COUNT, COUNT_DIFF};

static int statistic_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"traceback", "size", "count"};
    static const hl_py_signature signature = {"Statistic.__init__", names, 1, 3, 3, 3};
    PyObject *values[3];

    return hl_py_arguments_parse(&signature, args, kwargs, values) ? set_all(self, values, statistic_order, 2) : -1;
}

static int difference_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"traceback", "size", "size_diff", "count", "count_diff"};
    static const hl_py_signature signature = {"StatisticDiff.__init__", names, 1, 5, 5, 5};
    PyObject *values[5];

    return hl_py_arguments_parse(&signature, args, kwargs, values) ? set_all(self, values, difference_order, 4) : -1;
}

/* --- comparison --- */

/* (traceback, number, ...) in the given order. */
static PyObject *values_of(PyObject *self, const int *order, int count)
{
    PyObject *values = PyTuple_New(count + 1);
    PyObject *value = values != NULL ? get_traceback(self, NULL) : NULL;

    for (int i = 0; value != NULL; i++) {
        PyTuple_SET_ITEM(values, i, value);
        if (i == count)
            return values;
        value = get_number(self, (void *)(intptr_t)order[i]);
    }
    Py_XDECREF(values);
    return NULL;
}

static PyObject *statistic_key(PyObject *self)
{
    return values_of(self, statistic_order, 2);
}

static PyObject *difference_key(PyObject *self)
{
    return values_of(self, difference_order, 4);
}

static PyObject *statistic_compare(PyObject *self, PyObject *other, int op)
{
    return hl_py_object_compare(self, other, op, hl_py_state_of(Py_TYPE(self))->statistic, false, statistic_key);
}

static PyObject *difference_compare(PyObject *self, PyObject *other, int op)
{
    return hl_py_object_compare(self, other, op, hl_py_state_of(Py_TYPE(self))->difference, false, difference_key);
}

static Py_hash_t statistic_hash(PyObject *self)
{
    return hl_py_object_hash(self, statistic_key);
}

static Py_hash_t difference_hash(PyObject *self)
{
    return hl_py_object_hash(self, difference_key);
}

static PyObject *statistic_sort_key(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *key = statistic_key(self);
    if (key == NULL)
        return NULL;
    PyObject *turned = PyTuple_Pack(3, PyTuple_GET_ITEM(key, 1), PyTuple_GET_ITEM(key, 2), PyTuple_GET_ITEM(key, 0));
    Py_DECREF(key);
    return turned;
}

static PyObject *difference_sort_key(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *turned = NULL, *size_diff = NULL, *count_diff = NULL;
    PyObject *key = difference_key(self);

    if (key != NULL)
        size_diff = PyNumber_Absolute(PyTuple_GET_ITEM(key, 2));
    if (size_diff != NULL)
        count_diff = PyNumber_Absolute(PyTuple_GET_ITEM(key, 4));
    if (count_diff != NULL)
        turned = PyTuple_Pack(5, size_diff, PyTuple_GET_ITEM(key, 1), count_diff, PyTuple_GET_ITEM(key, 3),
                              PyTuple_GET_ITEM(key, 0));
    Py_XDECREF(count_diff);
    Py_XDECREF(size_diff);
    Py_XDECREF(key);
    return turned;
}

/* --- text --- */

/* Appends ", average=..." to `text` (stolen, may be NULL) unless the count is zero. */
static PyObject *with_average(PyObject *self, PyObject *text)
{
    PyObject *count = text != NULL ? get_number(self, (void *)(intptr_t)COUNT) : NULL;
    int counted = count != NULL ? PyObject_IsTrue(count) : -1;

    if (counted == 1) {
        PyObject *size = get_number(self, (void *)(intptr_t)SIZE);
        PyObject *average = size != NULL ? PyNumber_TrueDivide(size, count) : NULL;
        PyObject *average_text = average != NULL ? hl_py_text_size(average, false) : NULL;
        if (average_text != NULL)
            Py_SETREF(text, PyUnicode_FromFormat("%U, average=%U", text, average_text));
        else
            Py_CLEAR(text);
        Py_XDECREF(average_text);
        Py_XDECREF(average);
        Py_XDECREF(size);
    } else if (counted < 0) {
        Py_CLEAR(text);
    }
    Py_XDECREF(count);
    return text;
}

static PyObject *number_as_size(PyObject *key, Py_ssize_t index, bool sign)
{
    return hl_py_text_size(PyTuple_GET_ITEM(key, index), sign);
}

static PyObject *statistic_str(PyObject *self)
{
    PyObject *text = NULL;
    PyObject *key = statistic_key(self);
    PyObject *size = key != NULL ? number_as_size(key, 1, false) : NULL;

    if (size != NULL)
        text = hl_py_text_format("%s: size=%s, count=%i",
                                 PyTuple_Pack(3, PyTuple_GET_ITEM(key, 0), size, PyTuple_GET_ITEM(key, 2)));
    Py_XDECREF(size);
    Py_XDECREF(key);
    return with_average(self, text);
}

static PyObject *difference_str(PyObject *self)
{
    PyObject *text = NULL;
    PyObject *key = difference_key(self);
    PyObject *size = key != NULL ? number_as_size(key, 1, false) : NULL;
    PyObject *size_diff = size != NULL ? number_as_size(key, 2, true) : NULL;

    if (size_diff != NULL)
        text = hl_py_text_format("%s: size=%s (%s), count=%i (%+i)",
                                 PyTuple_Pack(5, PyTuple_GET_ITEM(key, 0), size, size_diff, PyTuple_GET_ITEM(key, 3),
                                              PyTuple_GET_ITEM(key, 4)));
    Py_XDECREF(size_diff);
    Py_XDECREF(size);
    Py_XDECREF(key);
    return with_average(self, text);
}

static PyObject *statistic_repr(PyObject *self)
{
    return hl_py_text_format("<Statistic traceback=%r size=%i count=%i>", statistic_key(self));
}

static PyObject *difference_repr(PyObject *self)
{
    return hl_py_text_format("<StatisticDiff traceback=%r size=%i (%+i) count=%i (%+i)>", difference_key(self));
}

/* --- the types --- */

static int statistic_traverse(PyObject *object, visitproc visit, void *arg)
{
    hl_py_statistic *self = (hl_py_statistic *)object;

    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->traceback);
    for (int i = 0; i < NUMBERS; i++) {
        if (!is_native(self, i))
            Py_VISIT(self->numbers[i].object);
    }
    return 0;
}

static int statistic_clear(PyObject *object)
{
    hl_py_statistic *self = (hl_py_statistic *)object;

    Py_CLEAR(self->traceback);
    Py_CLEAR(self->view);
    for (int i = 0; i < NUMBERS; i++) {
        if (!is_native(self, i))
            Py_CLEAR(self->numbers[i].object);
    }
    return 0;
}

static void statistic_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, statistic_dealloc)
    statistic_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

#define TRACEBACK_ATTRIBUTE {"traceback", get_traceback, set_traceback, PyDoc_STR("Where the blocks come from."), NULL}
#define NUMBER_ATTRIBUTE(name, which, doc) {name, get_number, set_number, PyDoc_STR(doc), (void *)(intptr_t)which}
#define SHARED_SLOTS                                                                                      \
    {Py_tp_new, PyType_GenericNew}, {Py_tp_traverse, statistic_traverse}, {Py_tp_clear, statistic_clear}, \
    {                                                                                                     \
        Py_tp_dealloc, statistic_dealloc                                                                  \
    }

PyTypeObject *hl_py_statistic_type_new(PyObject *module)
{
    static const char *const names[] = {"traceback", "size", "count", NULL};
    static PyGetSetDef getset[] = {
        TRACEBACK_ATTRIBUTE,
        NUMBER_ATTRIBUTE("size", SIZE, "Total size in bytes."),
        NUMBER_ATTRIBUTE("count", COUNT, "Number of blocks."),
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyMethodDef methods[] = {
        {"_sort_key", statistic_sort_key, METH_NOARGS, NULL},
        {"__reduce__", hl_py_object_reduce, METH_NOARGS, NULL},
        {"__getstate__", hl_py_object_getstate, METH_NOARGS, NULL},
        {NULL, NULL, 0, NULL},
    };
    PyType_Slot slots[] = {
        {Py_tp_doc, (void *)"Statistic(traceback, size, count)\n--\n\nThe sums of one group of traces."},
        SHARED_SLOTS,
        {Py_tp_init, statistic_init},
        {Py_tp_richcompare, statistic_compare},
        {Py_tp_hash, statistic_hash},
        {Py_tp_str, statistic_str},
        {Py_tp_repr, statistic_repr},
        {Py_tp_getset, getset},
        {Py_tp_methods, methods},
        {0, NULL},
    };
    PyType_Spec spec = {
        .name = "heapledger.Statistic",
        .basicsize = sizeof(hl_py_statistic),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
        .slots = slots,
    };
    return hl_py_type_new(module, &spec, NULL, names);
}

PyTypeObject *hl_py_difference_type_new(PyObject *module)
{
    static const char *const names[] = {"traceback", "size", "size_diff", "count", "count_diff", NULL};
    static PyGetSetDef getset[] = {
        TRACEBACK_ATTRIBUTE,
        NUMBER_ATTRIBUTE("size", SIZE, "Total size in bytes, in the new snapshot."),
        NUMBER_ATTRIBUTE("size_diff", SIZE_DIFF, "Change of the size."),
        NUMBER_ATTRIBUTE("count", COUNT, "Number of blocks, in the new snapshot."),
        NUMBER_ATTRIBUTE("count_diff", COUNT_DIFF, "Change of the count."),
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyMethodDef methods[] = {
        {"_sort_key", difference_sort_key, METH_NOARGS, NULL},
        {"__reduce__", hl_py_object_reduce, METH_NOARGS, NULL},
        {"__getstate__", hl_py_object_getstate, METH_NOARGS, NULL},
        {NULL, NULL, 0, NULL},
    };
    PyType_Slot slots[] = {
        {Py_tp_doc, (void *)"StatisticDiff(traceback, size, size_diff, count, count_diff)\n--\n\n"
                            "How the sums of one group of traces changed."},
        SHARED_SLOTS,
        {Py_tp_init, difference_init},
        {Py_tp_richcompare, difference_compare},
        {Py_tp_hash, difference_hash},
        {Py_tp_str, difference_str},
        {Py_tp_repr, difference_repr},
        {Py_tp_getset, getset},
        {Py_tp_methods, methods},
        {0, NULL},
    };
    PyType_Spec spec = {
        .name = "heapledger.StatisticDiff",
        .basicsize = sizeof(hl_py_statistic),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
        .slots = slots,
    };
    return hl_py_type_new(module, &spec, NULL, names);
}
