/* run.c: see run.h. */

#include "run.h"

#include <Python.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../core/hlsnap.h"
#include "../core/save.h"
#include "early.h"
#include "hooks.h"
#include "tracer.h"

static hl_run_options options;
static pid_t
    owner; /* the process that writes files: this one, unless it was forked off and children are not followed */
static char executable[PATH_MAX];
static char replacing_name[PATH_MAX]; /* the file written for the sake of os.exec; empty: none */
static bool summed_up;

/* --- writing --- */

typedef struct {
    hl_snapshot *taken[2];
    size_t count;
} snapshots;

static hl_status take(snapshots *s)
{
    hl_moment moments[2];
    *s = (snapshots){.count = 0};
    size_t count = 0;
    if (options.live)
        moments[count++] = HL_LIVE;
    if (options.peak)
        moments[count++] = HL_PEAK;
    hl_status status = hl_tracer_capture(moments, count, s->taken);
    if (status == HL_OK)
        s->count = count;
    return status;
}

static void drop(snapshots *s)
{
    while (s->count > 0)
        hl_snapshot_drop(s->taken[--s->count]);
}

/* 0, or an errno. */
static int write_file(const snapshots *s, const char *name)
{
    hl_hlsnap_section section = {.kind = {'M', 'E', 'T', 'A'}};
    hl_hlsnap_file file;
    uint8_t *metadata = hl_run_metadata(s->taken[0], executable, &section.length);
    if (metadata == NULL)
        return ENOMEM;
    section.bytes = metadata;
    hl_status status = hl_hlsnap_write((const hl_snapshot *const *)s->taken, s->count, &section, 1, &file);
    hl_os_free(metadata);
    if (status != HL_OK)
        return status == HL_NO_MEMORY ? ENOMEM : EFBIG;
    int error = hl_save(name, file.bytes, file.length);
    hl_os_free(file.bytes);
    return error;
}

/* Write what there is under the name with `part` in it, and say so if this is the process to say it. */
static bool write_now(const char *part, char name[PATH_MAX])
{
    snapshots s;
    int error = 0;
    if (getpid() != owner || !hl_run_file_name(&options, owner, part, name))
        return false;
    hl_status status = take(&s);
    if (status == HL_OK)
        error = write_file(&s, name);
    else if (status != HL_STOPPED)
        error = ENOMEM;
    bool speaks = owner == options.root && !options.quiet;
    if (status == HL_STOPPED && speaks && !summed_up)
        hl_run_say("heapledger: the program has stopped tracing: nothing is written\n");
    else if (error != 0)
        hl_run_say("heapledger: cannot write %s: %s\n", name, strerror(error));
    else if (speaks && !summed_up)
        hl_run_sum_up(&options, name, s.taken[s.count - 1]);
    summed_up = true;
    drop(&s);
    return status == HL_OK && error == 0;
}

/* --- events --- */

static void leave(void)
{
    char name[PATH_MAX];
    (void)write_now("", name);
}

static PyObject *leave_at_exit(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    leave();
    Py_RETURN_NONE;
}

/* Python's exit functions run newest first: ours is the oldest. The module is not left imported. */
static void register_exit(void)
{
    static PyMethodDef definition = {"heapledger", leave_at_exit, METH_NOARGS, NULL};
    PyObject *modules = PyImport_GetModuleDict();
    bool there = PyDict_GetItemString(modules, "atexit") != NULL;
    PyObject *module = PyImport_ImportModule("atexit");
    PyObject *function = module != NULL ? PyCFunction_New(&definition, NULL) : NULL;
    PyObject *result = function != NULL ? PyObject_CallMethod(module, "register", "O", function) : NULL;
    if (!there && module != NULL && PyDict_DelItemString(modules, "atexit") < 0)
        PyErr_Clear();
    Py_XDECREF(result);
    Py_XDECREF(function);
    Py_XDECREF(module);
    PyErr_Clear();
}

static void remember_executable(void)
{
    PyObject *object = PySys_GetObject("executable");
    const char *text = object != NULL && PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : NULL;
    if (text != NULL && strlen(text) < sizeof executable)
        strcpy(executable, text);
    PyErr_Clear();
}

