/* privileged.c: for test_preload.py, compiled twice: a program that the preloaded library takes for our interpreter,
 * and with -DLEDGER="..." a library that stands in for the extension module and says so when it is asked to begin.
 *
 * The dynamic linker preloads nothing into a program with more rights than its caller; so the program loads the library
 * itself, by the path in its first argument, to see what the library does there. It says whether it has such rights.
 *
 * Threading: one thread.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/auxv.h>

#ifdef LEDGER
void hl_run_begin(void);
void hl_run_begin(void)
{
    puts(LEDGER);
}
#else
const unsigned long Py_Version = VERSION;
const char *Py_GetVersion(void);
const char *Py_GetVersion(void)
{
    return "3.x";
}

int main(int count, char **words)
{
    void *library = count == 2 ? dlopen(words[1], RTLD_NOW) : NULL;
    if (library == NULL)
        puts(count == 2 ? dlerror() : "usage");
    printf("secure %lu\n", getauxval(AT_SECURE));
    return library == NULL;
}
#endif
