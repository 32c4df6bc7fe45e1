/* sample.h: name tables and snapshots made up for tests of the analysis. */
#ifndef HL_SAMPLE_H
#define HL_SAMPLE_H

#include <stdlib.h>

#include "../../src/core/snapshot.h"
#include "check.h"

/* Out of memory here is the test's own failure. */
static inline void sample_must(hl_status status)
{
    if (status != HL_OK) {
        printf("sample.h: no memory for the test itself\n");
        abort();
    }
}

static inline hl_names *sample_names(bool stable)
{
    hl_names *names;
    sample_must(hl_names_new(stable, &names));
    return names;
}

static inline hl_location_id sample_location(hl_names *names, const char *file, size_t length, uint32_t line,
                                             const char *name)
{
    hl_string_id file_id, name_id;
    hl_location_id id;
    sample_must(hl_names_string(names, file, length, &file_id));
    sample_must(hl_names_string(names, name, strlen(name), &name_id));
    sample_must(hl_names_location(names, file_id, line, name_id, &id));
    hl_names_release_string(names, file_id);
    hl_names_release_string(names, name_id);
    return id;
}

/* What random samples are made of: names that begin alike, hold each other, and leave ASCII. */
typedef struct {
    const char *bytes;
    size_t length;
} sample_name;

#define SAMPLE_NAME(literal) {literal, sizeof(literal) - 1}
static const sample_name sample_files[] = {SAMPLE_NAME("/lib/json/decoder.py"),
                                           SAMPLE_NAME("/lib/json/encoder.py"),
                                           SAMPLE_NAME("/lib/json/decoder.pyc"),
                                           SAMPLE_NAME("/lib/json/"),
                                           SAMPLE_NAME("/lib/re.py"),
                                           SAMPLE_NAME("<unknown>"),
                                           SAMPLE_NAME(""),
                                           SAMPLE_NAME("a"),
                                           SAMPLE_NAME("a\0"),
                                           SAMPLE_NAME("a\0b"),
                                           SAMPLE_NAME("\303\251.py"),
                                           SAMPLE_NAME("\355\240\200"),
                                           SAMPLE_NAME("\356\200\200"),
                                           SAMPLE_NAME("\360\237\230\200.pyc")};
enum { SAMPLE_FILES = sizeof sample_files / sizeof *sample_files };

/* Few lines and functions, so that lines meet again under another function, and stacks under other lines. */
static inline hl_location_id sample_any_location(hl_names *names, uint64_t *seed)
{
    static const char *const functions[] = {"f", "g", "<module>"};
    const sample_name *file = &sample_files[check_below(seed, SAMPLE_FILES)];
    return sample_location(names, file->bytes, file->length, check_below(seed, 4), functions[check_below(seed, 3)]);
}

/* `rows` rows with stacks of 1 to `deepest` frames, a few dead ones and a few without frames among them. `variety`
 * bounds sizes and counts: 1 makes every comparison go down to the tracebacks. */
static inline hl_snapshot *sample_snapshot(hl_names *names, size_t rows, uint32_t deepest, uint32_t variety,
                                           uint64_t *seed)
{
    hl_snapshot *snapshot;
    sample_must(hl_snapshot_new(names, rows, &snapshot));
    hl_location_id *locations = malloc(deepest * sizeof *locations);
    for (size_t i = 0; i < rows; i++) {
        uint32_t depth = check_below(seed, 40) == 0 ? 0 : 1 + check_below(seed, deepest);
        for (uint32_t j = 0; j < depth; j++)
            locations[j] = sample_any_location(names, seed);
        hl_row *row = &snapshot->rows[i];
        row->size = check_below(seed, variety);
        row->live = check_below(seed, 10) == 0 ? 0 : 1 + check_below(seed, variety);
        row->allocated = row->live + 1;
        row->domain = check_below(seed, 3);
        sample_must(hl_names_stack(names, locations, depth, depth, &row->stack));
        for (uint32_t j = 0; j < depth; j++)
            hl_names_release_location(names, locations[j]);
    }
    free(locations);
    hl_snapshot_seal(snapshot, rows);
    return snapshot;
}

/* What only some snapshots have: a moment, a frame limit, origins. */
static inline void sample_vary(hl_snapshot *snapshot, uint64_t *seed)
{
    snapshot->moment = (hl_moment)check_below(seed, 3);
    snapshot->nframe = check_below(seed, 100);
    snapshot->origins.count = check_below(seed, 4);
    snapshot->origins.forks = check_below(seed, 4);
    for (uint32_t i = 0; i < snapshot->origins.count; i++)
        snapshot->origins.ids[i] = check_random(seed);
    for (size_t i = 0; i < snapshot->row_count && snapshot->origins.count != 0; i++)
        snapshot->rows[i].origin = (uint8_t)check_below(seed, snapshot->origins.count);
}

#endif
