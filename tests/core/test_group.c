/* test_group.c: statistics and differences against a naive model written from the stdlib's definition. */

#include <stdlib.h>

#include "../../src/core/group.h"
#include "sample.h"

/* The model: a traceback as the stdlib has it, (file, line) pairs, oldest first. */
typedef struct {
    const char *file;
    size_t length;
    uint32_t line;
} frame;

typedef struct {
    frame *frames;
    size_t depth;
} traceback;

typedef struct {
    traceback about;
    uint64_t sums[2][2]; /* of the new and the old snapshot: size, count */
} model_group;

typedef struct {
    model_group *groups;
    size_t count;
} model;

static frame frame_of(const hl_names *names, hl_location_id id, bool with_line)
{
    const hl_location *location = hl_names_get_location(names, id);
    const hl_string *file = hl_names_get_string(names, location->file);
    return (frame){file->bytes, file->length, with_line ? location->line : 0};
}

static traceback traceback_of_frame(const hl_names *names, hl_location_id id, bool with_line)
{
    traceback made = {malloc(sizeof *made.frames), 1};
    made.frames[0] = frame_of(names, id, with_line);
    return made;
}

static traceback traceback_of_stack(const hl_names *names, hl_stack_id id)
{
    const hl_stack *stack = hl_names_get_stack(names, id);
    traceback made = {malloc(stack->depth * sizeof *made.frames), stack->depth};
    for (uint32_t i = 0; i < stack->depth; i++)
        made.frames[stack->depth - 1 - i] = frame_of(names, stack->locations[i], true);
    return made;
}

/* What a key of the engine's answer is about. */
static traceback traceback_of_key(const hl_names *names, hl_key_type key_type, uint32_t key)
{
    if (key_type == HL_BY_STACK)
        return traceback_of_stack(names, key);
    if (key_type == HL_BY_LINE)
        return traceback_of_frame(names, key, true);
    const hl_string *file = hl_names_get_string(names, key);
    traceback made = {malloc(sizeof *made.frames), 1};
    made.frames[0] = (frame){file->bytes, file->length, 0};
    return made;
}

static int compare_frames(const frame *a, const frame *b)
{
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->file, b->file, shorter);
    if (order != 0)
        return order;
    if (a->length != b->length)
        return a->length < b->length ? -1 : 1;
    return (a->line > b->line) - (a->line < b->line);
}

