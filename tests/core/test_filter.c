/* test_filter.c: filtered snapshots against the stdlib's rules, spelled out row by row. */

#include "filter_model.h"

static hl_filter pattern_filter(bool inclusive, const char *pattern)
{
    return (hl_filter){.inclusive = inclusive,
                       .any_line = true,
                       .any_domain = true,
                       .pattern = pattern,
                       .pattern_length = strlen(pattern)};
}

static hl_filter any_filter(uint64_t *seed)
{
    static const char *const patterns[] = {"*",       "*.py", "/lib/json/*", "a",    "a?", "?.py",
                                           "nothing", "",     "[!<]*",       "*.pyc"};
    hl_filter filter =
        pattern_filter(check_below(seed, 2) == 0, patterns[check_below(seed, sizeof patterns / sizeof *patterns)]);
    filter.any_line = check_below(seed, 2) == 0;
    filter.line = (int64_t)check_below(seed, 6) - 1;
    filter.all_frames = check_below(seed, 2) == 0;
    filter.any_domain = check_below(seed, 2) == 0;
    filter.domain = (int64_t)check_below(seed, 5) - 1;
    if (check_below(seed, 5) == 0) {
        filter.any_file = true;
        filter.any_domain = false;
        filter.pattern = NULL;
        filter.pattern_length = 0;
    }
    return filter;
}

static void random_filters(void)
{
    uint64_t seed = 1;
    for (int round = 0; round < 40; round++) {
        hl_names *names = sample_names(round % 2 == 0);
        hl_snapshot *snapshot = sample_snapshot(names, check_below(&seed, 200), 1 + check_below(&seed, 6), 20, &seed);
        snapshot->nframe = 7;
        for (int i = 0; i < 25; i++) {
            hl_filter filters[6];
            size_t count = check_below(&seed, 7);
            for (size_t j = 0; j < count; j++)
                filters[j] = any_filter(&seed);
            check_filtered(snapshot, filters, count);
        }
        hl_snapshot_drop(snapshot);
        hl_names_drop(names);
    }
}

static void no_filter_copies(void)
{
    uint64_t seed = 2;
    hl_names *names = sample_names(false);
    hl_snapshot *snapshot = sample_snapshot(names, 30, 3, 20, &seed), *copy, *empty, *emptier;
    CHECK_OR_RETURN(hl_filter_snapshot(snapshot, NULL, 0, &copy) == HL_OK);
    CHECK_EQUAL(copy->row_count, 30);
    CHECK(copy->rows != snapshot->rows && memcmp(copy->rows, snapshot->rows, 30 * sizeof *copy->rows) == 0);
    hl_filter nothing = pattern_filter(true, "no such file");
    CHECK_OR_RETURN(hl_filter_snapshot(copy, &nothing, 1, &empty) == HL_OK);
    CHECK_EQUAL(empty->row_count, 0);
    CHECK_OR_RETURN(hl_filter_snapshot(empty, &nothing, 1, &emptier) == HL_OK);
    CHECK_EQUAL(emptier->row_count, 0);
    hl_snapshot_drop(emptier);
    hl_snapshot_drop(copy);
    hl_snapshot_drop(empty);
    hl_snapshot_drop(snapshot);
    hl_names_drop(names);
}

/* What a filtered snapshot names outlives both the source and the sites in the name table. */
static void keeps_what_it_names(void)
{
    uint64_t seed = 3;
    hl_names *names = sample_names(true);
    hl_snapshot *snapshot = sample_snapshot(names, 100, 4, 20, &seed), *filtered;
    snapshot->pin = hl_names_pin(names);
    CHECK_OR_RETURN(snapshot->pin != 0);
    hl_filter python = pattern_filter(true, "*.py");
    CHECK_OR_RETURN(hl_filter_snapshot(snapshot, &python, 1, &filtered) == HL_OK);
    CHECK(filtered->row_count > 0);
    for (size_t i = 0; i < snapshot->row_count; i++)
        hl_names_release_stack(names, snapshot->rows[i].stack);
    hl_snapshot_drop(snapshot);
    hl_names_sweep(names, 200);
    for (size_t i = 0; i < filtered->row_count; i++)
        CHECK(lets_pass(names, &python, &filtered->rows[i]));
    hl_snapshot_drop(filtered);
    hl_names_sweep(names, 200);
    CHECK_EQUAL(names->stacks.count, 0);
    CHECK_EQUAL(names->strings.count, 0);
    hl_names_drop(names);
}

static void failures_leak_nothing(void)
{
    uint64_t seed = 4;
    hl_names *names = sample_names(true);
    hl_snapshot *snapshot = sample_snapshot(names, 50, 4, 3, &seed);
    snapshot->pin = hl_names_pin(names);
    hl_filter filters[] = {pattern_filter(true, "*.py"), pattern_filter(false, "a*")};
    hl_status status = HL_NO_MEMORY;
    for (size_t n = 1; status != HL_OK; n++) {
        hl_snapshot *filtered = NULL;
        (void)hl_os_fail_every(n);
        status = hl_filter_snapshot(snapshot, filters, 2, &filtered);
        size_t failed = hl_os_fail_every(0);
        CHECK(status == (failed == 0 ? HL_OK : HL_NO_MEMORY));
        CHECK((filtered != NULL) == (status == HL_OK));
        CHECK(n > 5 || failed != 0);
        if (filtered != NULL)
            hl_snapshot_drop(filtered);
    }
    hl_snapshot_drop(snapshot);
    hl_names_drop(names);
}

/* So many rows have pages of their own, of which the last is not full. */
static void many_rows(void)
{
    enum { ROWS = 200001 };
    uint64_t seed = 5;
    hl_names *names = sample_names(false);
    hl_snapshot *few = sample_snapshot(names, 300, 4, 20, &seed), *many;
    size_t before = hl_snapshot_memory();
    CHECK_OR_RETURN(hl_snapshot_new(names, ROWS, &many) == HL_OK);
    CHECK(many->rows[0].live == 0 && many->rows[ROWS - 1].live == 0);
    for (size_t i = 0; i < ROWS; i++)
        many->rows[i] = few->rows[i % few->row_count];
    hl_snapshot_seal(many, ROWS);
    CHECK_EQUAL(hl_snapshot_memory(), before + ROWS * sizeof(hl_row));
    hl_filter filters[] = {pattern_filter(true, "*.py"), pattern_filter(false, "/lib/*")};
    filters[1].all_frames = true;
    check_filtered(many, filters, 1);
    check_filtered(many, filters, 2);
    hl_snapshot_drop(many);
    CHECK_EQUAL(hl_snapshot_memory(), before);
    hl_snapshot_drop(few);
    hl_names_drop(names);
}

CHECK_MAIN(TEST(random_filters), TEST(no_filter_copies), TEST(keeps_what_it_names), TEST(failures_leak_nothing),
           TEST(many_rows))
