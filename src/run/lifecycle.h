/* lifecycle.h: hear of the interpreter's start and of the ways out of it, from before main() on.
 *
 * The table of built-in modules (PyImport_Inittab) may be changed until the interpreter starts. We put functions of
 * ours before those that make two modules which every interpreter makes:
 *
 *     posix     is made when the first thread state is attached and objects can be made
 *     _signal   is made when modules can be imported, before `site` and the program. When it is there, the interpreter
 *               has looked which signals have handlers
 *
 * The functions os._exit, os.execv, os.execve, os.kill, signal.signal and signal.raise_signal are watched in their
 * modules' own tables of methods, so what a program sees of them stays the same, and only what is called from Python
 * comes by, with the GIL.
 *
 * Threading: hl_lifecycle_watch before main(); events come with the GIL of the main interpreter, or of any for the ways
 * out.
 */
#ifndef HL_LIFECYCLE_H
#define HL_LIFECYCLE_H

#include <stdbool.h>

typedef struct {
    void (*attached)(void); /* posix is about to be made */
    void (*imports)(void);  /* _signal has been made */
    void (*leaving)(void);  /* os._exit is about to end the process */
    /* os.execv or os.execve is about to replace the program by `path` (NULL: by something that has no path). */
    void (*replacing)(const char *path);
    void (*not_replaced)(void);      /* it has failed; Python's exception is set */
    void (*handler_set)(int signal); /* signal.signal has set what happens on it */
    void (*sending)(int signal);     /* os.kill or signal.raise_signal is about to send it, to whomever */
} hl_lifecycle_events;

void hl_lifecycle_watch(const hl_lifecycle_events *events);

#endif
