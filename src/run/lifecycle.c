/* lifecycle.c: see lifecycle.h. */

#include "lifecycle.h"

#include <Python.h>
#include <signal.h>
#include <string.h>

static const hl_lifecycle_events *heard;

/* --- the ways out --- */

typedef PyObject *quick_function(PyObject *, PyObject *const *, Py_ssize_t);
typedef PyObject *keyword_function(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

typedef void any_function(void); /* function pointers are cast to pointers to this type, and back */
static any_function *real_exit, *real_execve, *real_execv, *real_set_handler, *real_kill, *real_raise;

static PyObject *watched_exit(PyObject *module, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    heard->leaving();
    return ((keyword_function *)real_exit)(module, arguments, count, names);
}

static void tell_replacing(PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    bool given = count > 0 || (names != NULL && PyTuple_GET_SIZE(names) > 0);
    PyObject *path = NULL;
    if (!given || !PyUnicode_FSConverter(arguments[0], &path)) /* the argument is a file descriptor, or invalid */
        PyErr_Clear();
    heard->replacing(path != NULL ? PyBytes_AS_STRING(path) : NULL);
    Py_XDECREF(path);
}

static PyObject *watched_execv(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    tell_replacing(arguments, count, NULL);
    PyObject *result = ((quick_function *)real_execv)(module, arguments, count);
    heard->not_replaced();
    return result;
}

static PyObject *watched_execve(PyObject *module, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    tell_replacing(arguments, count, names);
    PyObject *result = ((keyword_function *)real_execve)(module, arguments, count, names);
    heard->not_replaced();
    return result;
}

/* --- signals --- */

/* Calls `event` if `number` is a valid signal number. The watched function itself rejects anything else. */
static void tell(void (*event)(int), PyObject *number)
{
    int overflow = 0;
    long signal = PyLong_Check(number) ? PyLong_AsLongAndOverflow(number, &overflow) : 0;
    if (overflow == 0 && signal > 0 && signal < NSIG)
        event((int)signal);
}

static PyObject *watched_set_handler(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    PyObject *result = ((quick_function *)real_set_handler)(module, arguments, count);
    if (result != NULL)
        tell(heard->handler_set, arguments[0]);
    return result;
}

static PyObject *watched_kill(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    if (count == 2)
        tell(heard->sending, arguments[1]);
    return ((quick_function *)real_kill)(module, arguments, count);
}

static PyObject *watched_raise(PyObject *module, PyObject *number)
{
    tell(heard->sending, number);
    return ((PyCFunction)real_raise)(module, number);
}

/* --- the tables --- */

enum { QUICK = METH_FASTCALL, KEYWORDS = METH_FASTCALL | METH_KEYWORDS };
static const struct {
    const char *name;
    int flags;
    any_function **real, *watched;
} watched[] = {
    {"_exit", KEYWORDS, &real_exit, (any_function *)watched_exit},
    {"execv", QUICK, &real_execv, (any_function *)watched_execv},
    {"execve", KEYWORDS, &real_execve, (any_function *)watched_execve},
    {"kill", QUICK, &real_kill, (any_function *)watched_kill},
    {"signal", QUICK, &real_set_handler, (any_function *)watched_set_handler},
    {"raise_signal", METH_O, &real_raise, (any_function *)watched_raise},
};

/* The method tables belong to the interpreter and are writable. If a function has flags that we do not know, we leave
 * it alone. */
static void watch_methods(PyModuleDef *module)
{
    for (PyMethodDef *method = module->m_methods; method != NULL && method->ml_name != NULL; method++) {
        for (size_t i = 0; i < sizeof watched / sizeof watched[0]; i++) {
            if (strcmp(method->ml_name, watched[i].name) != 0 || method->ml_flags != watched[i].flags)
                continue;
            *watched[i].real = (any_function *)method->ml_meth;
            method->ml_meth = (PyCFunction)watched[i].watched;
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

/* Every interpreter of the process creates its own modules. Only the first one counts. */
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
        watch_methods(definition);
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

/* The interpreter looks for existing signal handlers when it executes the module. So the event must come after that. */
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
        watch_methods(definition);
    }
    return module;
}

void hl_lifecycle_watch(const hl_lifecycle_events *events)
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
