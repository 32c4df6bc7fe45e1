/* run_lines.c: which lines of the program hold most. See run.h.
 *
 * Memory is charged to the newest frame of the program's own code: what a library allocates belongs to the line that has
 * called it. Which files are the program's is known by their names, by the rule of heapledger/report/_names.py.
 *
 * Threading: no state; async-signal-safe.
 */

#include <string.h>

#include "run.h"

static bool has(const char *text, size_t length, const char *part)
{
    return memmem(text, length, part, strlen(part)) != NULL;
}

static size_t digits(const char *at, const char *end)
{
    size_t count = 0;
    while (at + count < end && at[count] >= '0' && at[count] <= '9')
        count++;
    return count;
}

/* A folder /lib/python3.13/ or /lib64/python3/. */
static bool is_in_standard_library(const char *text, size_t length)
{
    static const char folder[] = "/python";
    const char *end = text + length, *at = text;
    while ((at = memmem(at, (size_t)(end - at), folder, sizeof folder - 1)) != NULL) {
        size_t before = (size_t)(at - text), count;
        bool in_lib =
            (before >= 4 && memcmp(at - 4, "/lib", 4) == 0) || (before >= 6 && memcmp(at - 6, "/lib64", 6) == 0);
        at += sizeof folder - 1;
        if (!in_lib || (count = digits(at, end)) == 0)
            continue;
        const char *after = at + count;
        if (after < end && *after == '.' && (count = digits(after + 1, end)) > 0)
            after += 1 + count;
        after += after < end && *after == 't';
        if (after < end && *after == '/')
            return true;
    }
    return false;
}

/* The command of an installed package, such as /usr/bin/black: a few lines that call it. */
static bool is_command(const char *text, size_t length)
{
    const char *name = memrchr(text, '/', length);
    size_t folder = name != NULL ? (size_t)(name - text) : 0;
    return folder >= 4 && memcmp(name - 4, "/bin", 4) == 0 && memchr(name, '.', length - folder) == NULL;
}

typedef enum { NO_FILE, STANDARD, LIBRARY, OWN } kind;

static kind kind_of(const hl_string *file)
{
    const char *text = file->bytes;
    size_t length = file->length;
    if (has(text, length, "/site-packages/") || has(text, length, "/dist-packages/") || is_command(text, length))
        return LIBRARY;
    if (length == 0 || (text[0] == '<' && text[length - 1] == '>'))
        return NO_FILE;
    return is_in_standard_library(text, length) ? STANDARD : OWN;
}

/* The line of the newest frame of at least this kind; 0: there is none. */
static hl_location_id find_line(const hl_snapshot *snapshot, hl_stack_id id, const uint8_t *kinds, kind least)
{
    const hl_stack *stack = hl_book_get_stack(snapshot->book, id);
    for (uint32_t i = 0; i < stack->depth; i++) {
        if (kinds[stack->locations[i]] >= least)
            return hl_book_get_location(snapshot->book, stack->locations[i])->line_id;
    }
    return 0;
}

/* Put a line where it belongs among the largest. */
static void enter(hl_run_lines *lines, hl_location_id line, uint64_t bytes)
{
    size_t at = HL_RUN_LINES;
    while (at > 0 && bytes > lines->largest[at - 1].bytes)
        at--;
    if (at == HL_RUN_LINES)
        return;
    memmove(lines->largest + at + 1, lines->largest + at, (HL_RUN_LINES - at - 1) * sizeof lines->largest[0]);
    lines->largest[at] = (hl_run_line){line, bytes};
}

bool hl_run_find_lines(const hl_snapshot *snapshot, hl_run_lines *lines)
{
    const hl_book *book = snapshot->book;
    uint32_t count = book->locations.used;
    uint8_t *kinds = hl_os_alloc((size_t)count + 1, 1);
    uint64_t *sums = hl_os_alloc((size_t)count + 1, sizeof *sums);
    bool found = kinds != NULL && sums != NULL;
    kind best = NO_FILE;
    *lines = (hl_run_lines){0};
    for (uint32_t id = 1; found && id <= count; id++) {
        kinds[id] = (uint8_t)kind_of(hl_book_get_string(book, hl_book_get_location(book, id)->file));
        best = kinds[id] > best ? kinds[id] : best;
    }
    for (size_t i = 0; found && i < snapshot->row_count; i++)
        sums[find_line(snapshot, snapshot->rows[i].stack, kinds, best)] +=
            snapshot->rows[i].size * snapshot->rows[i].live;
    for (uint32_t id = 1; found && id <= count; id++)
        enter(lines, id, sums[id]);
    hl_os_free(sums);
    hl_os_free(kinds);
    return found;
}
