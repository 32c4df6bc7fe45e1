/* own_code.c: see own_code.h. */

#include "own_code.h"

#include <string.h>

#include "hooks.h"

/* The folders of copies of the package. We never remove one, because its code may stay. */
typedef struct folder {
    struct folder *next;
    size_t length;
    char path[];
} folder;

static folder *folders; /* under the ledger's lock */

static bool is_known(const char *path, size_t length)
{
    for (const folder *one = folders; one != NULL; one = one->next)
        if (one->length == length && memcmp(one->path, path, length) == 0)
            return true;
    return false;
}

hl_status hl_own_code_add_folder(const char *path, size_t length)
{
    folder *fresh = hl_os_alloc(1, sizeof *fresh + length);
    if (fresh == NULL)
        return HL_NO_MEMORY;
    fresh->length = length;
    memcpy(fresh->path, path, length);
    hl_hooks_lock();
    bool known = is_known(path, length);
    if (!known) {
        fresh->next = folders;
        folders = fresh;
    }
    hl_hooks_unlock();
    if (known)
        hl_os_free(fresh);
    return HL_OK;
}

static bool calls_the_program(const char *name, size_t length)
{
    static const char calls[] = "_calls.py";
    return length == sizeof calls - 1 && memcmp(name, calls, length) == 0;
}

bool hl_own_code_is(const PyCodeObject *code, const hl_string *file)
{
    if ((code->co_flags & CO_NEWLOCALS) == 0) /* the body of a module or class */
        return false;
    for (const folder *one = folders; one != NULL; one = one->next)
        if (file->length > one->length && memcmp(file->bytes, one->path, one->length) == 0)
            return !calls_the_program(file->bytes + one->length, file->length - one->length);
    return false;
}
