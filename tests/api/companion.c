/* companion.c: another tool in the process: allocator hooks, a reference tracer and a frame evaluator that count what
 * they see and pass it on. test_companions.py compiles and drives it.
 *
 * Threading: everything here is installed, removed and read with the GIL held. Counters are atomic, because the raw
 * allocator is called without it.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

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

/* An allocator that serves some sizes itself, from a reserve that is never given back, and passes the others on. */

enum { RESERVE = 64 << 20, HEAD = 16 };
static PyMemAllocatorEx below_reserve[DOMAINS];
static char reserve[RESERVE] __attribute__((aligned(16)));
static atomic_size_t reserve_used;
static size_t reserve_for; /* requests of up to so many bytes */

static bool is_reserved(const void *block)
{
    return (const char *)block >= reserve && (const char *)block < reserve + RESERVE;
}

static void *take_reserved(size_t size)
{
    size_t bytes = (size + HEAD + 15) / 16 * 16;
    size_t at = atomic_fetch_add(&reserve_used, bytes);
    if (at + bytes > RESERVE)
        return NULL;
    memcpy(reserve + at, &size, sizeof size);
    return memset(reserve + at + HEAD, 0, size);
}

/* The first request of one size waits for another thread, without the GIL; but not for ever. */
static size_t waits_at = SIZE_MAX;
enum { NOT_YET, WAITS, DONE, GAVE_UP };
static atomic_int waits;

static void wait_for_others(void)
{
    const struct timespec moment = {.tv_nsec = 10 * 1000 * 1000};
    PyThreadState *thread = PyEval_SaveThread();
    int waiting = WAITS;
    for (int i = 0; i < 500 && atomic_load(&waits) == WAITS; i++)
        nanosleep(&moment, NULL);
    (void)atomic_compare_exchange_strong(&waits, &waiting, GAVE_UP);
    PyEval_RestoreThread(thread);
}

