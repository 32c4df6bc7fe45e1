/* bugs_on_record.c: what extensions do that bugs on record in the standard library's tracker need: threads that Python
 * does not know, which allocate and report memory without the GIL. test_bugs_on_record.py compiles and drives it.
 *
 * Threading: one group of threads at a time, begun and ended with the GIL held.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { MOST_THREADS = 64, DOMAIN = 123, SIZE = 64 };

static pthread_t threads[MOST_THREADS];
static int count;
static atomic_int entered, ending;

static void allocate_once(void)
{
    PyMem_RawFree(PyMem_RawMalloc(SIZE));
}

static void report_once(uintptr_t address)
{
    (void)PyTraceMalloc_Track(DOMAIN, address, SIZE);
    (void)PyTraceMalloc_Untrack(DOMAIN, address);
}

static void *thread_that_allocates(void *argument)
{
    atomic_fetch_add(&entered, 1);
    allocate_once();
    return argument;
}

static void *thread_that_reports(void *argument)
{
    atomic_fetch_add(&entered, 1);
    report_once((uintptr_t)argument);
    return argument;
}

static void *thread_that_does_both_for_long(void *argument)
{
    atomic_fetch_add(&entered, 1);
    while (!atomic_load(&ending)) {
        allocate_once();
        report_once((uintptr_t)argument);
    }
    return argument;
}

static void *thread_that_measures(void *argument)
{
    long *calls = argument;
    struct timespec end;

    for (long i = 0; i < *calls; i++)
        report_once((uintptr_t)calls);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    *calls = end.tv_sec * 1000000000L + end.tv_nsec;
    return NULL;
}

/* begin(kind, threads): start them, with the GIL held until each one is about to make its first call, and a moment
 * more. */
static PyObject *begin(PyObject *module, PyObject *args)
{
    const char *kind;
    int number;

    (void)module;
    if (!PyArg_ParseTuple(args, "si", &kind, &number))
        return NULL;
    if (number > MOST_THREADS)
        return PyErr_Format(PyExc_ValueError, "at most %d threads", MOST_THREADS);
    void *(*body)(void *) = strcmp(kind, "allocate") == 0 ? thread_that_allocates
                            : strcmp(kind, "report") == 0 ? thread_that_reports
                                                          : thread_that_does_both_for_long;
    atomic_store(&entered, 0);
    atomic_store(&ending, 0);
    for (count = 0; count < number; count++)
        if (pthread_create(&threads[count], NULL, body, (void *)(uintptr_t)(SIZE * (count + 1))) != 0)
            return PyErr_Format(PyExc_OSError, "no thread");
    while (atomic_load(&entered) < number)
        usleep(1000);
    usleep(50000);
    Py_RETURN_NONE;
}

static void join_all(void)
{
    atomic_store(&ending, 1);
    while (count > 0)
        pthread_join(threads[--count], NULL);
}

/* end(hold_the_gil): wait for the threads. */
static PyObject *end(PyObject *module, PyObject *hold)
{
    (void)module;
    if (PyObject_IsTrue(hold)) {
        join_all();
    } else {
        Py_BEGIN_ALLOW_THREADS
        join_all();
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_NONE;
}

/* measure(threads, calls): the processor time of one report and its withdrawal, in nanoseconds, of all threads at
 * once. */
static PyObject *measure(PyObject *module, PyObject *args)
{
    int number;
    long calls, times[MOST_THREADS], sum = 0;

    (void)module;
    if (!PyArg_ParseTuple(args, "il", &number, &calls))
        return NULL;
    if (number > MOST_THREADS)
        return PyErr_Format(PyExc_ValueError, "at most %d threads", MOST_THREADS);
    Py_BEGIN_ALLOW_THREADS
    for (count = 0; count < number; count++) {
        times[count] = calls;
        if (pthread_create(&threads[count], NULL, thread_that_measures, &times[count]) != 0)
            break;
    }
    number = count;
    join_all();
    for (int i = 0; i < number; i++)
        sum += times[i];
    Py_END_ALLOW_THREADS
    return PyFloat_FromDouble((double)sum / number / (double)calls);
}

static PyMethodDef methods[] = {
    {"begin", begin, METH_VARARGS, NULL},
    {"end", end, METH_O, NULL},
    {"measure", measure, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "bugs_on_record",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_bugs_on_record(void)
{
    return PyModule_Create(&definition);
}
