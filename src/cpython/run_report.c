/* run_report.c: names, metadata and the closing words of `heapledger run`. See run.h. */

#include <Python.h>
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "../core/digits.h"
#include "../core/group.h"
#include "../core/plain.h"
#include "process_facts.h"
#include "run.h"

/* --- metadata --- */

/* The command line of the process, as a list. */
static void put_command(hl_hlsnap_buffer *to)
{
    char chunk[4096];
    hl_hlsnap_buffer line = {0};
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    for (ssize_t got = 1; file >= 0 && got > 0;) {
        got = read(file, chunk, sizeof chunk);
        if (got > 0)
            hl_hlsnap_add_bytes(&line, chunk, (size_t)got);
    }
    if (file >= 0)
        (void)close(file);
    size_t count = 0;
    for (size_t i = 0; i < line.length; i++)
        count += line.bytes[i] == '\0';
    hl_plain_list(to, count);
    for (size_t at = 0; count > 0; count--) {
        const char *word = (const char *)line.bytes + at;
        hl_plain_word(to, word);
        at += strlen(word) + 1;
    }
    hl_os_free(line.bytes);
}

static void put_text(hl_hlsnap_buffer *to, const char *key, const char *text)
{
    hl_plain_word(to, key);
    hl_plain_word(to, text);
}

static void put_int(hl_hlsnap_buffer *to, const char *key, int64_t value)
{
    hl_plain_word(to, key);
    hl_plain_int(to, value);
}

static char known_executable[PATH_MAX], known_version[256];
static struct stat stderr_then;

void hl_run_remember(const char *executable)
{
    if (executable != NULL && strlen(executable) < sizeof known_executable)
        strcpy(known_executable, executable);
    if (known_version[0] != '\0')
        return;
    if (strlen(Py_GetVersion()) < sizeof known_version)
        strcpy(known_version, Py_GetVersion());
    if (fstat(2, &stderr_then) != 0)
        stderr_then = (struct stat){0};
}

