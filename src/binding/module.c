/* module.c: the extension module: its state, its types, and the exceptions for the core's statuses.
 *
 * There is one state per interpreter, and all types are heap types. So interpreters share nothing that Python can see.
 * The ledger below is the only one of the process.
 */
#include "module.h"

#include "../cpython/rivals.h"
#include "c_api.h"
#include "filters.h"
#include "frame.h"
#include "functions.h"
#include "snapshot_object.h"
#include "statistic.h"
#include "trace.h"
#include "traceback.h"
#include "traces.h"
#include "view.h"
#include "window_object.h"

static struct PyModuleDef module_def;

hl_py_state *hl_py_state_of_module(PyObject *module)
{
    return PyModule_GetState(module);
}

hl_py_state *hl_py_state_of(PyTypeObject *type)
{
    return PyModule_GetState(PyType_GetModuleByDef(type, &module_def));
}

PyObject *hl_py_raise_status(hl_status status)
{
    switch (status) {
    case HL_NO_MEMORY:
    case HL_FULL:
        return PyErr_NoMemory();
    case HL_STOPPED:
        PyErr_SetString(PyExc_RuntimeError,
                        "the tracemalloc module must be tracing memory allocations to take a snapshot");
        return NULL;
    case HL_TOO_LARGE:
        PyErr_SetString(PyExc_OverflowError, "the sum of the sizes exceeds 64 bits");
        return NULL;
    case HL_MALFORMED: /* callers raise it themselves, because they know more than the status */
    case HL_BUSY:      /* only for signal handlers */
    case HL_OK:
        break;
    }
    PyErr_SetString(PyExc_SystemError, "unexpected status of the ledger");
    return NULL;
}

static int set_slots(PyTypeObject *type, const char *const *slots)
{
    Py_ssize_t count = 0;

    while (slots[count] != NULL)
        count++;
    PyObject *names = PyTuple_New(count);
    for (Py_ssize_t i = 0; names != NULL && i < count; i++) {
        PyObject *name = PyUnicode_InternFromString(slots[i]);
        if (name == NULL)
            Py_CLEAR(names);
        else
            PyTuple_SET_ITEM(names, i, name);
    }
    if (names == NULL)
        return -1;
    int result = PyObject_SetAttrString((PyObject *)type, "__slots__", names);
    Py_DECREF(names);
    return result;
}

/* The interpreter's error messages contain the tp_name of a type. It includes the module for types made from a spec,
 * but not for classes written in Python. Our messages must look like those of classes written in Python. */
static int shorten_name(PyTypeObject *type)
{
    PyObject *name = PyObject_GetAttrString((PyObject *)type, "__qualname__");
    if (name == NULL)
        return -1;
    int result = PyObject_SetAttrString((PyObject *)type, "__name__", name);
    Py_DECREF(name);
    return result;
}

PyTypeObject *hl_py_type_new(PyObject *module, PyType_Spec *spec, PyTypeObject *base, const char *const *slots)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, (PyObject *)base);

    if (type != NULL && (shorten_name(type) < 0 || (slots != NULL && set_slots(type, slots) < 0)))
        Py_CLEAR(type);
    return type;
}

/* --- the module --- */

static bool make_types(PyObject *module, hl_py_state *state)
{
    return (state->view = hl_py_view_type_new(module)) != NULL &&
           (state->frame = hl_py_frame_type_new(module)) != NULL &&
           (state->traceback = hl_py_traceback_type_new(module)) != NULL &&
           (state->trace = hl_py_trace_type_new(module)) != NULL &&
           (state->traces = hl_py_traces_type_new(module)) != NULL &&
           (state->statistic = hl_py_statistic_type_new(module)) != NULL &&
           (state->difference = hl_py_difference_type_new(module)) != NULL &&
           (state->base_filter = hl_py_base_filter_type_new(module)) != NULL &&
           (state->filter = hl_py_filter_type_new(module, state->base_filter)) != NULL &&
           (state->domain_filter = hl_py_domain_filter_type_new(module, state->base_filter)) != NULL &&
           (state->snapshot = hl_py_snapshot_type_new(module)) != NULL &&
           (state->window = hl_py_window_type_new(module)) != NULL &&
           (state->malformed = PyErr_NewExceptionWithDoc(
                "heapledger._ledger._Malformed", PyDoc_STR("Bytes that are not what they should be: (reason, offset)."),
                PyExc_ValueError, NULL)) != NULL;
}

