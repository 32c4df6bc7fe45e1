/* run.h: what a process of `heapledger run` does by itself: trace from before main(), and write its files.
 *
 * HEAPLEDGER_RUN holds the options, separated by commas, `file` the last of them (its value may have commas):
 *
 *     frames=25       frames of a traceback
 *     root=1234       the process that the command became; it alone says at the end what was written
 *     began=170000    when that was, in seconds since 1970
 *     moments=lp      which snapshots are written: l live, p peak
 *     quiet, alone    say nothing at the end; children are not followed
 *     file=/a/b-%p.hlsnap    where to: %p is the process, %% is %
 *
 * Nothing of this needs Python code of ours: no module is imported, and no object of ours is to be seen but a function
 * among those of atexit.
 *
 * Threading: hl_run_begin before main(). The rest with the GIL.
 */
#ifndef HL_RUN_H
#define HL_RUN_H

#include <limits.h>
#include <sys/types.h>

#include "../core/snapshot.h"

typedef struct {
    uint32_t frames;
    pid_t root;
    int64_t began;
    bool live, peak, quiet, alone;
    char file[PATH_MAX];
} hl_run_options;

/* The one function that the preloaded library knows. */
__attribute__((visibility("default"))) void hl_run_begin(void);

/* --- run_report.c --- */

/* What is in a file besides the snapshots: the payload of META, to be freed with hl_os_free. NULL: no memory. */
uint8_t *hl_run_metadata(const hl_snapshot *first, const char *executable, size_t *length);
/* The name of a file of this process; `part` distinguishes several of one process, or is empty. False: too long. */
bool hl_run_file_name(const hl_run_options *options, pid_t process, const char *part, char name[PATH_MAX]);
/* stderr may be something else when we want to say something: remember what it is, and write only if it is that still. */
void hl_run_remember_stderr(void);
void hl_run_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Where the files are, and the three largest lines of a snapshot. */
void hl_run_sum_up(const hl_run_options *options, const char *name, const hl_snapshot *snapshot);

#endif
