/* run_summary.c: the closing words of `heapledger run`. See run.h.
 *
 * The files of the run are found by the run's id in their metadata, which stand at their beginning: names alone do not
 * tell them from those of another run. What each process wrote at its end is read back and added up, unless that is
 * this process alone, whose lines were found when its file was written: reading a file takes several times its length.
 *
 * Threading: one thread at a time; async-signal-safe in a signal handler's mode (hl_os_use_pages): folders are read by
 * system calls, and numbers are put into words without the C library.
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

/* Reading more would keep the process from ending: then only its own lines are shown. */
enum { MOST_BYTES = 32 << 20 };

/* Stacks may be small, where a signal handler runs. */
static char pattern[PATH_MAX], path[PATH_MAX], other[PATH_MAX];

typedef struct {
    const hl_run_options *options;
    size_t files;
    size_t ends;                /* those that a process wrote at its end */
    uint64_t bytes;             /* of them */
    hl_hlsnap_buffer processes; /* their numbers, four bytes each */
    hl_merge *merge;            /* NULL: files are counted, not added up */
    size_t merged;
    hl_status status; /* of adding up */
} summary;

/* --- one file --- */

/* The process that has written the file, if it is one of this run; else 0. Its number and the run's id stand at the
 * beginning of the metadata, before anything that a user has a say in, and those at the beginning of the file. Files of
 * others, which may change at any moment, are not mapped. */
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

/* Add up what a process wrote at its end. */
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

/* The file whose name is `path`. */
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

/* Look at what is in the folder under names that may be ours. */
static void look_at_files(summary *all)
{
    struct entry { /* as the system writes it */
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

/* --- words --- */

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

/* `ends`: of how many processes they are. */
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

/* The lines of all processes, from their files. */
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
