/* test_merge.c: merged snapshots against a naive model of the rule in merge.h, families of forks included. */

#include <stdlib.h>

#include "../../src/core/merge.h"
#include "merge_model.h"
#include "sample.h"
#include "unmixed.h"

/* References run from the rows down, and nothing is in the name table that no row names. */
static void check_names(const hl_snapshot *snapshot)
{
    const hl_names *names = snapshot->names;
    uint32_t *strings = calloc(names->strings.used + 1, sizeof *strings);
    uint32_t *locations = calloc(names->locations.used + 1, sizeof *locations);
    bool *stacks = calloc(names->stacks.used + 1, sizeof *stacks);
    for (size_t i = 0; i < snapshot->row_count; i++)
        stacks[snapshot->rows[i].stack] = true;
    for (uint32_t id = 1; id <= names->stacks.used; id++) {
        const hl_stack *stack = hl_names_get_stack(names, id);
        CHECK(stacks[id]);
        CHECK_EQUAL(stack->refs, 1);
        for (uint32_t i = 0; i < stack->depth; i++)
            locations[stack->locations[i]]++;
    }
    for (uint32_t id = 1; id <= names->locations.used; id++) {
        const hl_location *location = hl_names_get_location(names, id);
        CHECK(locations[id] > 0);
        if (location->line_id != id)
            locations[location->line_id]++;
        strings[location->file]++;
        strings[location->name]++;
    }
    for (uint32_t id = 1; id <= names->locations.used; id++)
        CHECK_EQUAL(hl_names_get_location(names, id)->refs, locations[id]);
    for (uint32_t id = 1; id <= names->strings.used; id++) {
        CHECK(strings[id] > 0);
        CHECK_EQUAL(hl_names_get_string(names, id)->refs, strings[id]);
    }
    CHECK_EQUAL(names->stacks.used, names->stacks.count);
    CHECK_EQUAL(names->locations.used, names->locations.count);
    CHECK_EQUAL(names->strings.used, names->strings.count);
    free(strings);
    free(locations);
    free(stacks);
}

static void check_result(const hl_snapshot *merged, hl_snapshot *const *snapshots, size_t count, bool announced)
{
    model all = model_of(snapshots, count, announced);
    uint64_t blocks = 0, bytes = 0, nframe = 0;
    text *keys = malloc((merged->row_count + 1) * sizeof *keys);
    CHECK_EQUAL(merged->row_count, model_keys(&all));
    for (size_t i = 0; i < merged->row_count; i++) {
        const hl_row *row = &merged->rows[i];
        text key = keys[i] = key_of(merged->names, row);
        CHECK_EQUAL(row->live, model_sum(&all, &key, false));
        CHECK_EQUAL(row->allocated, model_sum(&all, &key, true));
        CHECK_EQUAL(row->origin, 0);
        blocks += row->live;
        bytes += row->live * row->size;
        for (size_t j = 0; j < i; j++)
            CHECK(keys[j].length != key.length || memcmp(keys[j].bytes, key.bytes, key.length) != 0);
    }
    for (size_t i = 0; i < merged->row_count; i++)
        free(keys[i].bytes);
    free(keys);
    for (size_t i = 0; i < count; i++)
        nframe = snapshots[i]->nframe > nframe ? snapshots[i]->nframe : nframe;
    CHECK_EQUAL(merged->blocks, blocks);
    CHECK_EQUAL(merged->bytes, bytes);
    CHECK_EQUAL(merged->nframe, nframe);
    CHECK_EQUAL(merged->moment, snapshots[0]->moment);
    CHECK_EQUAL(merged->origins.count, 0);
    CHECK_EQUAL(merged->pin, 0);
    check_names(merged);
    model_free(&all);
}

static hl_status merge_all(hl_snapshot *const *snapshots, size_t count, bool announced, hl_snapshot **merged)
{
    hl_merge *merge;
    hl_status status = hl_merge_open(NULL, &merge);
    if (status != HL_OK)
        return status;
    for (size_t i = 0; i < count && announced && status == HL_OK; i++)
        status = hl_merge_announce(merge, snapshots[i]);
    for (size_t i = 0; i < count && status == HL_OK; i++)
        status = hl_merge_add(merge, snapshots[i]);
    if (status == HL_OK)
        status = hl_merge_finish(merge, merged);
    hl_merge_close(merge);
    return status;
}

static void check_merge(hl_snapshot *const *snapshots, size_t count, bool announced)
{
    hl_snapshot *merged;
    CHECK_OR_RETURN(merge_all(snapshots, count, announced, &merged) == HL_OK);
    check_result(merged, snapshots, count, announced);
    hl_snapshot_drop(merged);
}

