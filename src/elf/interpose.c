/* interpose.c: see interpose.h.
 *
 * Another thread may be in dlopen or dlclose. Objects are listed as soon as they are mapped, before the dynamic linker
 * has filled their slots: writing there then would be undone or, worse, taken for an offset. So an object of interest
 * is first asked for by name: dlopen waits until whoever loads it is done, and our reference keeps it while we write.
 *
 * No lock of ours is held around calls of the dynamic linker: it may be running constructors that wait for us.
 */

#include "interpose.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__) && defined(__LP64__)
enum { CALL_SLOT = R_X86_64_JUMP_SLOT, ADDRESS_SLOT = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__) && defined(__LP64__)
enum { CALL_SLOT = R_AARCH64_JUMP_SLOT, ADDRESS_SLOT = R_AARCH64_GLOB_DAT };
#else
#define HL_INTERPOSE_UNKNOWN 1
#endif

#ifdef HL_INTERPOSE_UNKNOWN

void hl_interpose(const hl_interposition *interposition, bool again)
{
    (void)interposition, (void)again;
}

void hl_interpose_forked(void)
{
}

#else

static const hl_interposition *given;
static _Atomic bool requested, busy; /* a sweep */
static _Atomic bool from_the_first;  /* the next sweep looks at all objects */

/* The sweep's progress; by whoever is `busy`. Objects are listed in the order of loading, so those seen before are the
 * first of the list, unless one was unloaded meanwhile. */
static size_t seen;
static unsigned long long unloaded;

/* --- one object --- */

typedef struct {
    uintptr_t base;
    const Elf64_Sym *symbols;
    const char *strings;
    struct {
        const Elf64_Rela *first;
        size_t count;
    } tables[2];
} object;

static bool contains(const struct dl_phdr_info *info, const void *address)
{
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const Elf64_Phdr *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && (uintptr_t)address - info->dlpi_addr - segment->p_vaddr < segment->p_memsz)
            return true;
    }
    return false;
}

/* The C library has added the base to the addresses in the dynamic section, or not: both are met. */
static const void *rebased(const object *o, uintptr_t address)
{
    return (const void *)(address < o->base ? address + o->base : address);
}

/* False when the object has nothing that we know how to read. */
static bool read_object(const struct dl_phdr_info *info, object *o)
{
    const Elf64_Dyn *entry = NULL;
    *o = (object){.base = info->dlpi_addr};
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const Elf64_Dyn *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
    if (entry == NULL)
        return false;
    size_t bytes[2] = {0}, relative = 0;
    for (; entry->d_tag != DT_NULL; entry++) {
        uintptr_t value = entry->d_un.d_ptr;
        switch (entry->d_tag) {
        case DT_SYMTAB:
            o->symbols = rebased(o, value);
            break;
        case DT_STRTAB:
            o->strings = rebased(o, value);
            break;
        case DT_JMPREL:
            o->tables[0].first = rebased(o, value);
            break;
        case DT_PLTRELSZ:
            bytes[0] = value;
            break;
        case DT_RELA:
            o->tables[1].first = rebased(o, value);
            break;
        case DT_RELASZ:
            bytes[1] = value;
            break;
        case DT_RELACOUNT:
            relative = value;
            break;
        case DT_PLTREL:
            if (value != DT_RELA)
                return false;
            break;
        }
    }
    for (int i = 0; i < 2; i++) {
        if (o->tables[i].first != NULL)
            o->tables[i].count = bytes[i] / sizeof(Elf64_Rela);
    }
    if (relative <= o->tables[1].count) { /* these come first and name no symbol: most of the table */
        o->tables[1].first += relative;
        o->tables[1].count -= relative;
    }
    return o->symbols != NULL && o->strings != NULL;
}

static void *watched_dlopen(const char *file, int mode);

/* What a slot for `symbol` should hold; NULL: leave it. */
static void *replacement(const char *symbol, bool interpreter)
{
    if (interpreter)
        return strcmp(symbol, "dlopen") == 0 ? (void *)watched_dlopen : NULL;
    for (const hl_replacement *r = given->replacements; r->symbol != NULL; r++) {
        if (strcmp(symbol, r->symbol) == 0)
            return r->function;
    }
    return NULL;
}

/* The next slot that should hold something else; `*table` and `*at` say where to go on. NULL at the end. */
static void **next_slot(const object *o, bool interpreter, int *table, size_t *at, void **function)
{
    for (; *table < 2; (*table)++, *at = 0) {
        while (*at < o->tables[*table].count) {
            const Elf64_Rela *relocation = &o->tables[*table].first[(*at)++];
            uint32_t type = ELF64_R_TYPE(relocation->r_info);
            if (type != CALL_SLOT && type != ADDRESS_SLOT)
                continue;
            *function = replacement(o->strings + o->symbols[ELF64_R_SYM(relocation->r_info)].st_name, interpreter);
            void **slot = (void **)(o->base + relocation->r_offset);
            if (*function != NULL && *slot != *function)
                return slot;
        }
    }
    return NULL;
}

/* --- writing --- */

/* What the interpreter called as dlopen before: the C library's, or what another tool had put there. */
typedef void *(*dlopen_function)(const char *file, int mode);
static _Atomic(dlopen_function) next_dlopen = dlopen;

