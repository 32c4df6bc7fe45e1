/* interposer.c: a preloaded malloc that allocates Python memory, as memory debuggers and profilers do that keep their
 * records in Python objects. test_companions.py compiles and preloads it.
 *
 * While it is switched on, each call of the C library's allocator by the switching thread first takes and gives back a
 * block of the raw allocator.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void __libc_free(void *block);

static __thread bool on, inside;
static __thread long calls;

void interposer_switch(bool value);
long interposer_calls(void);

void interposer_switch(bool value)
{
    on = value;
}

long interposer_calls(void)
{
    return calls;
}

static void take_python_memory(void)
{
    static void *(*take)(size_t);
    static void (*give)(void *);
    if (!on || inside)
        return;
    inside = true;
    if (take == NULL) {
        take = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "PyMem_RawMalloc");
        give = (void (*)(void *))dlsym(RTLD_DEFAULT, "PyMem_RawFree");
    }
    calls++;
    give(take(40));
    inside = false;
}

void *malloc(size_t size)
{
    take_python_memory();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    take_python_memory();
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
    take_python_memory();
    return __libc_realloc(block, size);
}

void free(void *block)
{
    take_python_memory();
    __libc_free(block);
}