static void drop_all(hl_snapshot **snapshots, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hl_snapshot_drop(snapshots[i]);
}

/* Snapshots of random processes, some of which descend from others, some taken twice, some from no ledger. */
static void random_family(hl_snapshot **snapshots, size_t count, uint32_t rows, uint64_t *seed)
{
    hl_names *shared = sample_names(true);
    for (size_t i = 0; i < count; i++) {
        bool own_names = check_below(seed, 2) == 0;
        hl_names *names = own_names ? sample_names(check_below(seed, 2) == 0) : hl_names_hold(shared);
        hl_snapshot *made = snapshots[i] = sample_snapshot(names, check_below(seed, rows + 1), 3, 2, seed);
        uint32_t kind = check_below(seed, 8);
        if (kind > 0 && i > 0)
            made->origins = snapshots[check_below(seed, (uint32_t)i)]->origins;
        if (kind > 1)
            made->origins.ids[made->origins.count++] = check_random(seed);
        made->origins.forks = check_below(seed, 2);
        made->nframe = 1 + check_below(seed, 30);
        made->moment = HL_PEAK;
        for (size_t j = 0; j < made->row_count; j++) {
            made->rows[j].origin = made->origins.count > 0 ? check_below(seed, made->origins.count) : 0;
            made->rows[j].allocated = made->rows[j].live + check_below(seed, 4);
        }
        hl_names_drop(names);
    }
    hl_names_drop(shared);
}

static void random_families(void)
{
    enum { ROUNDS = 100, MOST = 8 };
    uint64_t seed = 1;
    for (int round = 0; round < ROUNDS; round++) {
        hl_snapshot *snapshots[MOST];
        size_t count = 1 + check_below(&seed, MOST);
        random_family(snapshots, count, 24, &seed);
        check_merge(snapshots, count, true);
        check_merge(snapshots, count, false);
        drop_all(snapshots, count);
    }
}

static void random_tables(void)
{
    uint64_t seed = 2;
    hl_snapshot *snapshots[3];
    random_family(snapshots, 3, 300, &seed);
    check_merge(snapshots, 3, true);
    drop_all(snapshots, 3);
}

static void few_rows_of_a_large_names(void)
{
    uint64_t seed = 3;
    hl_names *names = sample_names(true);
    char name[32];
    for (int i = 0; i < 20000; i++) {
        hl_stack_id stack;
        hl_location_id location =
            sample_location(names, name, (size_t)snprintf(name, sizeof name, "file%d.py", i), 1, "f");
        sample_must(hl_names_stack(names, &location, 1, 1, &stack));
        hl_names_release_location(names, location);
    }
    hl_snapshot *snapshots[2];
    for (int i = 0; i < 2; i++)
        snapshots[i] = sample_snapshot(names, 40, 3, 3, &seed);
    check_merge(snapshots, 2, true);
    drop_all(snapshots, 2);
    hl_names_drop(names);
}

static void nothing_merged(void)
{
    hl_names *names = sample_names(false);
    hl_snapshot *merged, *empty;
    CHECK_OR_RETURN(merge_all(NULL, 0, false, &merged) == HL_OK);
    CHECK_EQUAL(merged->row_count, 0);
    CHECK_EQUAL(merged->moment, HL_LIVE);
    hl_snapshot_drop(merged);
    sample_must(hl_snapshot_new(names, 0, &empty));
    hl_snapshot_seal(empty, 0);
    check_merge(&empty, 1, true);
    hl_snapshot_drop(empty);
    hl_names_drop(names);
}

/* One row for each origin, all alike: live[i] blocks of the i-th ledger of the line `ids`. */
static hl_snapshot *line_snapshot(const uint64_t *ids, const uint64_t *live, uint32_t count, uint32_t forks)
{
    hl_names *names = sample_names(false);
    hl_snapshot *made;
    sample_must(hl_snapshot_new(names, count, &made));
    hl_location_id location = sample_location(names, "a.py", 4, 7, "f");
    for (uint32_t i = 0; i < count; i++) {
        made->rows[i] = (hl_row){.size = 10, .live = live[i], .allocated = live[i], .origin = i & 0xff};
        sample_must(hl_names_stack(names, &location, 1, 1, &made->rows[i].stack));
        made->origins.ids[i] = ids[i];
    }
    made->origins.count = count;
    made->origins.forks = forks;
    hl_snapshot_seal(made, count);
    hl_names_drop(names);
    return made;
}

static void check_live(hl_snapshot *const *snapshots, size_t count, bool announced, uint64_t wanted)
{
    hl_snapshot *merged;
    CHECK_OR_RETURN(merge_all(snapshots, count, announced, &merged) == HL_OK);
    CHECK_EQUAL(merged->row_count, 1);
    CHECK_EQUAL(merged->blocks, wanted);
    hl_snapshot_drop(merged);
}

