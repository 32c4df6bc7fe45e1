/* run.c: see run.h. */

#include "run.h"

#include <Python.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../core/hlsnap.h"
#include "../core/save.h"
#include "../cpython/hooks.h"
#include "lifecycle.h"

hl_run_options hl_run_given;
pid_t hl_run_owner;
static char replacing_name[PATH_MAX]; /* the file written before os.exec; empty if there is none */
static atomic_bool summed_up;

/* --- the content of a file --- */

typedef struct {
    hl_hlsnap_file file;
    hl_run_process *process;
    bool is_last;
    bool no_memory;
} content;

/* The lines that held most according to the last file of the process. Known only if this process prints the summary. */
static hl_run_lines own_lines;
static bool own_lines_known;

static bool speaks(void)
{
    return hl_run_owner == hl_run_given.root && !hl_run_given.quiet && !atomic_load(&summed_up);
}

static hl_status make_file(const hl_rows *rows, size_t count, const hl_tracer_totals *totals, content *made)
{
    hl_hlsnap_section section = {.kind = {'M', 'E', 'T', 'A'}};
    uint8_t *metadata = hl_run_metadata(&rows[0], totals, made->process, &section.length);
    section.bytes = metadata;
    hl_status status = metadata != NULL ? hl_hlsnap_write_rows(rows, count, &section, 1, &made->file) : HL_NO_MEMORY;
    hl_os_free(metadata);
    return status;
}

/* Makes the content of the file. This is a visitor of the ledger. If the memory does not suffice for both moments, it
 * may suffice for the peak alone. A process that is ending needs no caches, so their memory is used for writing. */
static hl_status make_content(hl_ledger *ledger, const hl_tracer_totals *totals, void *context)
{
    content *made = context;
    hl_rows rows[2];
    size_t count = 0;
    if (made->is_last) {
        hl_cache_clear(&ledger->cache);
        hl_spots_clear(&ledger->spots);
    }
    if (hl_run_given.live)
        rows[count++] = hl_rows_of_ledger(ledger, HL_LIVE);
    if (hl_run_given.peak)
        rows[count++] = hl_rows_of_ledger(ledger, HL_PEAK);
    hl_status status = make_file(rows, count, totals, made);
    if (status != HL_OK && count == 2)
        status = make_file(rows + 1, 1, totals, made);
    made->no_memory = status != HL_OK;
    own_lines_known = made->is_last && speaks() && hl_run_find_lines(&rows[count - 1], &own_lines);
    return HL_OK;
}

/* --- reserved memory --- */

/* A process that has run out of memory, because of ulimit -v or its own setrlimit, needs some memory to write its file.
 * So this much memory is mapped from the start, without being touched. It is released while a file is written. */
enum { RESERVE = 6 << 20, LEAST_SHARE = 32 /* of a limit */ };
static void *reserve;
static size_t reserve_bytes;

static void keep_reserve(void)
{
    size_t share = hl_os_address_limit() / LEAST_SHARE;
    if (reserve != NULL)
        return;
    reserve_bytes = (share < RESERVE ? share : RESERVE) / hl_os_page() * hl_os_page();
    reserve = reserve_bytes != 0 ? hl_os_map(reserve_bytes) : NULL;
}

static void give_up_reserve(void)
{
    void *pages = reserve;
    reserve = NULL; /* first: another thread may fork now, and its child must not unmap what is mapped there later */
    if (pages != NULL)
        hl_os_unmap(pages, reserve_bytes);
}

/* --- writing a file --- */

static atomic_bool writing, left;

bool hl_run_is_writing(void)
{
    return atomic_load(&writing);
}

bool hl_run_has_left(void)
{
    return atomic_load(&left);
}