uint8_t *hl_run_metadata(const hl_snapshot *first, const hl_tracer_facts *facts, size_t *length)
{
    static const char *const moments[] = {"live", "peak", "allocated"};
    const hl_tracer_bytes *tables = &facts->memory;
    struct utsname system;
    struct timespec now;
    uint64_t rss = 0;
    hl_hlsnap_buffer to = {0};

    clock_gettime(CLOCK_REALTIME, &now);
    hl_plain_dict(&to, 15);
    put_text(&to, "heapledger", HL_VERSION);
    put_int(&to, "time", (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
    put_text(&to, "host", uname(&system) == 0 ? system.nodename : "");
    put_int(&to, "pid", getpid());
    hl_plain_word(&to, "command");
    put_command(&to);
    put_text(&to, "executable", known_executable);
    put_text(&to, "python", known_version);
    put_text(&to, "implementation", "cpython");
    put_int(&to, "traceback_limit", first->nframe);
    put_text(&to, "moment", moments[first->moment]);
    put_int(&to, "traced", (int64_t)facts->traced);
    put_int(&to, "peak", (int64_t)facts->peak);
    put_int(&to, "lost_records", (int64_t)facts->lost);
    hl_plain_word(&to, "rss");
    if (hl_process_rss(&rss))
        hl_plain_int(&to, (int64_t)rss);
    else
        hl_plain_none(&to);
    put_int(&to, "tables", (int64_t)(tables->map + tables->sites + tables->names + tables->caches + tables->snapshots));
    if (to.failed) {
        hl_os_free(to.bytes);
        return NULL;
    }
    *length = to.length;
    return to.bytes;
}

/* --- names --- */

/* Write `text` at `at`; where it ends, or NULL when there is no room. */
static char *append(char *at, const char *end, const char *text, size_t length)
{
    if (at == NULL || length >= (size_t)(end - at))
        return NULL;
    memcpy(at, text, length);
    at[length] = '\0';
    return at + length;
}

/* The template with `process` for %p; whether there was one. */
static char *expand(const char *from, size_t length, const char *process, char *at, const char *end, bool *named)
{
    for (size_t i = 0; i < length; i++) {
        bool code = from[i] == '%' && i + 1 < length && (from[i + 1] == 'p' || from[i + 1] == '%');
        bool is_process = code && from[i + 1] == 'p';
        at = is_process ? append(at, end, process, strlen(process)) : append(at, end, from + i, 1);
        *named |= is_process;
        i += code;
    }
    return at;
}

/* Where the part that distinguishes files goes: before the suffix. */
static size_t stem_length(const char *file)
{
    const char *name = strrchr(file, '/') + 1, *dot = strrchr(name, '.');
    return dot == NULL || dot == name ? strlen(file) : (size_t)(dot - file);
}

static bool make_name(const hl_run_options *options, const char *process, bool is_root, const char *part,
                      char name[PATH_MAX])
{
    const char *file = options->file, *end = name + PATH_MAX;
    size_t stem = stem_length(file);
    bool named = false;
    char *at = expand(file, stem, process, name, end, &named);
    bool later = false;
    char suffix[PATH_MAX];
    (void)expand(file + stem, strlen(file + stem), process, suffix, suffix + sizeof suffix, &later);
    if (!named && !later && !is_root) { /* each process has a file of its own */
        at = append(at, end, "-", 1);
        at = append(at, end, process, strlen(process));
    }
    at = append(at, end, part, strlen(part));
    if (file[stem] != '\0')
        at = append(at, end, suffix, strlen(suffix));
    return at != NULL;
}

bool hl_run_file_name(const hl_run_options *options, pid_t process, const char *part, char name[PATH_MAX])
{
    char digits[HL_DIGITS_ROOM];
    (void)hl_digits(digits, (uint64_t)process, 10);
    return make_name(options, digits, process == options->root, part, name);
}

/* --- words --- */

void hl_run_say(const char *text, ...)
{
    struct stat now;
    char all[2 * PATH_MAX];
    char *at = all;
    va_list texts;
    if (stderr_then.st_ino == 0 || fstat(2, &now) != 0 || now.st_dev != stderr_then.st_dev ||
        now.st_ino != stderr_then.st_ino)
        return;
    va_start(texts, text);
    for (; text != NULL && at != NULL; text = va_arg(texts, const char *))
        at = append(at, all + sizeof all, text, strlen(text));
    va_end(texts);
    if (at != NULL && write(2, all, (size_t)(at - all)) < 0)
        return; /* nobody is there to be told */
}

/* Files of this run's other processes, as far as they have written them. */
static size_t count_others(const hl_run_options *options, const char *own, char pattern[PATH_MAX])
{
    char folder[PATH_MAX], path[PATH_MAX];
    size_t count = 0;
    if (!make_name(options, "*", false, "", pattern))
        return 0;
    const char *slash = strrchr(pattern, '/');
    memcpy(folder, pattern, (size_t)(slash - pattern) + 1);
    folder[slash - pattern + 1] = '\0';
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
        struct stat file;
        if (fnmatch(slash + 1, entry->d_name, 0) != 0 ||
            snprintf(path, sizeof path, "%s%s", folder, entry->d_name) >= (int)sizeof path || strcmp(path, own) == 0)
            continue;
        count += stat(path, &file) == 0 && S_ISREG(file.st_mode) && file.st_mtime >= options->began;
    }
    if (entries != NULL)
        (void)closedir(entries);
    return count;
}

static const char *size_text(uint64_t bytes, char text[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double size = (double)bytes;
    int unit = 0;
    for (; size >= 1024 && unit < 4; unit++)
        size /= 1024;
    snprintf(text, 32, unit == 0 ? "%.0f %s" : "%.1f %s", size, units[unit]);
    return text;
}

void hl_run_sum_up(const hl_run_options *options, const char *name, const hl_snapshot *snapshot)
{
    enum { LINES = 3 };
    char pattern[PATH_MAX], size[32], line[2 * PATH_MAX];
    hl_group *groups = NULL;
    size_t count = 0, others = count_others(options, name, pattern);
    hl_run_say("heapledger: written to ", name, "\n", NULL);
    if (others > 0) {
        snprintf(line, sizeof line, "%zu", others);
        hl_run_say("heapledger: ", line, " more of other processes: ", pattern, "\n", NULL);
    }
    if (hl_group_rows(snapshot, HL_BY_LINE, false, &groups, &count) != HL_OK)
        return;
    hl_run_say("heapledger: the largest lines of ", size_text(snapshot->bytes, size),
               snapshot->moment == HL_PEAK ? " at the peak:\n" : " at the end:\n", NULL);
    for (size_t i = 0; i < count && i < LINES; i++) {
        const hl_location *location = hl_book_get_location(snapshot->book, groups[i].key);
        const hl_string *file = hl_book_get_string(snapshot->book, location->file);
        snprintf(line, sizeof line, "  %10s  %.*s:%u\n", size_text(groups[i].size, size), (int)file->length,
                 file->bytes, location->line);
        hl_run_say(line, NULL);
    }
    hl_os_free(groups);
}
