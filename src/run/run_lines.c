/* run_lines.c: finds the lines of the program that hold most. See run.h.
 *
 * Memory is charged to the newest frame of the program's own code. So what a library allocates belongs to the line that
 * called the library. If the import system is nearer to a block than any such frame, the block belongs to the imports.
 * The names of files tell which files are the program's own: docs/run.md says how. The commands that analyse files
 * follow the same rule.
 *
 * Threading: no state; async-signal-safe. If rows come from a ledger, the ledger is locked.
 */

#include <Python.h>
#include <string.h>

#include "run.h"

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
#define VERSION TEXT(PY_MAJOR_VERSION) "." TEXT(PY_MINOR_VERSION)
#define ZIP "/python" TEXT(PY_MAJOR_VERSION) TEXT(PY_MINOR_VERSION) ".zip/"

typedef struct {
    const char *at;
    size_t length;
} text;

static bool has(text whole, const char *part)
{
    return memmem(whole.at, whole.length, part, strlen(part)) != NULL;
}

static bool begins(text whole, const char *part)
{
    size_t length = strlen(part);
    return whole.length >= length && memcmp(whole.at, part, length) == 0;
}

static bool ends(text whole, const char *part)
{
    size_t length = strlen(part);
    return whole.length >= length && memcmp(whole.at + whole.length - length, part, length) == 0;
}

/* Everything up to the last slash, with the slash. */
static text folder_of(text path)
{
    const char *slash = memrchr(path.at, '/', path.length);
    return (text){path.at, slash != NULL ? (size_t)(slash - path.at) + 1 : 0};
}

static bool is_same(text one, text other)
{
    return one.length == other.length && memcmp(one.at, other.at, one.length) == 0;
}

static bool is_standard(text file, text interpreter)
{
    static const char built[] = "Lib/"; /* the folder beside an interpreter that runs where it was built */
    if (has(file, "/lib/python" VERSION "/") || has(file, "/lib64/python" VERSION "/") || has(file, ZIP))
        return true;
    return interpreter.length > 0 && file.length > interpreter.length + sizeof built &&
           memcmp(file.at, interpreter.at, interpreter.length) == 0 &&
           memcmp(file.at + interpreter.length, built, sizeof built - 1) == 0;
}

static bool is_import_system(text file)
{
    return begins(file, "<frozen importlib.") || begins(file, "<frozen importlib>") ||
           begins(file, "<frozen zipimport") || ends(folder_of(file), "/importlib/") || ends(file, "/zipimport.py");
}

/* The order matters: if a program has no code of its own, the next best kind counts. */
typedef enum { NOT_KNOWN, NOTHING, IMPORTS, STANDARD, LIBRARY, OWN } kind;

static kind kind_of(text file, text interpreter)
{
    if (has(file, "/site-packages/") || has(file, "/dist-packages/"))
        return LIBRARY;
    if (begins(file, "<frozen ") || is_standard(file, interpreter))
        return is_import_system(file) ? IMPORTS : STANDARD;
    if (begins(file, "<") && ends(file, ">"))
        return begins(file, "<unknown>") ? NOTHING : LIBRARY; /* <string>: code without a file */
    /* The command of a package, such as bin/black, contains only a few lines that call the package. */
    return is_same(folder_of(file), interpreter) && !ends(file, ".py") ? LIBRARY : OWN;
}

/* Finds the kind of each location that the rows refer to. Returns the best kind. An id that no row refers to may have
 * no name any more. */
static kind find_kinds(const hl_rows *rows, uint8_t *kinds)
{
    text executable = {hl_run_executable(), strlen(hl_run_executable())};
    kind best = STANDARD;
    size_t at = 0;
    for (hl_row row; hl_rows_next(rows, &at, &row);) {
        const hl_stack *stack = hl_names_get_stack(rows->names, row.stack);
        for (uint32_t i = 0; i < stack->depth; i++) {
            hl_location_id id = stack->locations[i];
            if (kinds[id] != NOT_KNOWN)
                continue;
            const hl_string *file = hl_names_get_string(rows->names, hl_names_get_location(rows->names, id)->file);
            kinds[id] = (uint8_t)kind_of((text){file->bytes, file->length}, folder_of(executable));
            best = kinds[id] > best ? kinds[id] : best;
        }
    }
    return best;
}

/* The line that the memory of a stack is charged to. 0: no line. IN_IMPORTS: the imports. */
#define IN_IMPORTS UINT32_MAX
static hl_location_id find_line(const hl_names *names, hl_stack_id id, const uint8_t *kinds, kind least)
{
    const hl_stack *stack = hl_names_get_stack(names, id);
    for (uint32_t i = 0; i < stack->depth; i++) {
        hl_location_id location = stack->locations[i];
        if (kinds[location] >= least)
            return hl_names_get_location(names, location)->line_id;
        if (kinds[location] == IMPORTS)
            return IN_IMPORTS;
    }
    return 0;
}

static void add_up(const hl_rows *rows, const uint8_t *kinds, kind best, uint64_t *sums, hl_run_lines *lines)
{
    size_t at = 0;
    for (hl_row row; hl_rows_next(rows, &at, &row);) {
        hl_location_id line = find_line(rows->names, row.stack, kinds, best);
        *(line == IN_IMPORTS ? &lines->imports : &sums[line]) += row.size * row.live;
        lines->bytes += row.size * row.live;
    }
}

/* The ids of the lines with the largest sums, largest first. 0: there are no more lines. */
static void find_largest(const uint64_t *sums, uint32_t count, hl_location_id largest[HL_RUN_LINES])
{
    for (uint32_t id = 1; id <= count; id++) {
        size_t at = HL_RUN_LINES;
        while (at > 0 && sums[id] > (largest[at - 1] == 0 ? 0 : sums[largest[at - 1]]))
            at--;
        if (at == HL_RUN_LINES)
            continue;
        memmove(largest + at + 1, largest + at, (HL_RUN_LINES - at - 1) * sizeof largest[0]);
        largest[at] = id;
    }
}

static void describe(const hl_names *names, hl_location_id id, uint64_t bytes, hl_run_line *line)
{
    const hl_location *location = hl_names_get_location(names, id);
    const hl_string *file = hl_names_get_string(names, location->file);
    size_t length = file->length < sizeof line->file ? file->length : sizeof line->file - 1;
    line->bytes = bytes;
    line->number = location->line;
    memcpy(line->file, file->bytes, length);
    line->file[length] = '\0';
}

bool hl_run_find_lines(const hl_rows *rows, hl_run_lines *lines)
{
    uint32_t count = rows->names->locations.used;
    uint8_t *kinds = hl_os_alloc((size_t)count + 1, 1);
    uint64_t *sums = hl_os_alloc((size_t)count + 1, sizeof *sums);
    hl_location_id largest[HL_RUN_LINES] = {0};
    bool found = kinds != NULL && sums != NULL;
    lines->moment = rows->moment;
    lines->bytes = lines->imports = 0;
    if (found) {
        kind best = find_kinds(rows, kinds);
        add_up(rows, kinds, best, sums, lines);
        find_largest(sums, count, largest);
    }
    for (size_t i = 0; i < HL_RUN_LINES; i++) {
        lines->largest[i].bytes = 0;
        if (largest[i] != 0)
            describe(rows->names, largest[i], sums[largest[i]], &lines->largest[i]);
    }
    hl_os_free(sums);
    hl_os_free(kinds);
    return found;
}
