/* membarrier.c: preloaded below valgrind, which does not know membarrier(2).
 *
 * Without that call the ledger's gate stays closed (src/core/gate.h) and callgrind would count the path of the lock,
 * which hardly anybody takes. Valgrind runs one thread at a time, so a barrier between threads is there already.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/syscall.h>

long syscall(long number, ...)
{
    static long (*real)(long, ...);
    long arguments[6];
    va_list list;
    if (number == SYS_membarrier)
        return 0;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        arguments[i] = va_arg(list, long);
    va_end(list);
    if (real == 0)
        real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}
