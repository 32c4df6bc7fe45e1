/* lifecycle.h: reports when the interpreter starts and how it ends, from before main() on.
 *
 * The table of built-in modules (PyImport_Inittab) may be changed until the interpreter starts. Every interpreter
 * creates two modules from it. We replace the functions that create them with our own, which call the originals:
 *
 *     posix     is created when the first thread state is attached and objects can be created
 *     _signal   is created when modules can be imported, before `site` and the program. After its creation, the
 *               interpreter has looked which signals have handlers
 *
 * The functions os._exit, os.execv, os.execve, os.kill, signal.signal and signal.raise_signal are watched in the method
 * tables of their modules. So programs see the same function objects as before. Only calls from Python are seen, and
 * these hold the GIL.
 *
 * Threading: call hl_lifecycle_watch before main(). Events come with the GIL of the main interpreter. Events about the
 * end of the process come with the GIL of any interpreter.
 */
#ifndef HL_LIFECYCLE_H
#define HL_LIFECYCLE_H

#include <stdbool.h>

typedef struct {
    void (*attached)(void); /* posix is about to be created */
    void (*imports)(void);  /* _signal has been created */
    void (*leaving)(void);  /* os._exit is about to end the process */
    /* os.execv or os.execve is about to replace the program with `path`. NULL: the new program has no path. */
    void (*replacing)(const char *path);
    void (*not_replaced)(void);      /* the replacement failed; the Python exception is set */
    void (*handler_set)(int signal); /* signal.signal has set what this signal does */
    void (*sending)(int signal);     /* os.kill or signal.raise_signal is about to send it, to any process */
} hl_lifecycle_events;

void hl_lifecycle_watch(const hl_lifecycle_events *events);

#endif