static void imports_work(void)
{
    hl_own_work outer;
    hl_tracer_begin_own_work(&outer);
    remember_executable();
    register_exit();
    hl_tracer_end_own_work(&outer);
}

/* os.execvp tries one folder after the other: only what is there is worth a file. The process keeps its number, and
 * what comes after writes a file too. */
static void write_before_exec(const char *path)
{
    char part[32], name[PATH_MAX];
    replacing_name[0] = '\0';
    if (getpid() != owner || (path != NULL && access(path, X_OK) != 0))
        return;
    for (int number = 1; number < 1000; number++) {
        snprintf(part, sizeof part, "-exec%d", number);
        if (!hl_run_file_name(&options, owner, part, name) || access(name, F_OK) != 0)
            break;
    }
    if (write_now(part, name))
        strcpy(replacing_name, name);
}

static void forget_exec(void)
{
    if (replacing_name[0] != '\0')
        (void)unlink(replacing_name);
    replacing_name[0] = '\0';
    summed_up = false;
}

static void after_fork_in_child(void)
{
    owner = options.alone ? 0 : getpid();
    summed_up = false;
}

/* --- the start --- */

static void read_option(const char *text, size_t length)
{
    char word[64];
    if (length >= sizeof word)
        return;
    memcpy(word, text, length);
    word[length] = '\0';
    char *value = strchr(word, '=');
    if (value != NULL)
        *value++ = '\0';
    else
        value = word + length;
    if (strcmp(word, "frames") == 0)
        options.frames = (uint32_t)strtoul(value, NULL, 10);
    else if (strcmp(word, "root") == 0)
        options.root = (pid_t)strtol(value, NULL, 10);
    else if (strcmp(word, "began") == 0)
        options.began = strtoll(value, NULL, 10);
    else if (strcmp(word, "moments") == 0) {
        options.live = strchr(value, 'l') != NULL;
        options.peak = strchr(value, 'p') != NULL;
    } else if (strcmp(word, "quiet") == 0)
        options.quiet = true;
    else if (strcmp(word, "alone") == 0)
        options.alone = true;
}

/* False: somebody else has set the variable. */
static bool read_options(const char *text)
{
    while (strncmp(text, "file=", 5) != 0) {
        size_t length = strcspn(text, ",");
        read_option(text, length);
        if (text[length] == '\0')
            return false;
        text += length + 1;
    }
    text += 5;
    if (strlen(text) >= sizeof options.file)
        return false;
    strcpy(options.file, text);
    return options.file[0] == '/' && options.frames >= 1 && options.frames <= HL_MOST_FRAMES &&
           (options.live || options.peak);
}

/* The environment as it was before the command: the command has put the library at the front of the list. */
static void leave_environment(void)
{
    Dl_info here;
    const char *list = getenv("LD_PRELOAD");
    (void)unsetenv(HL_RUN_VARIABLE);
    if (list == NULL || dladdr((void *)hl_run_begin, &here) == 0)
        return;
    const char *slash = strrchr(here.dli_fname, '/');
    size_t folder = slash != NULL ? (size_t)(slash - here.dli_fname) + 1 : 0, length = strcspn(list, ": ");
    static const char name[] = "_preload.so";
    if (length != folder + sizeof name - 1 || strncmp(list, here.dli_fname, folder) != 0 ||
        strncmp(list + folder, name, sizeof name - 1) != 0)
        return;
    if (list[length] == '\0')
        (void)unsetenv("LD_PRELOAD");
    else
        memmove((char *)(uintptr_t)list, list + length + 1, strlen(list + length + 1) + 1);
}

void hl_run_begin(void)
{
    static const hl_early_events events = {hl_tracer_adopt, imports_work, leave, write_before_exec, forget_exec};
    const char *text = getenv(HL_RUN_VARIABLE);
    if (text == NULL || !read_options(text))
        return;
    if (options.alone)
        leave_environment();
    hl_run_remember_stderr();
    if (hl_tracer_start_early(options.frames) != HL_OK)
        return;
    owner = getpid();
    (void)pthread_atfork(NULL, NULL, after_fork_in_child);
    hl_early_watch(&events);
}