static hl_status write_file(bool in_signal_handler, bool is_last, const char *name, int *error)
{
    static hl_run_process process; /* used only by the thread that writes; the stack may be too small for it */
    content made = {.process = &process, .is_last = is_last};
    process.arenas_known = process.heap_known = false;
    if (!in_signal_handler)
        hl_run_ask_allocators(&process);
    hl_run_ask_system(&process); /* before the lock is taken, and before the file's memory, which it would count */
    hl_status status = hl_tracer_visit(in_signal_handler, make_content, &made);
    hl_os_free(process.command.bytes);
    *error = ENOMEM;
    if (status == HL_OK && !made.no_memory) {
        *error = hl_save(name, made.file.bytes, made.file.length);
        hl_os_free(made.file.bytes);
    }
    return status;
}

hl_status hl_run_write(bool in_signal_handler, const char *part, char name[PATH_MAX], int *error)
{
    *error = ENAMETOOLONG;
    if (!hl_run_file_name(&hl_run_given, hl_run_owner, part, name))
        return HL_OK;
    while (atomic_exchange(&writing, true)) { /* a signal handler is writing; it ends the process or finishes soon */
        if (in_signal_handler)
            return HL_BUSY;
        (void)usleep(1000);
    }
    give_up_reserve();
    hl_os_use_pages(true); /* no allocator is called while the ledger is held */
    hl_status status = write_file(in_signal_handler, part[0] == '\0', name, error);
    hl_os_use_pages(false);
    keep_reserve();
    atomic_store(&writing, false);
    return status;
}

void hl_run_tell(bool in_signal_handler, hl_status status, int error, const char *name)
{
    bool to_speak = speaks() && !atomic_exchange(&summed_up, true);
    if (status == HL_OK && error != 0) {
        hl_run_say_failure(name, error);
    } else if (status == HL_OK && to_speak) {
        hl_os_use_pages(in_signal_handler);
        hl_run_sum_up(&hl_run_given, name, &own_lines, own_lines_known);
        hl_os_use_pages(false);
    } else if (to_speak) {
        hl_run_say("heapledger: the program has stopped tracing: nothing is written\n", NULL);
    }
}

/* Writes a file. If this process prints the messages, also prints the result. Needs the GIL. */
static bool write_and_tell(const char *part, char name[PATH_MAX])
{
    int error;
    if (getpid() != hl_run_owner)
        return false;
    hl_status status = hl_run_write(false, part, name, &error);
    hl_run_tell(false, status, error, name);
    return status == HL_OK && error == 0;
}

/* --- events --- */

static void leave(void)
{
    char name[PATH_MAX];
    (void)write_and_tell("", name);
}

static PyObject *leave_at_exit(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    leave();
    atomic_store(&left, true);
    Py_RETURN_NONE;
}

/* An exit function of the C library. Usually Python's exit functions have run before. There are two exceptions: C code
 * has called exit(), or the program has cleared the functions of atexit. In the second case the interpreter and the
 * ledger no longer exist. Other threads may still run. */
static void leave_at_c_exit(void)
{
    enum { TRIES = 40, PAUSE = 5000 /* microseconds */ };
    char name[PATH_MAX];
    int error = 0;
    hl_status status = HL_BUSY;
    if (hl_run_has_left() || getpid() != hl_run_owner)
        return;
    if (!Py_IsInitialized()) {
        hl_run_say("heapledger: nothing is written, because the program has cleared the functions of atexit\n", NULL);
        return;
    }
    for (int i = 0; i < TRIES && status == HL_BUSY; i++) {
        status = hl_run_write(true, "", name, &error);
        if (status == HL_BUSY)
            (void)usleep(PAUSE);
    }
    hl_run_tell(true, status == HL_BUSY ? HL_OK : status, status == HL_BUSY ? EBUSY : error, name);
}

/* Python runs the newest exit function first. Ours is the oldest, so it runs last. The module atexit does not stay
 * imported. */
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
    hl_run_remember(object != NULL && PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : NULL);
    PyErr_Clear();
}

