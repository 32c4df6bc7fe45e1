/* interpose.c: see interpose.h.
 *
 * Another thread may be in dlopen or dlclose. Objects are listed as soon as they are mapped, before the dynamic linker
 * has filled their slots. If we wrote to a slot at that time, the linker would overwrite our value or, worse, use it as
 * an offset. So we first open the object by name. dlopen waits until the thread that loads the object is done, and our
 * reference keeps the object loaded while we write.
 *
 * We hold no lock of ours while we call the dynamic linker. It may be running constructors that wait for us.
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
static _Atomic bool requested, busy; /* about a sweep */
static _Atomic bool from_the_first;  /* the next sweep looks at all objects */

/* The progress of the sweep. Only the thread that set `busy` uses it. Objects are listed in the order of loading. So
 * the objects seen before are the first ones of the list, unless one was unloaded in the meantime. */
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

/* Some C libraries add the base to the addresses in the dynamic section and some do not. This handles both. */
static const void *rebased(const object *o, uintptr_t address)
{
    return (const void *)(address < o->base ? address + o->base : address);
}

/* Returns false if the object contains nothing that we can read. */
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
    if (relative <= o->tables[1].count) { /* these come first, are most of the table, and name no symbol */
        o->tables[1].first += relative;
        o->tables[1].count -= relative;
    }
    return o->symbols != NULL && o->strings != NULL;
}

static void *watched_dlopen(const char *file, int mode);

/* What a slot for `symbol` should hold. Returns NULL if the slot should stay as it is. */
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

/* Returns the next slot that should hold something else, or NULL at the end. `*table` and `*at` say where to
 * continue. */
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

/* What the interpreter called as dlopen before: the C library's function, or one that another tool had put there. */
typedef void *(*dlopen_function)(const char *file, int mode);
static _Atomic(dlopen_function) next_dlopen = dlopen;

/* May we take the interpreter's slot for dlopen? Not if another tool has replaced our function with its own. The tool's
 * function may call ours, so ours must not call it. A slot that is not bound yet points into its own object. */
static bool take_dlopen(const struct dl_phdr_info *info, void *const *slot)
{
    static bool taken; /* used only by the thread that set `busy` */
    bool bound = !contains(info, *slot);
    dlopen_function now = (dlopen_function)*slot;
    if (taken && bound && now != atomic_load(&next_dlopen))
        return false;
    if (!taken && bound)
        atomic_store(&next_dlopen, now);
    taken = true;
    return true;
}

/* Some pages are read-only after the dynamic linker's work. This makes them read-only again after the write. */
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
    char name[PATH_MAX]; /* empty for the executable */
    uintptr_t base;
    bool found;
    size_t index; /* of the object that the search has reached */
} candidate;

/* A callback for dl_iterate_phdr. Stops at the next object that has something to replace. */
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

/* A callback for dl_iterate_phdr. Replaces the slots of one object. */
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
        (void)dlerror(); /* unloaded in the meantime; clear the error, which is not for the program */
        return;
    }
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_addr == c->base)
        (void)dl_iterate_phdr(replace_in_object, (void *)&c->base);
    (void)dlclose(handle);
}

static void sweep(void)
{
    static candidate next; /* too large for a thread's stack; used only by the thread that set `busy` */
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

/* If another thread is sweeping, this leaves a request and does not wait. Waiting could take forever (see above). */
static void sweep_or_request(void)
{
    atomic_store(&requested, true);
    while (atomic_load(&requested) && !atomic_exchange(&busy, true)) {
        atomic_store(&requested, false);
        sweep();
        atomic_store(&busy, false);
    }
}

/* Replaces the interpreter's dlopen. If a name has no slash or contains $ORIGIN, the C library searches on behalf of
 * the calling object. An import gives a path. In the other cases (for example a ctypes that is linked in) the call must
 * come from the interpreter. So the call is the last statement here, which compilers turn into a jump. The next sweep
 * finds those objects. */
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
    atomic_store(&from_the_first, true); /* that sweep may be incomplete */
}

#endif
