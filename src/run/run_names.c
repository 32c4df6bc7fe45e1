/* run_names.c: the names of the files that `heapledger run` writes. See run.h.
 *
 * Threading: no state; async-signal-safe.
 */

#include <string.h>

#include "../core/digits.h"
#include "run.h"

char *hl_run_append(char *at, const char *end, const char *text, size_t length)
{
    if (at == NULL || length >= (size_t)(end - at))
        return NULL;
    memcpy(at, text, length);
    at[length] = '\0';
    return at + length;
}

/* Expands a template. %p becomes `process`. Sets *named if the template contains %p. */
static char *expand(const char *from, size_t length, const char *process, char *at, const char *end, bool *named)
{
    for (size_t i = 0; i < length; i++) {
        bool code = from[i] == '%' && i + 1 < length && (from[i + 1] == 'p' || from[i + 1] == '%');
        bool is_process = code && from[i + 1] == 'p';
        at = is_process ? hl_run_append(at, end, process, strlen(process)) : hl_run_append(at, end, from + i, 1);
        *named |= is_process;
        i += code;
    }
    return at;
}

/* The part that distinguishes files goes here, before the suffix. */
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
    if (!named && !later && !is_root) { /* each process needs its own file */
        at = hl_run_append(at, end, "-", 1);
        at = hl_run_append(at, end, process, strlen(process));
    }
    at = hl_run_append(at, end, part, strlen(part));
    if (file[stem] != '\0')
        at = hl_run_append(at, end, suffix, strlen(suffix));
    return at != NULL;
}

bool hl_run_file_name(const hl_run_options *options, pid_t process, const char *part, char name[PATH_MAX])
{
    char digits[HL_DIGITS_ROOM];
    (void)hl_digits(digits, (uint64_t)process, 10);
    return make_name(options, digits, process == options->root, part, name);
}

bool hl_run_pattern(const hl_run_options *options, bool has_parts, char pattern[PATH_MAX])
{
    const char *file = options->file, *end = pattern + PATH_MAX;
    size_t stem = stem_length(file);
    bool named = false;
    char *at = expand(file, stem, "*", pattern, end, &named);
    bool open = at != NULL && at[-1] == '*', in_suffix = false;
    char suffix[PATH_MAX] = "";
    (void)expand(file + stem, strlen(file + stem), "*", suffix, suffix + sizeof suffix, &in_suffix);
    if (!open && (has_parts || (!named && !in_suffix)))
        at = hl_run_append(at, end, "*", 1);
    at = hl_run_append(at, end, suffix, strlen(suffix));
    return at != NULL;
}
