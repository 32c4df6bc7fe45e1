/* preload.c: the library that `heapledger run` makes the dynamic linker load into every process of the program.
 *
 * It is separate from the other folders and uses none of them. It knows two names: the file of the extension module,
 * and the function that starts tracing. In a process whose interpreter is the one that this package was built for, it
 * loads the extension module from its own folder, by its full path, and starts tracing before main(). A later import
 * finds the module loaded, with its tracer running. In any other process (another version, another build, no Python
 * at all, a program with more rights than its caller) it does nothing.
 *
 * Threading: the constructor runs before main(), when there is one thread.
 */

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Symbols of the interpreter are looked up by name, because this library must load where they do not exist. */
static bool is_our_interpreter(void)
{
    const unsigned long *version = dlsym(RTLD_DEFAULT, "Py_Version"); /* does not exist before 3.11 */
    if (version == NULL || *version >> 16 != HL_PYTHON_VERSION)
        return false;
    /* Builds with a different internal layout: without the GIL, or with checks for debugging. */
    const char *(*describe)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "Py_GetVersion");
    return describe != NULL && strstr(describe(), "free-threading") == NULL &&
           dlsym(RTLD_DEFAULT, "_Py_NegativeRefcount") == NULL;
}

static __attribute__((constructor)) void begin(void)
{
    Dl_info here;
    char path[PATH_MAX];

    if (secure_getenv(HL_RUN_VARIABLE) == NULL || !is_our_interpreter() || dladdr((void *)begin, &here) == 0)
        return;
    const char *slash = strrchr(here.dli_fname, '/');
    if (here.dli_fname[0] != '/' || slash == NULL)
        return;
    size_t folder = (size_t)(slash - here.dli_fname) + 1;
    if (folder + sizeof HL_LEDGER_FILE > sizeof path)
        return;
    memcpy(path, here.dli_fname, folder);
    memcpy(path + folder, HL_LEDGER_FILE, sizeof HL_LEDGER_FILE);
    void *ledger = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void (*start)(void) = ledger != NULL ? (void (*)(void))dlsym(ledger, "hl_run_begin") : NULL;
    if (start != NULL)
        start();
    else
        (void)dlerror(); /* clear the error, so that nobody else sees it */
}
