/* run_summary.c: the summary that `heapledger run` prints at the end. See run.h.
 *
 * Names alone do not tell the files of this run from those of another run. So the files are recognised by the run's id
 * in the metadata, which are at the beginning of each file. What each process wrote at its end is read back and added
 * up. If only this process wrote such a file, it is not read, because its lines were found when the file was written.
 * Reading a file takes several times its length in memory.
 *
 * Threading: one thread at a time. Async-signal-safe in the mode for signal handlers (hl_os_use_pages): folders are
 * read with system calls, and numbers are formatted without the C library.
 */

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../core/digits.h"
#include "../core/hlsnap.h"
#include "../core/merge.h"
#include "../core/plain.h"
#include "../core/size_text.h"
#include "run.h"

/* Reading more would delay the end of the process. Above this limit only its own lines are shown. */
enum { MOST_BYTES = 32 << 20 };

/* Static, because a signal handler may run on a small stack. */
static char pattern[PATH_MAX], path[PATH_MAX], other[PATH_MAX];

typedef struct {
    const hl_run_options *options;
    size_t files;
    size_t ends;                /* files that a process wrote at its end */
    uint64_t bytes;             /* of those files */
    hl_hlsnap_buffer processes; /* the process numbers, four bytes each */
    hl_merge *merge;            /* NULL: only count the files, do not add them up */
    size_t merged;
    hl_status status; /* the result of adding up */
} summary;

/* --- one file --- */

/* Returns the process that wrote the file, or 0 if the file is not from this run. The process number and the run's id
 * are at the beginning of the metadata, before anything that a user can influence. The metadata are at the beginning of
 * the file. The file may belong to somebody else and change at any moment. So it is not mapped. */
static pid_t process_of(const summary *all, int file)
{
    enum { ENOUGH = 1024 };
    uint8_t bytes[ENOUGH];
    hl_hlsnap_buffer run = {0}, pid = {0};
    pid_t process = 0;
    ssize_t length = pread(file, bytes, sizeof bytes, 0);
    if (length < HL_HLSNAP_HEADER + HL_HLSNAP_SECTION_HEAD || memcmp(bytes, HL_HLSNAP_MAGIC, 8) != 0 ||
        memcmp(bytes + HL_HLSNAP_HEADER, "META", 4) != 0)
        return 0;
    hl_plain_word(&run, "run");
    hl_plain_word(&run, all->options->id);
    hl_plain_word(&pid, "pid");
    hl_hlsnap_add_bytes(&pid, "i", 1);
    if (!run.failed && !pid.failed && memmem(bytes, (size_t)length, run.bytes, run.length) != NULL) {
        const uint8_t *at = memmem(bytes, (size_t)length, pid.bytes, pid.length);
        const uint8_t *number = at != NULL ? at + pid.length : bytes + length, *end = bytes + length;
        if (number < end && number[0] <= 4 && end - number > number[0])
            process = (pid_t)hl_hlsnap_get_fixed(number + 1, number[0]);
    }
    hl_os_free(run.bytes);
    hl_os_free(pid.bytes);
    return process;
}

static void count_process(summary *all, pid_t process)
{
    for (size_t at = 0; at < all->processes.length; at += 4) {
        if ((pid_t)hl_hlsnap_get_fixed(all->processes.bytes + at, 4) == process)
            return;
    }
    hl_hlsnap_add_fixed(&all->processes, 4, (uint64_t)process);
}

static hl_moment moment_of(const hl_run_options *options)
{
    return options->peak ? HL_PEAK : HL_LIVE;
}

static hl_status add_content(hl_merge *merge, const uint8_t *bytes, size_t length, hl_moment moment)
{
    hl_hlsnap_content content;
    hl_hlsnap_error error;
    hl_status status = hl_hlsnap_read_into(hl_merge_names(merge), moment, bytes, length, &content, &error);
    if (status != HL_OK)
        return status;
    for (size_t i = 0; i < content.snapshot_count; i++) {
        if (status == HL_OK)
            status = hl_merge_add(merge, content.snapshots[i]);
        hl_snapshot_drop(content.snapshots[i]);
    }
    return status;
}

/* Adds up a file that a process wrote at its end. */
static void add_file(summary *all, int file, size_t length)
{
    void *bytes = mmap(NULL, length, PROT_READ, MAP_PRIVATE, file, 0);
    hl_status status = HL_NO_MEMORY;
    if (bytes != MAP_FAILED) {
        status = add_content(all->merge, bytes, length, moment_of(all->options));
        (void)munmap(bytes, length);
    }
    all->merged++;
    all->status = status;
}

/* Looks at the file with the name `path`. */
static void look_at_file(summary *all)
{
    struct stat info;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    pid_t process = file >= 0 && fstat(file, &info) == 0 ? process_of(all, file) : 0;
    bool is_end = process != 0 && hl_run_file_name(all->options, process, "", other) && strcmp(path, other) == 0;
    if (process != 0 && all->merge == NULL) {
        count_process(all, process);
        all->files++;
        all->ends += is_end;
        all->bytes += is_end ? (uint64_t)info.st_size : 0;
    } else if (is_end && all->status == HL_OK) {
        add_file(all, file, (size_t)info.st_size);
    }
    if (file >= 0)
        (void)close(file);
}

