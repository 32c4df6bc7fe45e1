/* this_thread.c: see this_thread.h. Where the interpreter keeps the current thread state.
 *
 * From 3.12 on, no header says where the variable is in the interpreter's thread-local memory. We find it by its value:
 * it is the word in that memory that holds the state of the searching thread. From 3.15 on, another variable usually
 * has the same value, but keeps it when the thread releases the GIL. So if several words match, the thread releases the
 * GIL for a moment. If this does not leave exactly one word, we ask the interpreter each time.
 */

#include "this_thread.h"

#if PY_VERSION_HEX >= 0x030c0000
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#else
#define Py_BUILD_CORE 1
#include <internal/pycore_pystate.h>
#endif

PyThreadState *const hl_this_thread_nobody;
__thread hl_this_thread_data hl_this_thread = {.look_at = &hl_this_thread_nobody};

#if PY_VERSION_HEX >= 0x030c0000

/* A thread-local variable as the dynamic linker knows it: the argument of __tls_get_addr in the systems' ABIs. */
typedef struct {
    unsigned long module;
    unsigned long offset;
} variable;

extern void *__tls_get_addr(variable *which); /* the ABI defines it; no header declares it */

static variable found;
static _Atomic bool is_found; /* if true, `found` does not change any more */

/* Variables that may be the right one. */
enum { MOST_CANDIDATES = 8 };
typedef struct {
    const void *state; /* the value that they hold */
    size_t count;
    variable which[MOST_CANDIDATES];
} candidates;

static bool has_interpreter(const struct dl_phdr_info *object)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD &&
            (uintptr_t)&PyThreadState_Get - (object->dlpi_addr + segment->p_vaddr) < segment->p_memsz)
            return true;
    }
    return false;
}

static size_t thread_local_bytes(const struct dl_phdr_info *object)
{
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_TLS)
            return object->dlpi_tls_data == NULL ? 0 : object->dlpi_phdr[i].p_memsz;
    return 0;
}

static int search(struct dl_phdr_info *object, size_t size, void *context)
{
    candidates *some = context;
    (void)size;
    if (!has_interpreter(object))
        return 0;
    void *const *words = object->dlpi_tls_data;
    size_t count = thread_local_bytes(object) / sizeof *words;
    for (size_t i = 0; i < count && some->count < MOST_CANDIDATES; i++)
        if (words[i] == some->state)
            some->which[some->count++] = (variable){.module = object->dlpi_tls_modid, .offset = i * sizeof *words};
    return 1;
}

/* Keep the variables that are NULL while the thread has no GIL. */
static void tell_apart(candidates *some)
{
    size_t kept = 0;
    PyThreadState *thread = PyEval_SaveThread();
    for (size_t i = 0; i < some->count; i++)
        if (*(void **)__tls_get_addr(&some->which[i]) == NULL)
            some->which[kept++] = some->which[i];
    PyEval_RestoreThread(thread);
    some->count = kept;
}

void hl_this_thread_prepare(void)
{
    if (atomic_load_explicit(&is_found, memory_order_acquire))
        return;
    candidates some = {.state = PyThreadState_Get()};
    dl_iterate_phdr(search, &some);
    if (some.count > 1)
        tell_apart(&some);
    if (some.count != 1)
        return;
    found = some.which[0];
    atomic_store_explicit(&is_found, true, memory_order_release);
}

static PyThreadState *const *find_place(void)
{
    if (!atomic_load_explicit(&is_found, memory_order_acquire))
        return NULL;
    variable which = found;
    return __tls_get_addr(&which);
}

static PyThreadState *ask(void)
{
#if PY_VERSION_HEX >= 0x030d0000
    return PyThreadState_GetUnchecked();
#else
    return _PyThreadState_UncheckedGet();
#endif
}

#else

void hl_this_thread_prepare(void)
{
}

static PyThreadState *const *find_place(void)
{
    return (PyThreadState *const *)(const void *)&_PyRuntime.gilstate.tstate_current;
}

static PyThreadState *ask(void)
{
    return _PyThreadState_GET();
}

#endif

PyThreadState *hl_this_thread_state(void)
{
    if (hl_this_thread.place == NULL)
        hl_this_thread.place = find_place();
    if (hl_this_thread.place == NULL)
        return ask();
    if (hl_this_thread.own_frame == NULL)
        hl_this_thread.look_at = hl_this_thread.place;
    return *hl_this_thread.place;
}
