/* extension_example.c: an extension that manages memory of its own, as an author would write it with heapledger.h.
 *
 * An arena hands out pieces of one large block and reports each piece through heapledger.h; other functions report what
 * they are told through the interpreter's PyTraceMalloc_Track. test_extensions.py compiles and drives it.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <stdlib.h>

#include "heapledger.h"

enum { ARENA_SIZE = 1 << 24, ALIGNMENT = 16 };

static char *arena; /* from malloc: the interpreter's allocators, and so the hooks, know nothing of it */
static size_t used;

static uintptr_t arena_take(size_t size)
{
    size_t rounded = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    size_t at = __atomic_fetch_add(&used, rounded, __ATOMIC_RELAXED);
    return at + rounded <= ARENA_SIZE ? (uintptr_t)arena + at : 0;
}

static PyObject *connect(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(heapledger_connect());
}

static PyObject *is_tracing(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(heapledger_is_tracing());
}

/* allocate(domain, size) -> (address, status) */
static PyObject *allocate(PyObject *module, PyObject *args)
{
    unsigned int domain;
    Py_ssize_t size;
    uintptr_t address;
    int status;

    (void)module;
    if (!PyArg_ParseTuple(args, "In", &domain, &size))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    address = arena_take((size_t)size);
    status = heapledger_track(domain, address, (size_t)size);
    Py_END_ALLOW_THREADS
    return Py_BuildValue("Ki", (unsigned long long)address, status);
}

/* release(domain, address) -> status */
static PyObject *release(PyObject *module, PyObject *args)
{
    unsigned int domain;
    unsigned long long address;

    (void)module;
    if (!PyArg_ParseTuple(args, "IK", &domain, &address))
        return NULL;
    return PyLong_FromLong(heapledger_untrack(domain, (uintptr_t)address));
}

/* Threads that Python does not know: each keeps every second block. */

typedef struct {
    pthread_t thread;
    unsigned int domain;
    int blocks;
    size_t size;
} worker;

static void *work(void *argument)
{
    const worker *w = argument;

    for (int i = 0; i < w->blocks; i++) {
        uintptr_t address = arena_take(w->size);
        heapledger_track(w->domain, address, w->size);
        if (i % 2 != 0)
            heapledger_untrack(w->domain, address);
    }
    return NULL;
}

/* in_threads(threads, domain, blocks, size) */
static PyObject *in_threads(PyObject *module, PyObject *args)
{
    worker common = {0}, workers[16];
    Py_ssize_t size;
    int threads, started = 0;

    (void)module;
    if (!PyArg_ParseTuple(args, "iIin", &threads, &common.domain, &common.blocks, &size))
        return NULL;
    common.size = (size_t)size;
    Py_BEGIN_ALLOW_THREADS
    while (started < threads && started < 16) {
        workers[started] = common;
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0)
            break;
        started++;
    }
    for (int i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    Py_END_ALLOW_THREADS
    return PyLong_FromLong(started);
}

/* The interpreter's own functions: report(domain, address, size) -> status, withdraw(domain, address) -> status */

static PyObject *report(PyObject *module, PyObject *args)
{
    unsigned int domain;
    unsigned long long address;
    Py_ssize_t size;

    (void)module;
    if (!PyArg_ParseTuple(args, "IKn", &domain, &address, &size))
        return NULL;
    return PyLong_FromLong(PyTraceMalloc_Track(domain, (uintptr_t)address, (size_t)size));
}

static PyObject *withdraw(PyObject *module, PyObject *args)
{
    unsigned int domain;
    unsigned long long address;

    (void)module;
    if (!PyArg_ParseTuple(args, "IK", &domain, &address))
        return NULL;
    return PyLong_FromLong(PyTraceMalloc_Untrack(domain, (uintptr_t)address));
}

/* report_raw(domain, size): a block that the hooks see as well, from the same instruction; it is kept */
static PyObject *report_raw(PyObject *module, PyObject *args)
{
    unsigned int domain;
    Py_ssize_t size;

    (void)module;
    if (!PyArg_ParseTuple(args, "In", &domain, &size))
        return NULL;
    void *block = PyMem_RawMalloc((size_t)size);
    return PyLong_FromLong(PyTraceMalloc_Track(domain, (uintptr_t)block, (size_t)size));
}

static PyMethodDef functions[] = {
    {"connect", connect, METH_NOARGS, NULL},
    {"is_tracing", is_tracing, METH_NOARGS, NULL},
    {"allocate", allocate, METH_VARARGS, NULL},
    {"release", release, METH_VARARGS, NULL},
    {"in_threads", in_threads, METH_VARARGS, NULL},
    {"report", report, METH_VARARGS, NULL},
    {"withdraw", withdraw, METH_VARARGS, NULL},
    {"report_raw", report_raw, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "extension_example", .m_methods = functions};

PyMODINIT_FUNC PyInit_extension_example(void)
{
    PyObject *module = PyModule_Create(&definition);

    arena = malloc(ARENA_SIZE);
    heapledger_connect();
    /* What an extension reports while it is being imported must be seen, too. */
    PyTraceMalloc_Track(77, (uintptr_t)arena, ARENA_SIZE);
    if (module != NULL)
        PyModule_AddIntConstant(module, "ARENA_SIZE", ARENA_SIZE);
    return module;
}