static int compare_tracebacks(const traceback *a, const traceback *b)
{
    for (size_t i = 0; i < a->depth && i < b->depth; i++) {
        int order = compare_frames(&a->frames[i], &b->frames[i]);
        if (order != 0)
            return order;
    }
    return (a->depth > b->depth) - (a->depth < b->depth);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static int compare_groups(const void *left, const void *right)
{
    const model_group *a = left, *b = right;
    uint64_t keys[4][2] = {
        {distance(a->sums[0][0], a->sums[1][0]), distance(b->sums[0][0], b->sums[1][0])},
        {a->sums[0][0], b->sums[0][0]},
        {distance(a->sums[0][1], a->sums[1][1]), distance(b->sums[0][1], b->sums[1][1])},
        {a->sums[0][1], b->sums[0][1]},
    };
    for (int i = 0; i < 4; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] > keys[i][1] ? -1 : 1;
    return -compare_tracebacks(&a->about, &b->about);
}

/* Takes `about` over. */
static void model_add(model *to, traceback about, bool old, const hl_row *row)
{
    size_t at = 0;
    while (at < to->count && compare_tracebacks(&to->groups[at].about, &about) != 0)
        at++;
    if (at == to->count) {
        to->groups = realloc(to->groups, ++to->count * sizeof *to->groups);
        to->groups[at] = (model_group){.about = about};
    } else {
        free(about.frames);
    }
    to->groups[at].sums[old][0] += row->size * row->live;
    to->groups[at].sums[old][1] += row->live;
}

static void model_add_rows(model *to, const hl_snapshot *snapshot, hl_key_type key_type, bool cumulative, bool old)
{
    for (size_t i = 0; i < snapshot->row_count; i++) {
        const hl_row *row = &snapshot->rows[i];
        const hl_stack *stack = hl_names_get_stack(snapshot->names, row->stack);
        if (row->live == 0 || stack->depth == 0)
            continue;
        if (key_type == HL_BY_STACK) {
            model_add(to, traceback_of_stack(snapshot->names, row->stack), old, row);
            continue;
        }
        for (uint32_t j = 0; j < (cumulative ? stack->depth : 1); j++)
            model_add(to, traceback_of_frame(snapshot->names, stack->locations[j], key_type == HL_BY_LINE), old, row);
    }
}

static void model_free(model *gone)
{
    for (size_t i = 0; i < gone->count; i++)
        free(gone->groups[i].about.frames);
    free(gone->groups);
}

static const struct {
    hl_key_type key_type;
    bool cumulative;
} ways[] = {{HL_BY_FILE, false}, {HL_BY_FILE, true}, {HL_BY_LINE, false}, {HL_BY_LINE, true}, {HL_BY_STACK, false}};
enum { WAYS = sizeof ways / sizeof *ways };

static void check_key(const hl_names *names, hl_key_type key_type, uint32_t key, const traceback *wanted)
{
    traceback found = traceback_of_key(names, key_type, key);
    CHECK(compare_tracebacks(&found, wanted) == 0);
    free(found.frames);
}

static void check_statistics(const hl_snapshot *snapshot, hl_key_type key_type, bool cumulative)
{
    model wanted = {NULL, 0};
    model_add_rows(&wanted, snapshot, key_type, cumulative, false);
    if (wanted.count != 0)
        qsort(wanted.groups, wanted.count, sizeof *wanted.groups, compare_groups);
    hl_group *groups;
    size_t count;
    CHECK_OR_RETURN(hl_group_rows(snapshot, key_type, cumulative, &groups, &count) == HL_OK);
    if (CHECK_EQUAL(count, wanted.count))
        for (size_t i = 0; i < count; i++) {
            CHECK_EQUAL(groups[i].size, wanted.groups[i].sums[0][0]);
            CHECK_EQUAL(groups[i].count, wanted.groups[i].sums[0][1]);
            check_key(snapshot->names, key_type, groups[i].key, &wanted.groups[i].about);
        }
    hl_os_free(groups);
    model_free(&wanted);
}

static void check_differences(const hl_snapshot *snapshot, const hl_snapshot *old, hl_key_type key_type,
                              bool cumulative)
{
    model wanted = {NULL, 0};
    model_add_rows(&wanted, snapshot, key_type, cumulative, false);
    model_add_rows(&wanted, old, key_type, cumulative, true);
    if (wanted.count != 0)
        qsort(wanted.groups, wanted.count, sizeof *wanted.groups, compare_groups);
    hl_difference *found;
    size_t count;
    CHECK_OR_RETURN(hl_group_compare(snapshot, old, key_type, cumulative, &found, &count) == HL_OK);
    if (CHECK_EQUAL(count, wanted.count))
        for (size_t i = 0; i < count; i++) {
            const model_group *group = &wanted.groups[i];
            CHECK_EQUAL(found[i].size, group->sums[0][0]);
            CHECK_EQUAL(found[i].count, group->sums[0][1]);
            CHECK_EQUAL(found[i].old_size, group->sums[1][0]);
            CHECK_EQUAL(found[i].old_count, group->sums[1][1]);
            CHECK_EQUAL(found[i].from_old, group->sums[0][1] == 0);
            check_key(found[i].from_old ? old->names : snapshot->names, key_type, found[i].key, &group->about);
        }
    hl_os_free(found);
    model_free(&wanted);
}

/* Against hl_group_compare, which is right; `old` may be NULL. */
static void check_changes(const hl_snapshot *snapshot, const hl_snapshot *old, hl_key_type key_type, size_t wanted)
{
    hl_difference *all, *found;
    size_t count, found_count, changed = 0;
    CHECK_OR_RETURN(hl_group_compare(snapshot, old, key_type, false, &all, &count) == HL_OK);
    CHECK_OR_RETURN(hl_group_changes(snapshot, old, key_type, wanted, &found, &found_count) == HL_OK);
    for (size_t i = 0; i < count; i++) {
        if (all[i].size == all[i].old_size && all[i].count == all[i].old_count)
            continue;
        if (changed < wanted && changed < found_count) {
            CHECK_EQUAL(found[changed].key, all[i].key);
            CHECK_EQUAL(found[changed].from_old, all[i].from_old);
            CHECK_EQUAL(found[changed].size, all[i].size);
            CHECK_EQUAL(found[changed].old_count, all[i].old_count);
        }
        changed++;
    }
    CHECK_EQUAL(found_count, changed);
    hl_os_free(all);
    hl_os_free(found);
}

static void random_statistics(void)
{
    uint64_t seed = 1;
    for (int round = 0; round < 60; round++) {
        hl_names *names = sample_names(round % 2 == 0);
        hl_snapshot *snapshot =
            sample_snapshot(names, check_below(&seed, 200), 1 + check_below(&seed, 6), 1 + round % 3 * 50, &seed);
        for (int i = 0; i < WAYS; i++)
            check_statistics(snapshot, ways[i].key_type, ways[i].cumulative);
        hl_snapshot_drop(snapshot);
        hl_names_drop(names);
    }
}

static void random_differences(void)
{
    uint64_t seed = 2;
    for (int round = 0; round < 60; round++) {
        hl_names *names = sample_names(true), *other = round % 2 == 0 ? sample_names(false) : hl_names_hold(names);
        uint32_t deepest = 1 + check_below(&seed, 4), variety = 1 + (uint32_t)round % 3 * 3;
        hl_snapshot *snapshot = sample_snapshot(names, check_below(&seed, 150), deepest, variety, &seed);
        hl_snapshot *old = sample_snapshot(other, check_below(&seed, 150), deepest, variety, &seed);
        for (int i = 0; i < WAYS; i++) {
            check_differences(snapshot, old, ways[i].key_type, ways[i].cumulative);
            check_differences(snapshot, snapshot, ways[i].key_type, ways[i].cumulative);
            check_changes(snapshot, old, ways[i].key_type, check_below(&seed, 40));
            check_changes(snapshot, snapshot, ways[i].key_type, 10);
            check_changes(snapshot, NULL, ways[i].key_type, check_below(&seed, 40));
        }
        hl_snapshot_drop(snapshot);
        hl_snapshot_drop(old);
        hl_names_drop(names);
        hl_names_drop(other);
    }
}

/* Thousands of names in the name table, a handful in the rows: ids are hashed instead of indexing arrays. */
static void few_rows_of_a_large_names(void)
{
    uint64_t seed = 3;
    hl_names *names = sample_names(true);
    for (uint32_t i = 0; i < 20000; i++) {
        char file[16];
        hl_location_id location = sample_location(names, file, (size_t)snprintf(file, sizeof file, "%u", i), i, "f");
        hl_stack_id stack;
        sample_must(hl_names_stack(names, &location, 1, 1, &stack));
    }
    hl_snapshot *snapshot = sample_snapshot(names, 40, 10, 2, &seed), *old = sample_snapshot(names, 40, 10, 2, &seed);
    hl_names *small = sample_names(false);
    hl_snapshot *other = sample_snapshot(small, 40, 10, 2, &seed);
    for (int i = 0; i < WAYS; i++) {
        check_statistics(snapshot, ways[i].key_type, ways[i].cumulative);
        check_differences(snapshot, old, ways[i].key_type, ways[i].cumulative);
        check_differences(snapshot, other, ways[i].key_type, ways[i].cumulative);
        check_differences(other, snapshot, ways[i].key_type, ways[i].cumulative);
    }
    hl_snapshot_drop(snapshot);
    hl_snapshot_drop(old);
    hl_snapshot_drop(other);
    hl_names_drop(names);
    hl_names_drop(small);
}

/* One file, hundreds of lines, half of them in both name tables: lines meet by file and line, not by file or hash
 * alone. */
static void many_lines_in_two_books(void)
{
    enum { ROWS = 500 };
    hl_names *names[2] = {sample_names(false), sample_names(false)};
    hl_snapshot *snapshots[2];
    for (int i = 0; i < 2; i++) {
        sample_must(hl_snapshot_new(names[i], ROWS, &snapshots[i]));
        for (uint32_t j = 0; j < ROWS; j++) {
            hl_location_id location = sample_location(names[i], "a.py", 4, j + (i == 0 ? 0 : ROWS / 2), "f");
            snapshots[i]->rows[j] = (hl_row){.size = j, .live = 1};
            sample_must(hl_names_stack(names[i], &location, 1, 1, &snapshots[i]->rows[j].stack));
        }
        hl_snapshot_seal(snapshots[i], ROWS);
    }
    for (int i = 0; i < WAYS; i++)
        check_differences(snapshots[0], snapshots[1], ways[i].key_type, ways[i].cumulative);
    for (int i = 0; i < 2; i++) {
        hl_snapshot_drop(snapshots[i]);
        hl_names_drop(names[i]);
    }
}

static void stacks_that_differ_in_functions_are_one(void)
{
    hl_names *names = sample_names(false);
    hl_location_id frames[2][2];
    for (int i = 0; i < 2; i++)
        for (uint32_t j = 0; j < 2; j++)
            frames[i][j] = sample_location(names, "a.py", 4, j + 1, i == 0 ? "f" : "g");
    hl_snapshot *snapshot;
    sample_must(hl_snapshot_new(names, 2, &snapshot));
    for (int i = 0; i < 2; i++) {
        snapshot->rows[i] = (hl_row){.size = 10, .live = 1 + (uint64_t)i};
        sample_must(hl_names_stack(names, frames[i], 2, 2, &snapshot->rows[i].stack));
    }
    hl_snapshot_seal(snapshot, 2);
    CHECK(snapshot->rows[0].stack != snapshot->rows[1].stack);
    hl_group *groups;
    size_t count;
    CHECK_OR_RETURN(hl_group_rows(snapshot, HL_BY_STACK, false, &groups, &count) == HL_OK);
    CHECK_EQUAL(count, 1);
    CHECK_EQUAL(groups[0].size, 30);
    CHECK_EQUAL(groups[0].count, 3);
    CHECK_EQUAL(groups[0].key, snapshot->rows[0].stack);
    hl_os_free(groups);
    check_statistics(snapshot, HL_BY_LINE, true);
    hl_snapshot_drop(snapshot);
    hl_names_drop(names);
}

/* The oldest frames are equal for 65,000 frames: no recursion, no quadratic time. */
static void very_deep_stacks(void)
{
    enum { DEPTH = 65535 };
    hl_names *names = sample_names(false);
    hl_location_id same = sample_location(names, "deep.py", 7, 1, "f"), *frames = malloc(DEPTH * sizeof *frames);
    hl_snapshot *snapshot;
    sample_must(hl_snapshot_new(names, 3, &snapshot));
    for (uint32_t i = 0; i < DEPTH; i++)
        frames[i] = same;
    for (uint32_t i = 0; i < 3; i++) {
        snapshot->rows[i] = (hl_row){.size = 1, .live = 1};
        frames[0] = sample_location(names, "deep.py", 7, i + 1, "f");
        sample_must(hl_names_stack(names, frames, DEPTH - (i == 0), DEPTH, &snapshot->rows[i].stack));
    }
    hl_snapshot_seal(snapshot, 3);
    for (int i = 0; i < WAYS; i++)
        if (!ways[i].cumulative)
            check_statistics(snapshot, ways[i].key_type, false);
    free(frames);
    hl_snapshot_drop(snapshot);
    hl_names_drop(names);
}

static void no_rows_no_groups(void)
{
    hl_names *names = sample_names(false), *other = sample_names(false);
    hl_snapshot *snapshot, *old;
    sample_must(hl_snapshot_new(names, 0, &snapshot));
    sample_must(hl_snapshot_new(other, 0, &old));
    for (int i = 0; i < WAYS; i++) {
        check_statistics(snapshot, ways[i].key_type, ways[i].cumulative);
        check_differences(snapshot, old, ways[i].key_type, ways[i].cumulative);
    }
    hl_snapshot_drop(snapshot);
    hl_snapshot_drop(old);
    hl_names_drop(names);
    hl_names_drop(other);
}

/* Every allocation fails once; the sanitizer sees what is not given back. Only cutting the answer to size may fail
 * unnoticed. */
static void failures_leak_nothing(void)
{
    uint64_t seed = 4;
    hl_names *names = sample_names(true), *other = sample_names(false);
    hl_snapshot *snapshot = sample_snapshot(names, 50, 4, 3, &seed), *old = sample_snapshot(other, 50, 4, 3, &seed);
    for (int i = 0; i < 2 * WAYS; i++) {
        size_t failed = 1, unnoticed = 0;
        for (size_t n = 1; failed != 0; n++) {
            hl_group *groups = NULL;
            hl_difference *differences = NULL;
            size_t count;
            (void)hl_os_fail_every(n);
            hl_status status = i < WAYS ? hl_group_rows(snapshot, ways[i].key_type, ways[i].cumulative, &groups, &count)
                                        : hl_group_compare(snapshot, old, ways[i - WAYS].key_type,
                                                           ways[i - WAYS].cumulative, &differences, &count);
            failed = hl_os_fail_every(0);
            CHECK(status == HL_OK || (failed != 0 && status == HL_NO_MEMORY));
            unnoticed += status == HL_OK && failed != 0;
            CHECK((groups != NULL || differences != NULL) == (status == HL_OK));
            CHECK(n > 5 || failed != 0);
            hl_os_free(groups);
            hl_os_free(differences);
        }
        CHECK_EQUAL(unnoticed, 1);
    }
    hl_snapshot_drop(snapshot);
    hl_snapshot_drop(old);
    hl_names_drop(names);
    hl_names_drop(other);
}

CHECK_MAIN(TEST(random_statistics), TEST(random_differences), TEST(few_rows_of_a_large_names),
           TEST(many_lines_in_two_books), TEST(stacks_that_differ_in_functions_are_one), TEST(very_deep_stacks),
           TEST(no_rows_no_groups), TEST(failures_leak_nothing))