enum { PARENT = 100, CHILD = 200, OTHER = 300, GRANDCHILD = 400 };
#define LINE(forks, ids, live) \
    line_snapshot((const uint64_t[])ids, (const uint64_t[])live, sizeof(uint64_t[]) ids / 8, forks)
#define LIST(...) {__VA_ARGS__}

static void parents_and_children(void)
{
    hl_snapshot *family[] = {
        LINE(2, LIST(PARENT), LIST(50)),                         /* freed 10 of 60 after the forks */
        LINE(1, LIST(PARENT, CHILD), LIST(60, 5)),               /* kept them all */
        LINE(0, LIST(PARENT, OTHER), LIST(20, 3)),               /* freed most */
        LINE(0, LIST(PARENT, CHILD, GRANDCHILD), LIST(0, 4, 1)), /* freed the grandparent's and one of the parent's */
    };
    for (int announced = 0; announced < 2; announced++) {
        check_live(family, 4, announced, 60 + 5 + 3 + 1);
        check_live(family, 1, announced, 50);
        check_live(family + 1, 3, announced, 60 + 5 + 3 + 1); /* children only */
        check_live(family + 2, 2, announced, 20 + 3 + 4 + 1); /* the child that forked is not there */
        check_live((hl_snapshot *[]){family[3], family[1], family[0]}, 3, announced, 60 + 5 + 1);
        check_live((hl_snapshot *[]){family[0], family[0], family[1]}, 3, announced, 100 + 5); /* asked for twice */
    }
    drop_all(family, 4);
}

static void parents_that_do_not_know_of_their_children(void)
{
    hl_snapshot *family[] = {LINE(0, LIST(PARENT), LIST(50)), LINE(0, LIST(PARENT, CHILD), LIST(50, 1))};
    hl_snapshot *reversed[] = {family[1], family[0]};
    check_live(family, 2, true, 51);
    check_live(reversed, 2, false, 51);
    check_live(family, 2, false, 101); /* unavoidable: nothing showed when the first was added */
    drop_all(family, 2);
}

/* A stack's total is the first that is known. */
static void totals(void)
{
    static const uint32_t given[] = {0, 9, 5};
    hl_snapshot *snapshots[3], *merged;
    for (int i = 0; i < 3; i++) {
        snapshots[i] = LINE(0, LIST(1), LIST(1));
        hl_names_set_total(snapshots[i]->names, snapshots[i]->rows[0].stack, given[i]);
    }
    CHECK_OR_RETURN(merge_all(snapshots, 3, true, &merged) == HL_OK);
    CHECK_EQUAL(hl_names_get_stack(merged->names, merged->rows[0].stack)->total, 9);
    hl_snapshot_drop(merged);
    drop_all(snapshots, 3);
}

static void sums_that_do_not_fit(void)
{
    const uint64_t most = UINT64_MAX / 2 / 10; /* blocks of 10 bytes that 63 bits can count */
    const uint64_t full = UINT64_MAX;
    hl_snapshot *one = line_snapshot((const uint64_t[])LIST(1), &most, 1, 0), *two = LINE(0, LIST(1), LIST(1));
    hl_snapshot *beyond = line_snapshot((const uint64_t[])LIST(1), &full, 1, 0), *merged;
    one->rows[0].allocated = 1;
    CHECK_EQUAL(merge_all((hl_snapshot *[]){one, two}, 2, true, &merged), HL_TOO_LARGE);
    CHECK_EQUAL(merge_all((hl_snapshot *[]){beyond, two}, 2, true, &merged), HL_TOO_LARGE);
    check_live(&one, 1, true, most);
    two->rows[0].size = 12; /* a row of its own, so that only the total is too large */
    CHECK_EQUAL(merge_all((hl_snapshot *[]){one, two}, 2, true, &merged), HL_TOO_LARGE);
    two->rows[0].allocated = (UINT64_C(1) << 56) - 1;
    check_live(&two, 1, true, 1);
    CHECK_EQUAL(merge_all((hl_snapshot *[]){two, two}, 2, true, &merged), HL_TOO_LARGE);
    hl_snapshot_drop(one);
    hl_snapshot_drop(two);
    hl_snapshot_drop(beyond);
}

