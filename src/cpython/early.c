/* early.c: see early.h. */

#include "early.h"

#include <Python.h>
#include <string.h>

static const hl_early_events *heard;

/* --- the ways out --- */

typedef PyObject *quick_function(PyObject *, PyObject *const *, Py_ssize_t);
typedef PyObject *keyword_function(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

static keyword_function *real_exit, *real_execve;
static quick_function *real_execv;

static PyObject *watched_exit(PyObject *module, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    heard->leaving();
    return real_exit(module, arguments, count, names);
}

static void tell_replacing(PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    bool given = count > 0 || (names != NULL && PyTuple_GET_SIZE(names) > 0);
    PyObject *path = NULL;
    if (!given || !PyUnicode_FSConverter(arguments[0], &path)) /* a number, or a mistake */
        PyErr_Clear();
    heard->replacing(path != NULL ? PyBytes_AS_STRING(path) : NULL);
    Py_XDECREF(path);
}

static PyObject *watched_execv(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    tell_replacing(arguments, count, NULL);
    PyObject *result = real_execv(module, arguments, count);
    heard->not_replaced();
    return result;
}

static PyObject *watched_execve(PyObject *module, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    tell_replacing(arguments, count, names);
    PyObject *result = real_execve(module, arguments, count, names);
    heard->not_replaced();
    return result;
}

/* The table is the interpreter's own and not constant. A function of another shape than we know is left alone. */
static void watch_methods(PyMethodDef *method)
{
    enum { QUICK = METH_FASTCALL, KEYWORDS = METH_FASTCALL | METH_KEYWORDS };
    for (; method != NULL && method->ml_name != NULL; method++) {
        if (strcmp(method->ml_name, "_exit") == 0 && method->ml_flags == KEYWORDS) {
            real_exit = (keyword_function *)(void (*)(void))method->ml_meth;
            method->ml_meth = (PyCFunction)(void (*)(void))watched_exit;
        } else if (strcmp(method->ml_name, "execv") == 0 && method->ml_flags == QUICK) {
            real_execv = (quick_function *)(void (*)(void))method->ml_meth;
            method->ml_meth = (PyCFunction)(void (*)(void))watched_execv;
        } else if (strcmp(method->ml_name, "execve") == 0 && method->ml_flags == KEYWORDS) {
            real_execve = (keyword_function *)(void (*)(void))method->ml_meth;
            method->ml_meth = (PyCFunction)(void (*)(void))watched_execve;
        }
    }
}

/* --- the start --- */

typedef PyObject *init_function(void);
static init_function *real_posix, *real_signal;

static PyModuleDef *definition_of(PyObject *module)
{
    return module != NULL && Py_IS_TYPE(module, &PyModuleDef_Type) ? (PyModuleDef *)module : NULL;
}

/* Every interpreter of the process makes its modules; the first one counts. */
static PyObject *init_posix(void)
{
    static bool done;
    if (done)
        return real_posix();
    done = true;
    heard->attached();
    PyObject *module = real_posix();
    PyModuleDef *definition = definition_of(module);
    if (definition != NULL)
        watch_methods(definition->m_methods);
    return module;
}

static int (*real_signal_exec)(PyObject *);

static int signal_exec(PyObject *module)
{
    static bool done;
    int result = real_signal_exec(module);
    if (result == 0 && !done) {
        done = true;
        heard->imports();
    }
    return result;
}

/* The interpreter looks for handlers when it executes the module, so that is where we have to wait. */
static PyObject *init_signal(void)
{
    PyObject *module = real_signal();
    PyModuleDef *definition = definition_of(module);
    PyModuleDef_Slot *slot = definition != NULL ? definition->m_slots : NULL;
    while (slot != NULL && slot->slot != 0 && slot->slot != Py_mod_exec)
        slot++;
    if (slot != NULL && slot->slot == Py_mod_exec && slot->value != (void *)signal_exec) {
        real_signal_exec = (int (*)(PyObject *))slot->value;
        slot->value = (void *)signal_exec;
    }
    return module;
}

void hl_early_watch(const hl_early_events *events)
{
    heard = events;
    for (struct _inittab *entry = PyImport_Inittab; entry != NULL && entry->name != NULL; entry++) {
        if (strcmp(entry->name, "posix") == 0) {
            real_posix = entry->initfunc;
            entry->initfunc = init_posix;
        } else if (strcmp(entry->name, "_signal") == 0) {
            real_signal = entry->initfunc;
            entry->initfunc = init_signal;
        }
    }
}