static bool add_types(PyObject *module, hl_py_state *state)
{
    PyTypeObject *const types[] = {
        state->frame,         state->traceback,  state->trace,       state->traces,
        state->statistic,     state->difference, state->base_filter, state->filter,
        state->domain_filter, state->snapshot,   state->window,
    };

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (PyModule_AddType(module, types[i]) < 0)
            return false;
    }
    return PyModule_AddObjectRef(module, "_Malformed", state->malformed) == 0;
}

/* An interpreter with its own GIL cannot load the stdlib's engine. On 3.11, neither can a later interpreter of the same
 * process. In these cases there is no engine to ask. */
static bool find_stdlib(hl_py_state *state)
{
    PyObject *stdlib = PyImport_ImportModule("_tracemalloc");

    if (stdlib == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_ImportError) && !PyErr_ExceptionMatches(PyExc_RuntimeError))
            return false;
        PyErr_Clear();
        return true;
    }
    state->stdlib_memory = PyObject_GetAttrString(stdlib, "get_tracemalloc_memory");
    PyObject *stop = state->stdlib_memory == NULL ? NULL : PyObject_GetAttrString(stdlib, "stop");
    if (stop != NULL)
        hl_rivals_watch_stdlib(stop);
    Py_XDECREF(stop);
    Py_DECREF(stdlib);
    return stop != NULL;
}

/* Adds _moments: the names of the moments, in the order of hl_moment. */
static bool add_moments(PyObject *module)
{
    PyObject *names = PyTuple_New(HL_MOMENTS);

    for (Py_ssize_t i = 0; names != NULL && i < HL_MOMENTS; i++) {
        PyObject *name = PyUnicode_InternFromString(hl_moment_names[i]);
        if (name == NULL)
            Py_CLEAR(names);
        else
            PyTuple_SET_ITEM(names, i, name);
    }
    int added = names != NULL ? PyModule_AddObjectRef(module, "_moments", names) : -1;
    Py_XDECREF(names);
    return added == 0;
}

static int module_exec(PyObject *module)
{
#ifdef Py_GIL_DISABLED
    PyErr_SetString(PyExc_ImportError, "heapledger does not support free-threaded builds of Python");
    return -1;
#endif
    hl_py_state *state = hl_py_state_of_module(module);

    if (!find_stdlib(state) || !make_types(module, state) || !add_types(module, state) || !add_moments(module) ||
        !hl_py_c_api_add(module))
        return -1;
    return PyModule_AddStringConstant(module, "_version", HL_VERSION);
}

#define STATE_OBJECTS(X) \
    X(view)              \
    X(frame)             \
    X(traceback)         \
    X(trace)             \
    X(traces)            \
    X(statistic)         \
    X(difference)        \
    X(base_filter)       \
    X(filter)            \
    X(domain_filter)     \
    X(snapshot)          \
    X(window)            \
    X(malformed)         \
    X(stdlib_memory)

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    hl_py_state *state = hl_py_state_of_module(module);

#define VISIT(name) Py_VISIT(state->name);
    STATE_OBJECTS(VISIT)
#undef VISIT
    return 0;
}

static int module_clear(PyObject *module)
{
    hl_py_state *state = hl_py_state_of_module(module);

#define CLEAR(name) Py_CLEAR(state->name);
    STATE_OBJECTS(CLEAR)
#undef CLEAR
    return 0;
}

static void module_free(void *module)
{
    module_clear(module);
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "heapledger._ledger",
    .m_doc = PyDoc_STR("The ledger: what heapledger does, in C."),
    .m_size = sizeof(hl_py_state),
    .m_methods = hl_py_functions,
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__ledger(void);

PyMODINIT_FUNC PyInit__ledger(void)
{
    return PyModuleDef_Init(&module_def);
}
