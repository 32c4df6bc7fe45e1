/* run.h: what a process of `heapledger run` does by itself: trace from before main(), and write its files.
 *
 * HEAPLEDGER_RUN holds the options, separated by commas, `file` the last of them (its value may have commas):
 *
 *     frames=25       frames of a traceback
 *     numbers         numbers get their own lines, too
 *     root=1234       the process that the command became; it alone says at the end what was written
 *     id=0123abcd     a name for the run that no other run has
 *     moments=lp      which snapshots are written: l live, p peak
 *     every=500       write a file every so many milliseconds
 *     signal=12       write a file on this signal
 *     quiet, alone    say nothing at the end; children are not followed
 *     file=/a/b-%p.hlsnap    where to: %p is the process, %% is %
 *
 * Nothing of this needs Python code of ours: no module is imported, and no object of ours is to be seen but a function
 * among those of atexit.
 *
 * Threading: hl_run_begin before main(). Files are written with the GIL or in signal handlers, by one thread at a time.
 */
#ifndef HL_RUN_H
#define HL_RUN_H

#include <limits.h>
#include <sys/types.h>

#include "../core/hlsnap_bytes.h"
#include "../core/rows.h"
#include "../cpython/tracer.h"
#include "process_memory.h"

typedef struct {
    uint32_t frames;
    bool numbers;
    pid_t root;
    char id[33];
    uint32_t every; /* 0: never */
    int signal;     /* 0: none */
    bool live, peak, quiet, alone;
    char file[PATH_MAX];
} hl_run_options;

/* The one function that the preloaded library knows. */
__attribute__((visibility("default"))) void hl_run_begin(void);

extern hl_run_options hl_run_given;
/* The process that writes files: this one, unless it was forked off and children are not followed (then 0). */
extern pid_t hl_run_owner;

/* Write what there is under the name with `part` in it, which goes to `name`. Async-signal-safe if `in_signal_handler`.
 * HL_OK: *error is 0, or the errno that the file could not be written for. HL_STOPPED: there is nothing to write.
 * HL_BUSY: a signal handler should come again later; until hl_run_is_writing says no, if it does not. */
hl_status hl_run_write(bool in_signal_handler, const char *part, char name[PATH_MAX], int *error) HL_MUST_USE;

/* The last file has been written, and the interpreter is on its way out: what is alive from now on is of no
 * interest. */
bool hl_run_has_left(void);
/* This is the child of a fork that does not know it yet: fork() itself has not returned. */
bool hl_run_is_newborn(void);
/* Somebody is writing a file: another thread, or the code that a signal handler has interrupted. */
bool hl_run_is_writing(void);

/* Say what came of it: that a file could not be written, or, once and in the first process, where the files are. */
void hl_run_tell(bool in_signal_handler, hl_status status, int error, const char *name);

/* --- run_signals.c --- */

/* Catch the signals that end a process by default, as long as they would, and those that ask for a file; set the timer.
 * Once the interpreter has looked which signals have handlers: those that it sets later replace ours. */
void hl_run_catch_signals(void);
/* Python has set what happens on a signal: where that is the default, ours is put back. */
void hl_run_handler_set(int signal);
/* A signal is about to be sent: the same for what somebody else, in C, has set to the default. */
void hl_run_catch_again(int signal);
/* In a child of fork, which inherits no timers. */
void hl_run_forked_signals(void);

/* --- run_process.c --- */

/* What is found out about the process when a file is written: process_at_dump in docs/format.md, and more. */
typedef struct {
    hl_hlsnap_buffer command; /* its words, each with a zero behind it; scratch memory */
    bool rss_known;
    uint64_t rss;
    int64_t time;
    bool arenas_known, heap_known;
    uint64_t arenas;
    hl_process_heap heap;
    char pages[4096]; /* as the system has it; empty: it does not tell */
} hl_run_process;

/* Ask the allocators. They have locks and streams of their own: with the GIL, and not in a signal handler. */
void hl_run_ask_allocators(hl_run_process *process);
/* Ask the system, which may take milliseconds, and leave the allocators' answers as they are. Async-signal-safe. */
void hl_run_ask_system(hl_run_process *process);
/* As plain data: a dict. Async-signal-safe. */
void hl_run_put_process(hl_hlsnap_buffer *to, const hl_run_process *process, const hl_tracer_bytes *tables);

/* --- run_report.c --- */

/* Texts of the metadata that cannot be found out in a signal handler. `executable` may be NULL. */
void hl_run_remember(const char *executable);
/* sys.executable, as far as it is known: else empty. */
const char *hl_run_executable(void);
/* What is in a file besides the snapshots: the payload of META, to be freed with hl_os_free. NULL: no memory.
 * Async-signal-safe. */
uint8_t *hl_run_metadata(const hl_rows *first, const hl_tracer_totals *totals, const hl_run_process *process,
                         size_t *length);
/* Write to stderr, up to a NULL, if it is what it was when hl_run_remember was called. Async-signal-safe, as is the
 * next. */
void hl_run_say(const char *text, ...) __attribute__((sentinel));
/* Say that a file could not be written, and why. */
void hl_run_say_failure(const char *name, int error);

/* --- run_names.c --- */

/* Write `text` at `at`; where it ends, or NULL when there is no room, or `at` is NULL. */
char *hl_run_append(char *at, const char *end, const char *text, size_t length);
/* The name of a file of a process; `part` distinguishes several of one process, or is empty. False: too long. */
bool hl_run_file_name(const hl_run_options *options, pid_t process, const char *part, char name[PATH_MAX]);
/* A pattern for the files of all processes, with at least one *; `has_parts`: some have a part. False: too long. */
bool hl_run_pattern(const hl_run_options *options, bool has_parts, char pattern[PATH_MAX]);

/* --- run_lines.c --- */

enum { HL_RUN_LINES = 3 };
typedef struct {
    uint64_t bytes;
    uint32_t number;
    char file[PATH_MAX]; /* cut off if it is longer */
} hl_run_line;
typedef struct {
    hl_moment moment;
    hl_run_line largest[HL_RUN_LINES]; /* with bytes, as many as there are */
    uint64_t bytes;                    /* of all blocks */
    uint64_t imports;                  /* of what importing modules took */
} hl_run_lines;                        /* too large for the stack of a signal handler */

/* The lines of the program's own code that hold most; where there is none, those of packages, of the standard library,
 * or any. False: no memory. Async-signal-safe. */
bool hl_run_find_lines(const hl_rows *rows, hl_run_lines *lines);

/* --- run_summary.c --- */

/* Say where the files of all processes are, this one's being `name`, and which lines held most. `lines` are those of
 * this process, if they are known, and become those of all. Async-signal-safe in the mode of a signal handler. */
void hl_run_sum_up(const hl_run_options *options, const char *name, hl_run_lines *lines, bool known);

#endif
