/* state_place.c: see state_place.h. */

#include "state_place.h"

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>

__thread PyThreadState *const *hl_state_place;

/* A thread-local variable as the dynamic linker knows it: the argument of __tls_get_addr in the systems' ABIs. */
typedef struct {
    unsigned long module;
    unsigned long offset;
} variable;

extern void *__tls_get_addr(variable *which); /* as in the ABI; no header declares it */

static variable found;
static _Atomic bool is_found; /* and then `found` does not change any more */

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

static int search(struct dl_phdr_info *object, size_t size, void *state)
{
    (void)size;
    if (!has_interpreter(object))
        return 0;
    void *const *words = object->dlpi_tls_data;
    size_t count = thread_local_bytes(object) / sizeof *words, matches = 0;
    for (size_t i = 0; i < count; i++) {
        if (words[i] == state) {
            found = (variable){.module = object->dlpi_tls_modid, .offset = i * sizeof *words};
            matches++;
        }
    }
    atomic_store_explicit(&is_found, matches == 1, memory_order_release);
    return 1;
}

void hl_state_find_place(void)
{
    if (!atomic_load_explicit(&is_found, memory_order_acquire))
        dl_iterate_phdr(search, PyThreadState_Get());
}

PyThreadState *hl_state_ask(void)
{
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
