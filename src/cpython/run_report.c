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

uint8_t *hl_run_metadata(const hl_snapshot *first, const hl_tracer_facts *facts, const hl_run_process *process,
                         size_t *length)
{
    static const char *const moments[] = {"live", "peak", "allocated"};
    const hl_tracer_bytes *tables = &facts->memory;
    struct utsname system;
    struct timespec now;
    uint64_t rss = 0;
    hl_hlsnap_buffer to = {0};

    clock_gettime(CLOCK_REALTIME, &now);
    hl_plain_dict(&to, 17);
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
    put_int(&to, "interruptions", facts->interruptions);
    hl_plain_word(&to, "rss");
    if (hl_process_rss(&rss))
        hl_plain_int(&to, (int64_t)rss);
    else
        hl_plain_none(&to);
    put_int(&to, "tables", (int64_t)(tables->map + tables->sites + tables->names + tables->caches + tables->snapshots));
    hl_plain_word(&to, "process_at_dump");
    hl_run_put_process(&to, process, tables);
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

/* As `append`, for a terminal: no line end and nothing else that commands it, unless it ends the text. In a book, bytes
 * that are no UTF-8 are lone surrogates, which have three bytes. */
static char *append_shown(char *at, const char *end, const char *text)
{
    static const char hex[] = "0123456789abcdef";
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)text[0], next = (unsigned char)text[1];
        bool is_surrogate = byte == 0xed && next >= 0xa0;
        if (is_surrogate && text[2] != '\0') {
            byte = (unsigned char)(next << 6 | (text[2] & 0x3f)); /* of os.fsdecode, the byte itself */
            text += 2;
        }
        char escape[] = {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
        bool is_plain = !is_surrogate && ((byte >= 0x20 && byte != 0x7f) || (byte == '\n' && next == '\0'));
        at = is_plain ? append(at, end, text, 1) : append(at, end, escape, sizeof escape);
    }
    return at;
}

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
        at = append_shown(at, all + sizeof all, text);
    va_end(texts);
    if (at != NULL && write(2, all, (size_t)(at - all)) < 0)
        return; /* nobody is there to be told */
}

/* Whether a file is of the same process as `own`: of its series, or from before os.exec. Without %p in the names, what
 * stands there may also be the number of another process: those have no zero in front. */
static bool is_of_this_process(const hl_run_options *options, const char *path, const char *own)
{
    char marked[PATH_MAX];
    size_t stem = 0;
    if (!hl_run_file_name(options, hl_run_owner, "-", marked))
        return false;
    while (own[stem] != '\0' && own[stem] == marked[stem]) /* the suffix begins with a dot */
        stem++;
    size_t length = strlen(path), suffix = strlen(own + stem);
    if (length <= stem + 1 + suffix || strncmp(path, marked, stem + 1) != 0 ||
        strcmp(path + length - suffix, own + stem) != 0)
        return false;
    const char *part = path + stem + 1, *end = path + length - suffix;
    bool is_exec = strncmp(part, "exec", 4) == 0;
    const char *digits = part + (is_exec ? 4 : 0);
    return strspn(digits, "0123456789") == (size_t)(end - digits) &&
           (is_exec || digits[0] == '0' || strtoul(digits, NULL, 10) <= hl_run_series_length());
}

typedef struct {
    size_t own, others;
} file_counts;

/* The other files of this run, as far as processes have written them, and a pattern for all of them. Files of a series
 * have a part more, which the pattern of the others may have no place for: %p at the front, or only in the suffix. */
static file_counts count_files(const hl_run_options *options, const char *own, char pattern[PATH_MAX])
{
    char folder[PATH_MAX], path[PATH_MAX], of_series[PATH_MAX];
    file_counts counts = {0};
    bool all_match = true;
    if (!make_name(options, "*", false, "", pattern) || !make_name(options, "*", false, "-*", of_series))
        return counts;
    size_t length = (size_t)(strrchr(pattern, '/') - pattern) + 1;
    memcpy(folder, pattern, length);
    folder[length] = '\0';
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
        struct stat file;
        bool matches = fnmatch(pattern + length, entry->d_name, 0) == 0;
        if ((!matches && fnmatch(of_series + length, entry->d_name, 0) != 0) ||
            snprintf(path, sizeof path, "%s%s", folder, entry->d_name) >= (int)sizeof path || strcmp(path, own) == 0)
            continue;
        if (stat(path, &file) != 0 || !S_ISREG(file.st_mode) || file.st_mtime < options->began)
            continue;
        if (is_of_this_process(options, path, own))
            counts.own++;
        else
            counts.others++;
        all_match &= matches;
    }
    if (entries != NULL)
        (void)closedir(entries);
    if (!all_match)
        (void)make_name(options, "*", false, "*", pattern); /* shorter than of_series */
    return counts;
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
    size_t count = 0;
    file_counts files = count_files(options, name, pattern);
    hl_run_say("heapledger: written to ", name, "\n", NULL);
    if (files.own > 0 && files.others > 0)
        snprintf(line, sizeof line, "%zu more of this process, %zu of other processes", files.own, files.others);
    else
        snprintf(line, sizeof line, "%zu more of %s", files.own + files.others,
                 files.own > 0 ? "this process" : "other processes");
    if (files.own + files.others > 0)
        hl_run_say("heapledger: ", line, ": ", pattern, "\n", NULL);
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