/* Many processes that are alike take no more than one, even where they say that they have forked: nobody inherits. */
static void memory_is_that_of_the_result(void)
{
    enum { PROCESSES = 50 };
    hl_merge *merge;
    size_t first = 0;
    sample_must(hl_merge_open(NULL, &merge));
    for (int announcing = 1; announcing >= 0; announcing--)
        for (uint64_t i = 0; i < PROCESSES; i++) {
            uint64_t seed = 6;
            hl_names *names = sample_names(false);
            hl_snapshot *snapshot = sample_snapshot(names, 2000, 5, 50, &seed);
            snapshot->origins = (hl_origins){.count = 1, .forks = 3, .ids = {i + 1}};
            hl_status status = announcing ? hl_merge_announce(merge, snapshot) : hl_merge_add(merge, snapshot);
            CHECK_EQUAL(status, HL_OK);
            if (!announcing && i == 0)
                first = hl_merge_memory(merge);
            hl_snapshot_drop(snapshot);
            hl_names_drop(names);
        }
    CHECK_EQUAL(hl_merge_memory(merge), first);
    hl_merge_close(merge);
}

/* Two merges in one name table: each has the sum of what was added to it, whichever is closed first. */
static void beside(void)
{
    uint64_t seed = 7;
    hl_snapshot *families[2][4], *merged[2];
    hl_merge *merges[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        random_family(families[i], 4, 30, &seed);
        sample_must(hl_merge_open(merges[0], &merges[i]));
    }
    for (int j = 0; j < 4; j++)
        for (int i = 0; i < 2; i++)
            sample_must(hl_merge_announce(merges[i], families[i][j]));
    for (int j = 0; j < 4; j++)
        for (int i = 0; i < 2; i++)
            sample_must(hl_merge_add(merges[i], families[i][j]));
    for (int i = 0; i < 2; i++) {
        sample_must(hl_merge_finish(merges[i], &merged[i]));
        hl_merge_close(merges[i]);
    }
    CHECK(merged[0]->names == merged[1]->names);
    for (int i = 0; i < 2; i++) {
        hl_snapshot *alone;
        sample_must(merge_all(families[i], 4, true, &alone));
        check_result(alone, families[i], 4, true);
        CHECK_EQUAL(merged[i]->row_count, alone->row_count);
        CHECK_EQUAL(merged[i]->blocks, alone->blocks);
        CHECK_EQUAL(merged[i]->bytes, alone->bytes);
        hl_snapshot_drop(alone);
        hl_snapshot_drop(merged[i]);
        drop_all(families[i], 4);
    }
}

/* Sizes from a file whose author knows the hash, but not its seed. In one chain they would take minutes. */
static void chosen_sizes(void)
{
    enum { ROWS = 200000 };
    hl_names *names = sample_names(false);
    hl_snapshot *snapshot, *merged;
    hl_location_id location = sample_location(names, "a.py", 4, 1, "f");
    hl_stack_id stack; /* the first in its name table, as in the merge's */
    sample_must(hl_names_stack(names, &location, 1, 1, &stack));
    sample_must(hl_snapshot_new(names, ROWS, &snapshot));
    for (uint64_t i = 0; i < ROWS; i++)
        snapshot->rows[i] =
            (hl_row){.size = unmixed(unmixed(i << 32) ^ (uint64_t)stack << 32), .allocated = 1, .stack = stack};
    hl_snapshot_seal(snapshot, ROWS);
    CHECK_OR_RETURN(merge_all(&snapshot, 1, true, &merged) == HL_OK);
    CHECK_EQUAL(merged->row_count, ROWS);
    hl_snapshot_drop(merged);
    hl_snapshot_drop(snapshot);
    hl_names_drop(names);
}

/* Every allocation fails once; the sanitizer sees what is not given back. A table that cannot split goes unnoticed. */
static void failures_leak_nothing(void)
{
    uint64_t seed = 5;
    hl_snapshot *snapshots[4];
    random_family(snapshots, 4, 30, &seed);
    for (int announced = 0; announced < 2; announced++) {
        size_t failed = 1, noticed = 0;
        for (size_t n = 1; failed != 0; n++) {
            hl_snapshot *merged = NULL;
            (void)hl_os_fail_every(n);
            hl_status status = merge_all(snapshots, 4, announced, &merged);
            failed = hl_os_fail_every(0);
            CHECK(status == HL_OK || (failed != 0 && status == HL_NO_MEMORY));
            CHECK((merged != NULL) == (status == HL_OK));
            noticed += status != HL_OK;
            if (merged != NULL) {
                check_result(merged, snapshots, 4, announced);
                hl_snapshot_drop(merged);
            }
        }
        CHECK(noticed > 20);
    }
    drop_all(snapshots, 4);
}

CHECK_MAIN(TEST(random_families), TEST(random_tables), TEST(few_rows_of_a_large_names), TEST(nothing_merged),
           TEST(parents_and_children), TEST(parents_that_do_not_know_of_their_children), TEST(totals),
           TEST(sums_that_do_not_fit), TEST(memory_is_that_of_the_result), TEST(beside), TEST(chosen_sizes),
           TEST(failures_leak_nothing))
