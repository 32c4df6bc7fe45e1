/* run_report.c: the metadata of a file of `heapledger run`, and messages on stderr. See run.h. */

#include <Python.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "../core/digits.h"
#include "../core/plain.h"
#include "../core/utf8.h"
#include "run.h"

/* --- metadata --- */

/* The command line of the process, as a list. */
static void put_command(hl_hlsnap_buffer *to, const hl_hlsnap_buffer *line)
{
    size_t count = 0;
    for (size_t i = 0; i < line->length; i++)
        count += line->bytes[i] == '\0';
    hl_plain_list(to, count);
    for (size_t at = 0; count > 0; count--) {
        const char *word = (const char *)line->bytes + at;
        hl_plain_word(to, word);
        at += strlen(word) + 1;
    }
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

const char *hl_run_executable(void)
{
    return known_executable;
}

uint8_t *hl_run_metadata(const hl_rows *first, const hl_tracer_totals *totals, const hl_run_process *process,
                         size_t *length)
{
    const hl_tracer_bytes *tables = &totals->memory;
    struct utsname system;
    struct timespec now;
    hl_hlsnap_buffer to = {0};

    clock_gettime(CLOCK_REALTIME, &now);
    hl_plain_dict(&to, 19);
    put_text(&to, "heapledger", HL_VERSION);
    put_int(&to, "time", (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
    put_text(&to, "host", uname(&system) == 0 ? system.nodename : "");
    put_int(&to, "pid", getpid());
    put_text(&to, "run", hl_run_given.id);
    hl_plain_word(&to, "command");
    put_command(&to, &process->command);
    put_text(&to, "executable", known_executable);
    put_text(&to, "python", known_version);
    put_text(&to, "implementation", "cpython");
    put_int(&to, "traceback_limit", first->nframe);
    hl_plain_word(&to, "numbers");
    hl_plain_bool(&to, hl_run_given.numbers);
    put_text(&to, "moment", hl_moment_names[first->moment]);
    put_int(&to, "traced", (int64_t)totals->traced);
    put_int(&to, "peak", (int64_t)totals->peak);
    put_int(&to, "lost_records", (int64_t)totals->lost);
    put_int(&to, "interruptions", totals->interruptions);
    hl_plain_word(&to, "rss");
    if (process->rss_known)
        hl_plain_int(&to, (int64_t)process->rss);
    else
        hl_plain_none(&to);
    put_int(&to, "tables", (int64_t)hl_tracer_bytes_total(tables));
    hl_plain_word(&to, "process_at_dump");
    hl_run_put_process(&to, process, tables);
    if (to.failed) {
        hl_os_free(to.bytes);
        return NULL;
    }
    *length = to.length;
    return to.bytes;
}

/* --- messages --- */

/* Like hl_run_append, but safe for a terminal: control characters are escaped, except a newline at the end of the text.
 * In a name table, bytes that are not UTF-8 are lone surrogates of three bytes each. */
static char *append_shown(char *at, const char *end, const char *text)
{
    static const char hex[] = "0123456789abcdef";
    for (size_t left = strlen(text), width; left > 0; text += width, left -= width) {
        uint32_t character;
        width = hl_utf8_decode(text, left, &character);
        bool is_surrogate = width != 0 && hl_utf8_is_surrogate(character);
        width = width != 0 ? width : 1;
        unsigned byte = is_surrogate ? character & 0xff : (unsigned char)text[0]; /* the byte that os.fsdecode saw */
        bool is_plain = !is_surrogate && ((byte >= 0x20 && byte != 0x7f) || (byte == '\n' && left == 1));
        char escape[] = {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
        at = is_plain ? hl_run_append(at, end, text, width) : hl_run_append(at, end, escape, sizeof escape);
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
        return; /* there is no other place to report this */
}

/* The C library's function may allocate memory for its texts, so the common texts are here. */
static const char *error_text(int error, char number[HL_DIGITS_ROOM + 8])
{
    static const struct {
        int error;
        const char *text;
    } known[] = {
        {ENOENT, "No such file or directory"}, {ENOTDIR, "Not a directory"},
        {EACCES, "Permission denied"},         {EPERM, "Operation not permitted"},
        {EROFS, "Read-only file system"},      {ENOSPC, "No space left on device"},
        {EDQUOT, "Disk quota exceeded"},       {EFBIG, "File too large"},
        {EIO, "Input/output error"},           {ENOMEM, "Cannot allocate memory"},
        {EMFILE, "Too many open files"},       {ENFILE, "Too many open files in system"},
        {ENAMETOOLONG, "File name too long"},  {EBUSY, "the tracer was busy for too long"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].error == error)
            return known[i].text;
    }
    (void)hl_digits(stpcpy(number, "error "), (uint64_t)error, 10);
    return number;
}

void hl_run_say_failure(const char *name, int error)
{
    char number[HL_DIGITS_ROOM + 8];
    hl_run_say("heapledger: cannot write ", name, ": ", error_text(error, number), "\n", NULL);
}
