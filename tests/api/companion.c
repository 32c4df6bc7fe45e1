/* companion.c: another tool in the process: allocator hooks, a reference tracer and a frame evaluator that count what
 * they see and pass it on. test_companions.py compiles and drives it.
 *
 * Threading: everything here is installed, removed and read with the GIL held. Counters are atomic, because the raw
 * allocator is called without it.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Allocator hooks: one layer, over whatever is there when it is pushed. */

enum { DOMAINS = 3 };
static PyMemAllocatorEx below[DOMAINS];
static atomic_long allocations, releases;

/* A log of what is released, which is begun there and grown elsewhere. */
static bool logging;
static void *log_book;
static size_t log_size;

static void *hook_malloc(void *context, size_t size)
{
    PyMemAllocatorEx *next = context;
    atomic_fetch_add(&allocations, 1);
    if (logging && context == &below[PYMEM_DOMAIN_OBJ] && log_book != NULL && log_size < 400000) {
        log_size += 90000;
        log_book = PyMem_RawRealloc(log_book, log_size);
    }
    return next->malloc(next->ctx, size);
}

static void *hook_calloc(void *context, size_t count, size_t size)
{
    PyMemAllocatorEx *next = context;
    atomic_fetch_add(&allocations, 1);
    return next->calloc(next->ctx, count, size);
}

static void *hook_realloc(void *context, void *block, size_t size)
{
    PyMemAllocatorEx *next = context;
    atomic_fetch_add(&allocations, 1);
    return next->realloc(next->ctx, block, size);
}

static void hook_free(void *context, void *block)
{
    PyMemAllocatorEx *next = context;
    atomic_fetch_add(&releases, block != NULL);
    if (logging && context == &below[PYMEM_DOMAIN_OBJ] && log_book == NULL) {
        log_size = 5000;
        log_book = PyMem_RawMalloc(log_size);
    }
    next->free(next->ctx, block);
}

static PyObject *push_allocator(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    for (int domain = 0; domain < DOMAINS; domain++) {
        PyMemAllocatorEx ours = {&below[domain], hook_malloc, hook_calloc, hook_realloc, hook_free};
        PyMem_GetAllocator((PyMemAllocatorDomain)domain, &below[domain]);
        PyMem_SetAllocator((PyMemAllocatorDomain)domain, &ours);
    }
    Py_RETURN_NONE;
}

/* Put back what was there, whatever is there now: most tools do. */
static PyObject *pop_allocator(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    for (int domain = 0; domain < DOMAINS; domain++)
        PyMem_SetAllocator((PyMemAllocatorDomain)domain, &below[domain]);
    Py_RETURN_NONE;
}

static PyObject *allocator_calls(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return Py_BuildValue("ll", atomic_load(&allocations), atomic_load(&releases));
}

static PyObject *keep_log(PyObject *module, PyObject *on)
{
    (void)module;
    logging = PyObject_IsTrue(on) == 1;
    if (!logging) {
        PyMem_RawFree(log_book);
        log_book = NULL;
    }
    return PyLong_FromSize_t(log_size);
}

/* The reference tracer. */

#if PY_VERSION_HEX >= 0x030d0000
static PyRefTracer next_tracer;
static void *next_data;
static atomic_long created, destroyed, others;

static int tracer(PyObject *object, PyRefTracerEvent event, void *data)
{
    atomic_long *counter = event == PyRefTracer_CREATE ? &created : event == PyRefTracer_DESTROY ? &destroyed : &others;
    atomic_fetch_add(counter, 1);
    (void)data;
    return next_tracer == NULL || counter == &others ? 0 : next_tracer(object, event, next_data);
}

/* set_tracer(chain): and call the one that was there, or not. */
static PyObject *set_tracer(PyObject *module, PyObject *chain)
{
    (void)module;
    next_tracer = PyRefTracer_GetTracer(&next_data);
    if (!PyObject_IsTrue(chain))
        next_tracer = NULL;
    if (PyRefTracer_SetTracer(tracer, NULL) != 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *remove_tracer(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    if (PyRefTracer_SetTracer(next_tracer, next_data) != 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *tracer_is_on_top(PyObject *module, PyObject *unused)
{
    void *data;
    (void)module, (void)unused;
    return PyBool_FromLong(PyRefTracer_GetTracer(&data) == tracer);
}

static PyObject *tracer_calls(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return Py_BuildValue("ll", atomic_load(&created), atomic_load(&destroyed));
}
#endif

/* The frame evaluator (PEP 523), as debuggers and compilers install it. */

static long evaluations;

static PyObject *evaluate(PyThreadState *thread, struct _PyInterpreterFrame *frame, int throwing)
{
    evaluations++;
    return _PyEval_EvalFrameDefault(thread, frame, throwing);
}

static PyObject *set_evaluator(PyObject *module, PyObject *on)
{
    (void)module;
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(),
                                         PyObject_IsTrue(on) ? evaluate : _PyEval_EvalFrameDefault);
    return PyLong_FromLong(evaluations);
}

static PyMethodDef methods[] = {
    {"push_allocator", push_allocator, METH_NOARGS, NULL},
    {"pop_allocator", pop_allocator, METH_NOARGS, NULL},
    {"allocator_calls", allocator_calls, METH_NOARGS, NULL},
    {"keep_log", keep_log, METH_O, NULL},
#if PY_VERSION_HEX >= 0x030d0000
    {"set_tracer", set_tracer, METH_O, NULL},
    {"remove_tracer", remove_tracer, METH_NOARGS, NULL},
    {"tracer_is_on_top", tracer_is_on_top, METH_NOARGS, NULL},
    {"tracer_calls", tracer_calls, METH_NOARGS, NULL},
#endif
    {"set_evaluator", set_evaluator, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "companion",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_companion(void)
{
    return PyModule_Create(&definition);
}
