/* run.h: what a process of `heapledger run` does by itself: it traces from before main() on, and writes its files.
 *
 * HEAPLEDGER_RUN holds the options, separated by commas. `file` is the last one, because its value may contain commas:
 *
 *     frames=25       number of frames of a traceback
 *     numbers         numbers get their own lines, too
 *     root=1234       the process that the command became; only this process prints a summary at the end
 *     id=0123abcd     a unique name for the run
 *     moments=lp      which snapshots are written: l live, p peak
 *     every=500       write a file at this interval, in milliseconds
 *     signal=12       write a file on this signal
 *     quiet, alone    print nothing at the end; do not follow children
 *     file=/a/b-%p.hlsnap    the name of the file: %p is the process, %% is %
 *
 * None of this needs Python code of ours. No module is imported. The program can see only one object of ours: a
 * function among those registered with atexit.
 *
 * Threading: hl_run_begin runs before main(). Files are written with the GIL or in signal handlers, by one thread at a
 * time.
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

/* The only function that the preloaded library calls. */
__attribute__((visibility("default"))) void hl_run_begin(void);

extern hl_run_options hl_run_given;
/* The process that writes files: this process. It is 0 in a forked child if children are not followed. */
extern pid_t hl_run_owner;

/* Writes a file with the data of this moment. `part` becomes part of the file's name, and the whole name is stored in
 * `name`. Async-signal-safe if `in_signal_handler`.
 *
 *   HL_OK        *error is 0, or the errno of the failure
 *   HL_STOPPED   there is nothing to write
 *   HL_BUSY      only if `in_signal_handler`: try again later. While hl_run_is_writing returns true, keep trying */
hl_status hl_run_write(bool in_signal_handler, const char *part, char name[PATH_MAX], int *error) HL_MUST_USE;

/* The last file has been written, and the interpreter is shutting down. What is alive from now on does not matter. */
bool hl_run_has_left(void);
/* This is the child of a fork, and fork() has not returned yet. So our handler for forks has not run yet. */
bool hl_run_is_newborn(void);
/* Another thread is writing a file, or the code that a signal handler has interrupted is. */
bool hl_run_is_writing(void);

/* Prints the result: that the file could not be written or, once and only in the first process, where the files are. */
void hl_run_tell(bool in_signal_handler, hl_status status, int error, const char *name);

/* --- run_signals.c --- */

/* Catches the signals that end a process by default, unless the program handles or ignores them. Also catches the
 * signals that request a file, and sets the timer. Call it after the interpreter has looked which signals have
 * handlers. Handlers that the interpreter sets later replace ours. */
void hl_run_catch_signals(void);
/* Python has set what a signal does. If that is the default, this puts our handler back. */
void hl_run_handler_set(int signal);
/* A signal is about to be sent. If C code has set it to the default, this puts our handler back. */
void hl_run_catch_again(int signal);
/* Call this in a child of fork, because children do not inherit timers. */
void hl_run_forked_signals(void);

/* --- run_process.c --- */

/* What we find out about the process when we write a file: process_at_dump in docs/format.md, and more. */
typedef struct {
    hl_hlsnap_buffer command; /* its words, each followed by a zero byte; scratch memory */
    bool rss_known;
    uint64_t rss;
    int64_t time;
    bool arenas_known, heap_known;
    uint64_t arenas;
    hl_process_heap heap;
    char pages[4096]; /* the text of the system; empty if there is none */
} hl_run_process;

/* Asks the allocators. They have their own locks and streams. So this needs the GIL, and must not run in a signal
 * handler. */
void hl_run_ask_allocators(hl_run_process *process);
/* Asks the system, which may take milliseconds. Leaves the answers of the allocators unchanged. Async-signal-safe. */
void hl_run_ask_system(hl_run_process *process);
/* Adds the numbers as plain data, in a dict. Async-signal-safe. */
void hl_run_put_process(hl_hlsnap_buffer *to, const hl_run_process *process, const hl_tracer_bytes *tables);

/* --- run_report.c --- */

/* Remembers texts of the metadata that a signal handler cannot find out. `executable` may be NULL. */
void hl_run_remember(const char *executable);
/* sys.executable, or an empty string if it is not known. */
const char *hl_run_executable(void);
/* The payload of the section META: what a file contains besides the snapshots. Free it with hl_os_free. Returns NULL if
 * there is no memory. Async-signal-safe. */
uint8_t *hl_run_metadata(const hl_rows *first, const hl_tracer_totals *totals, const hl_run_process *process,
                         size_t *length);
/* Writes texts, up to a NULL, to stderr. Writes nothing if stderr is no longer what it was when hl_run_remember was
 * called. Async-signal-safe, like the next function. */
void hl_run_say(const char *text, ...) __attribute__((sentinel));
/* Prints that a file could not be written, and why. */
void hl_run_say_failure(const char *name, int error);

/* --- run_names.c --- */

/* Writes `text` at `at`. Returns where it ends. Returns NULL if there is no room, or if `at` is NULL. */
char *hl_run_append(char *at, const char *end, const char *text, size_t length);
/* Makes the name of a file of a process. `part` distinguishes several files of one process; it may be empty. Returns
 * false if the name is too long. */
bool hl_run_file_name(const hl_run_options *options, pid_t process, const char *part, char name[PATH_MAX]);
/* Makes a pattern for the files of all processes, with at least one *. `has_parts`: some files have a part. Returns
 * false if the pattern is too long. */
bool hl_run_pattern(const hl_run_options *options, bool has_parts, char pattern[PATH_MAX]);

/* --- run_lines.c --- */

enum { HL_RUN_LINES = 3 };
typedef struct {
    uint64_t bytes;
    uint32_t number;
    char file[PATH_MAX]; /* truncated if it is longer */
} hl_run_line;
typedef struct {
    hl_moment moment;
    hl_run_line largest[HL_RUN_LINES]; /* the first ones, as many as there are, have bytes */
    uint64_t bytes;                    /* of all blocks */
    uint64_t imports;                  /* of the blocks that imports allocated */
} hl_run_lines;                        /* this type is too large for the stack of a signal handler */

/* Finds the lines of the program's own code that hold most. If the program has no code of its own, finds lines of
 * packages, else of the standard library, else any. Returns false if there is no memory. Async-signal-safe. */
bool hl_run_find_lines(const hl_rows *rows, hl_run_lines *lines);

/* --- run_summary.c --- */

/* Prints where the files of all processes are, and which lines held most. `name` is the file of this process. `lines`
 * are the lines of this process, if they are known; they are replaced with the lines of all processes.
 * Async-signal-safe in the mode for signal handlers (hl_os_use_pages). */
void hl_run_sum_up(const hl_run_options *options, const char *name, hl_run_lines *lines, bool known);

#endif