/* May we take the interpreter's slot for dlopen? Once a tool has put its own over ours, no: it may lead to ours, and
 * ours must not lead to it. A slot that is not bound yet leads back into its own object. */
static bool take_dlopen(const struct dl_phdr_info *info, void *const *slot)
{
    static bool taken; /* by whoever is `busy` */
    bool bound = !contains(info, *slot);
    dlopen_function now = (dlopen_function)*slot;
    if (taken && bound && now != atomic_load(&next_dlopen))
        return false;
    if (!taken && bound)
        atomic_store(&next_dlopen, now);
    taken = true;
    return true;
}

/* Pages that were read-only after the dynamic linker's work are so again afterwards. */
static void write_slot(const struct dl_phdr_info *info, void **slot, void *function)
{
    uintptr_t page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t page = (uintptr_t)slot & -page_size;
    bool sealed = false;
    if (function == (void *)watched_dlopen && !take_dlopen(info, slot))
        return;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const Elf64_Phdr *segment = &info->dlpi_phdr[i];
        uintptr_t start = (info->dlpi_addr + segment->p_vaddr) & -page_size;
        uintptr_t end = (info->dlpi_addr + segment->p_vaddr + segment->p_memsz) & -page_size;
        if (segment->p_type == PT_GNU_RELRO && page >= start && page < end)
            sealed = true;
    }
    if (sealed && mprotect((void *)page, page_size, PROT_READ | PROT_WRITE) != 0)
        return;
    __atomic_store_n(slot, function, __ATOMIC_RELEASE);
    if (sealed)
        (void)mprotect((void *)page, page_size, PROT_READ);
}

/* --- the sweep --- */

typedef struct {
    char name[PATH_MAX]; /* empty: the executable */
    uintptr_t base;
    bool found;
    size_t index; /* of the object that the search has come to */
} candidate;

/* dl_iterate_phdr's callback that stops at the next object with something to replace. */
static int find_candidate(struct dl_phdr_info *info, size_t size, void *context)
{
    candidate *c = context;
    if (size < offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
        return 1;
    if (info->dlpi_subs != unloaded) {
        unloaded = info->dlpi_subs;
        seen = 0;
    }
    if (c->index++ < seen)
        return 0;
    seen++;
    object o;
    if (contains(info, (const void *)hl_interpose) || !read_object(info, &o))
        return 0;
    int table = 0;
    size_t at = 0;
    void *function;
    if (next_slot(&o, contains(info, given->interpreter), &table, &at, &function) == NULL ||
        strlen(info->dlpi_name) >= sizeof c->name)
        return 0;
    strcpy(c->name, info->dlpi_name);
    c->base = info->dlpi_addr;
    c->found = true;
    return 1;
}

/* dl_iterate_phdr's callback that does the work on one object. */
static int replace_in_object(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    object o;
    if (info->dlpi_addr != *(const uintptr_t *)context || !read_object(info, &o))
        return 0;
    int table = 0;
    size_t at = 0;
    void **slot, *function;
    bool interpreter = contains(info, given->interpreter);
    while ((slot = next_slot(&o, interpreter, &table, &at, &function)) != NULL)
        write_slot(info, slot, function);
    return 1;
}

static void replace_in(const candidate *c)
{
    void *handle = dlopen(c->name[0] != '\0' ? c->name : NULL, RTLD_LAZY | RTLD_NOLOAD);
    struct link_map *map;
    if (handle == NULL) {
        (void)dlerror(); /* unloaded meanwhile; nobody else is to hear of it */
        return;
    }
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_addr == c->base)
        (void)dl_iterate_phdr(replace_in_object, (void *)&c->base);
    (void)dlclose(handle);
}

static void sweep(void)
{
    static candidate next; /* too large for a thread's stack; by whoever is `busy` */
    if (atomic_exchange(&from_the_first, false))
        seen = 0;
    for (;;) {
        next.found = false;
        next.index = 0;
        (void)dl_iterate_phdr(find_candidate, &next);
        if (!next.found)
            return;
        replace_in(&next);
    }
}

/* Who comes while another thread sweeps leaves a request: waiting could be for ever (see above). */
static void sweep_or_request(void)
{
    atomic_store(&requested, true);
    while (atomic_load(&requested) && !atomic_exchange(&busy, true)) {
        atomic_store(&requested, false);
        sweep();
        atomic_store(&busy, false);
    }
}

/* In place of the interpreter's dlopen. The C library looks for a name without a slash, and for $ORIGIN in a name, on
 * behalf of the object that calls it. An import gives a path; for others (a ctypes that is linked in) the call must be
 * the interpreter's, so it is the last thing done here, which compilers turn into a jump; the next sweep will do. */
static void *watched_dlopen(const char *file, int mode)
{
    dlopen_function real = atomic_load(&next_dlopen);
    if (file == NULL || strchr(file, '/') == NULL || strchr(file, '$') != NULL)
        return real(file, mode);
    void *handle = real(file, mode);
    if (handle != NULL && atomic_load(given->active)) {
        int error = errno;
        sweep_or_request();
        errno = error;
    }
    return handle;
}

void hl_interpose(const hl_interposition *interposition, bool again)
{
    given = interposition;
    if (again)
        atomic_store(&from_the_first, true);
    sweep_or_request();
}

void hl_interpose_forked(void)
{
    atomic_store(&busy, false);
    atomic_store(&from_the_first, true); /* that sweep may not have got far */
}

#endif