/* --- all files --- */

static bool starts_and_ends(const char *text, const char *start, size_t start_length, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strncmp(text, start, start_length) == 0 &&
           strcmp(text + length - end_length, end) == 0;
}

/* Looks at every file in the folder whose name may be ours. */
static void look_at_files(summary *all)
{
    struct entry { /* the layout that the system writes */
        uint64_t inode;
        int64_t offset;
        unsigned short length;
        unsigned char type;
        char name[];
    };
    enum { ROOM = 32768 };
    if (!hl_run_pattern(all->options, true, pattern))
        return;
    char *name = strrchr(pattern, '/') + 1, *open_part = strchr(name, '*'), *close_part = strrchr(name, '*') + 1;
    size_t folder = (size_t)(name - pattern);
    memcpy(path, pattern, folder);
    path[folder] = '\0';
    int file = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char *entries = file >= 0 ? hl_os_alloc(ROOM, 1) : NULL;
    for (long got = 1; entries != NULL && got > 0;) {
        got = syscall(SYS_getdents64, file, entries, ROOM);
        for (long at = 0; at < got;) {
            const struct entry *one = (const struct entry *)(entries + at);
            at += one->length;
            if ((one->type == DT_REG || one->type == DT_UNKNOWN) &&
                starts_and_ends(one->name, name, (size_t)(open_part - name), close_part) &&
                hl_run_append(path + folder, path + sizeof path, one->name, strlen(one->name)) != NULL)
                look_at_file(all);
        }
    }
    hl_os_free(entries);
    if (file >= 0)
        (void)close(file);
}

/* --- messages --- */

static void say_files(const summary *all)
{
    char files[HL_DIGITS_ROOM], processes[HL_DIGITS_ROOM];
    size_t count = all->processes.length / 4;
    if (all->files < 2 || !hl_run_pattern(all->options, all->ends < all->files, pattern))
        return;
    (void)hl_digits(files, all->files, 10);
    (void)hl_digits(processes, count, 10);
    if (count == 1)
        hl_run_say("heapledger: ", files, " files of this process: ", pattern, "\n", NULL);
    else
        hl_run_say("heapledger: ", files, " files of ", processes, " processes: ", pattern, "\n", NULL);
}

static void say_line(uint64_t bytes, const char *where, const char *number)
{
    char text[HL_SIZE_TEXT_ROOM];
    const char *size = hl_size_text(bytes, text);
    size_t length = strlen(size);
    hl_run_say(&"            "[length < 12 ? length : 12], size, "  ", where, number[0] != '\0' ? ":" : "", number,
               "\n", NULL);
}

/* `ends`: the number of processes that the lines belong to. */
static void say_lines(const hl_run_lines *lines, size_t ends)
{
    char size[HL_SIZE_TEXT_ROOM], imports[HL_SIZE_TEXT_ROOM], number[HL_DIGITS_ROOM];
    bool several = ends > 1;
    (void)hl_digits(number, ends, 10);
    hl_run_say("heapledger: the lines that held most of ", hl_size_text(lines->bytes, size),
               lines->moment == HL_PEAK ? " at the peak" : " at the end", several ? "s of " : "", several ? number : "",
               several ? " processes" : "", ", of which imports took ", hl_size_text(lines->imports, imports), ":\n",
               NULL);
    for (size_t i = 0; i < HL_RUN_LINES && lines->largest[i].bytes > 0; i++) {
        (void)hl_digits(number, lines->largest[i].number, 10);
        say_line(lines->largest[i].bytes, lines->largest[i].file, number);
    }
}

/* Finds the lines of all processes by reading their files. */
static bool find_all_lines(summary *all, hl_run_lines *lines)
{
    hl_snapshot *merged = NULL;
    if (hl_merge_open(NULL, &all->merge) != HL_OK)
        return false;
    look_at_files(all);
    bool found = all->status == HL_OK && all->merged > 0 && hl_merge_finish(all->merge, &merged) == HL_OK;
    if (found) {
        hl_rows rows = hl_rows_of_snapshot(merged);
        found = hl_run_find_lines(&rows, lines);
        hl_snapshot_drop(merged);
    }
    hl_merge_close(all->merge);
    return found;
}

void hl_run_sum_up(const hl_run_options *options, const char *name, hl_run_lines *lines, bool known)
{
    summary all = {.options = options, .status = HL_OK};
    look_at_files(&all);
    hl_run_say("heapledger: written to ", name, "\n", NULL);
    say_files(&all);
    if (known && (all.ends == 1 || all.bytes > MOST_BYTES))
        say_lines(lines, 1);
    else if (all.ends > 0 && all.bytes <= MOST_BYTES && find_all_lines(&all, lines))
        say_lines(lines, all.merged);
    hl_os_free(all.processes.bytes);
}