static void imports_work(void)
{
    hl_own_work outer;
    hl_tracer_begin_own_work(&outer);
    remember_executable();
    register_exit();
    hl_tracer_end_own_work(&outer);
    (void)atexit(leave_at_c_exit);
    hl_run_catch_signals();
}

/* os.execvp tries one folder after the other. A file is worth writing only if the program exists there. The process
 * keeps its number, and the new program writes a file too. So this file gets a name of its own. */
static void write_before_exec(const char *path)
{
    char part[32], name[PATH_MAX];
    replacing_name[0] = '\0';
    if (getpid() != hl_run_owner || (path != NULL && access(path, X_OK) != 0))
        return;
    for (int number = 1; number < 1000; number++) {
        snprintf(part, sizeof part, "-exec%d", number);
        if (!hl_run_file_name(&hl_run_given, hl_run_owner, part, name) || access(name, F_OK) != 0)
            break;
    }
    if (write_and_tell(part, name))
        strcpy(replacing_name, name);
}

static void forget_exec(void)
{
    if (replacing_name[0] != '\0')
        (void)unlink(replacing_name);
    replacing_name[0] = '\0';
    atomic_store(&summed_up, false);
}

static atomic_bool forking;

static void before_fork(void)
{
    atomic_store(&forking, true);
}

static void after_fork_in_parent(void)
{
    atomic_store(&forking, false);
}

bool hl_run_is_newborn(void)
{
    return atomic_load(&forking) && getpid() != hl_run_owner;
}

static void after_fork_in_child(void)
{
    atomic_store(&writing, false);
    atomic_store(&left, false);
    atomic_store(&summed_up, false);
    hl_run_owner = hl_run_given.alone ? 0 : getpid(); /* signals were postponed until now */
    if (hl_run_owner != 0)
        hl_run_forked_signals();
    atomic_store(&forking, false);
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
        hl_run_given.frames = (uint32_t)strtoul(value, NULL, 10);
    else if (strcmp(word, "numbers") == 0)
        hl_run_given.numbers = true;
    else if (strcmp(word, "root") == 0)
        hl_run_given.root = (pid_t)strtol(value, NULL, 10);
    else if (strcmp(word, "id") == 0 && strlen(value) < sizeof hl_run_given.id)
        strcpy(hl_run_given.id, value);
    else if (strcmp(word, "every") == 0)
        hl_run_given.every = (uint32_t)strtoul(value, NULL, 10);
    else if (strcmp(word, "signal") == 0)
        hl_run_given.signal = (int)strtol(value, NULL, 10);
    else if (strcmp(word, "moments") == 0) {
        hl_run_given.live = strchr(value, 'l') != NULL;
        hl_run_given.peak = strchr(value, 'p') != NULL;
    } else if (strcmp(word, "quiet") == 0)
        hl_run_given.quiet = true;
    else if (strcmp(word, "alone") == 0)
        hl_run_given.alone = true;
}

/* Returns false if the variable was not set by our command. */
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
    if (strlen(text) >= sizeof hl_run_given.file)
        return false;
    strcpy(hl_run_given.file, text);
    return hl_run_given.file[0] == '/' && hl_run_given.frames >= 1 && hl_run_given.frames <= HL_MOST_FRAMES &&
           (hl_run_given.live || hl_run_given.peak);
}

/* Restores the environment as it was before the command. The command has put the library at the front of the list. */
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
    static const hl_lifecycle_events events = {
        hl_tracer_adopt, imports_work, leave, write_before_exec, forget_exec, hl_run_handler_set, hl_run_catch_again};
    const char *text = getenv(HL_RUN_VARIABLE);
    if (text == NULL || !read_options(text))
        return;
    if (hl_run_given.alone)
        leave_environment();
    hl_run_remember(NULL);
    if (hl_tracer_start_before_main(
            (hl_tracer_options){.nframe = hl_run_given.frames, .numbers = hl_run_given.numbers}) != HL_OK)
        return;
    hl_run_owner = getpid();
    keep_reserve();
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    hl_lifecycle_watch(&events);
}
