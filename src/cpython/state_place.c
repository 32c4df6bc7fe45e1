/* state_place.c: see state_place.h. */

#include "state_place.h"

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>

static PyThreadState *const nobody;
__thread PyThreadState *const *hl_state_place = &nobody;

/* A thread-local variable as the dynamic linker knows it: the argument of __tls_get_addr in the systems' ABIs. */
typedef struct {
    unsigned long module;
    unsigned long offset;
} variable;

extern void *__tls_get_addr(variable *which); /* as in the ABI; no header declares it */

static variable found;
static _Atomic bool is_found; /* and then `found` does not change any more */

/* Variables that may be the one. */
enum { MOST_CANDIDATES = 8 };
typedef struct {
    const void *state; /* what it holds */
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

/* Keep those that are empty while the thread has no GIL. */
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

void hl_state_find_place(void)
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

PyThreadState *hl_state_ask(void)
{
    if (hl_state_place != &nobody)
        return NULL; /* the thread has no GIL */
    if (atomic_load_explicit(&is_found, memory_order_acquire)) {
        variable which = found;
        hl_state_place = __tls_get_addr(&which);
        return *hl_state_place;
    }
#if PY_VERSION_HEX >= 0x030d0000
    return PyThreadState_GetUnchecked();
#else
    return _PyThreadState_UncheckedGet();
#endif
}