static PyObject *wait_at(PyObject *module, PyObject *size)
{
    (void)module;
    waits_at = PyLong_AsSize_t(size);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyObject *is_waiting(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(atomic_load(&waits) == WAITS);
}

static PyObject *end_waiting(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    atomic_store(&waits, DONE);
    Py_RETURN_NONE;
}

static void *reserve_malloc(void *context, size_t size)
{
    PyMemAllocatorEx *next = context;
    int not_yet = NOT_YET;
    if (size == waits_at && atomic_compare_exchange_strong(&waits, &not_yet, WAITS))
        wait_for_others();
    void *block = size <= reserve_for ? take_reserved(size) : NULL;
    return block != NULL ? block : next->malloc(next->ctx, size);
}

static void *reserve_calloc(void *context, size_t count, size_t size)
{
    PyMemAllocatorEx *next = context;
    void *block = count == 0 || size <= reserve_for / count ? take_reserved(count * size) : NULL;
    return block != NULL ? block : next->calloc(next->ctx, count, size);
}

static void *reserve_realloc(void *context, void *block, size_t size)
{
    PyMemAllocatorEx *next = context;
    size_t old;
    if (block != NULL && !is_reserved(block))
        return next->realloc(next->ctx, block, size);
    void *moved = reserve_malloc(context, size);
    if (moved == NULL || block == NULL)
        return moved;
    memcpy(&old, (char *)block - HEAD, sizeof old);
    return memcpy(moved, block, old < size ? old : size);
}

static void reserve_free(void *context, void *block)
{
    PyMemAllocatorEx *next = context;
    if (!is_reserved(block))
        next->free(next->ctx, block);
}

static PyObject *push_reserve(PyObject *module, PyObject *most)
{
    (void)module;
    reserve_for = PyLong_AsSize_t(most);
    if (PyErr_Occurred())
        return NULL;
    for (int domain = 0; domain < DOMAINS; domain++) {
        PyMemAllocatorEx ours = {&below_reserve[domain], reserve_malloc, reserve_calloc, reserve_realloc, reserve_free};
        PyMem_GetAllocator((PyMemAllocatorDomain)domain, &below_reserve[domain]);
        PyMem_SetAllocator((PyMemAllocatorDomain)domain, &ours);
    }
    Py_RETURN_NONE;
}

/* A handler that starts a thread in the child of each fork, which calls the raw allocator. */

static pthread_t child_thread;
static atomic_int child_thread_result;

static void *call_raw_allocator(void *unused)
{
    for (int i = 0; i < 1000; i++)
        PyMem_RawFree(PyMem_RawMalloc(100));
    atomic_store(&child_thread_result, 1);
    return unused;
}

static void start_child_thread(void)
{
    const struct timespec moment = {.tv_nsec = 20 * 1000 * 1000};
    if (pthread_create(&child_thread, NULL, call_raw_allocator, NULL) == 0)
        (void)nanosleep(&moment, NULL); /* so that it meets whatever is still locked */
}

static PyObject *start_threads_in_children(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(pthread_atfork(NULL, NULL, start_child_thread));
}

static PyObject *child_thread_is_done(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(atomic_load(&child_thread_result));
}

/* The reference tracer. */

#if PY_VERSION_HEX >= 0x030d0000
static atomic_long created, destroyed;

static int tracer(PyObject *object, PyRefTracerEvent event, void *data)
{
    (void)object, (void)data;
    if (event == PyRefTracer_CREATE)
        atomic_fetch_add(&created, 1);
    else if (event == PyRefTracer_DESTROY)
        atomic_fetch_add(&destroyed, 1);
    return 0;
}

static PyObject *set_tracer(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    if (PyRefTracer_SetTracer(tracer, NULL) != 0)
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

/* Destructors. */

static destructor wrapped;
static atomic_long destructions;

static void destroy(PyObject *object)
{
    atomic_fetch_add(&destructions, 1);
    wrapped(object);
}

static PyObject *wrap_destructor(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    wrapped = PyList_Type.tp_dealloc;
    PyList_Type.tp_dealloc = destroy;
    Py_RETURN_NONE;
}

static PyObject *unwrap_destructor(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyList_Type.tp_dealloc = wrapped;
    return PyLong_FromLong(atomic_load(&destructions));
}

/* A static type gets what its base has at the moment. */
static PyTypeObject heir = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "companion.Heir",
    .tp_basicsize = sizeof(PyListObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
};

static PyObject *inherit(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    heir.tp_base = &PyList_Type;
    return PyType_Ready(&heir) < 0 ? NULL : Py_NewRef(&heir);
}

#if PY_VERSION_HEX >= 0x030c0000
static PyObject *revived;
static int watcher = -1;

static int revive(PyDict_WatchEvent event, PyObject *dict, PyObject *key, PyObject *value)
{
    (void)key, (void)value;
    if (event == PyDict_EVENT_DEALLOCATED) {
        revived = Py_NewRef(dict);
        return PyDict_Unwatch(watcher, dict);
    }
    return 0;
}

/* A dict that is watched stays alive once, for give_back. */
static PyObject *watch(PyObject *module, PyObject *dict)
{
    (void)module;
    if (watcher < 0)
        watcher = PyDict_AddWatcher(revive);
    return watcher < 0 || PyDict_Watch(watcher, dict) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *give_back(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *dict = revived;
    revived = NULL;
    return dict;
}
#endif

static PyMethodDef methods[] = {
    {"push_allocator", push_allocator, METH_NOARGS, NULL},
    {"pop_allocator", pop_allocator, METH_NOARGS, NULL},
    {"allocator_calls", allocator_calls, METH_NOARGS, NULL},
    {"keep_log", keep_log, METH_O, NULL},
    {"push_reserve", push_reserve, METH_O, NULL},
    {"wait_at", wait_at, METH_O, NULL},
    {"is_waiting", is_waiting, METH_NOARGS, NULL},
    {"end_waiting", end_waiting, METH_NOARGS, NULL},
    {"start_threads_in_children", start_threads_in_children, METH_NOARGS, NULL},
    {"child_thread_is_done", child_thread_is_done, METH_NOARGS, NULL},
    {"wrap_destructor", wrap_destructor, METH_NOARGS, NULL},
    {"unwrap_destructor", unwrap_destructor, METH_NOARGS, NULL},
    {"inherit", inherit, METH_NOARGS, NULL},
#if PY_VERSION_HEX >= 0x030c0000
    {"watch", watch, METH_O, NULL},
    {"give_back", give_back, METH_NOARGS, NULL},
#endif
#if PY_VERSION_HEX >= 0x030d0000
    {"set_tracer", set_tracer, METH_NOARGS, NULL},
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
