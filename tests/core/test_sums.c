/* test_sums.c: sums by a caller's key, against a naive model. */

#include <stdlib.h>

#include "../../src/core/sums.h"
#include "sample.h"

/* A location's key: its line, so that many locations share one; those of one line have none. */
enum { KEYS = 3 };

static uint32_t key_of(const hl_names *names, hl_location_id id)
{
    uint32_t key = hl_names_get_location(names, id)->line % (KEYS + 1);
    return key < KEYS ? key : HL_SUMS_NO_KEY;
}

/* The frames that count: all, or from the first to the last of one. */
static void count_frames(const hl_names *names, const hl_stack *stack, hl_sums_frames frames, uint32_t *from,
                         uint32_t *to)
{
    *from = 0;
    if (frames == HL_SUMS_FIRST)
        while (*from + 1 < stack->depth && key_of(names, stack->locations[*from]) == HL_SUMS_NO_KEY)
            ++*from;
    *to = frames == HL_SUMS_ALL || stack->depth == 0 ? stack->depth : *from + 1;
}

static void model(const hl_snapshot *snapshot, hl_sums_frames frames, hl_sum wanted[KEYS + 1])
{
    memset(wanted, 0, (KEYS + 1) * sizeof *wanted);
    for (size_t i = 0; i < snapshot->row_count; i++) {
        const hl_row *row = &snapshot->rows[i];
        const hl_stack *stack = hl_names_get_stack(snapshot->names, row->stack);
        uint32_t from, to;
        bool none = stack->depth > 0;
        count_frames(snapshot->names, stack, frames, &from, &to);
        for (uint32_t key = 0; key <= KEYS; key++) {
            bool there = key == KEYS && none;
            for (uint32_t frame = from; frame < to; frame++)
                there |= key_of(snapshot->names, stack->locations[frame]) == key;
            none &= !there;
            wanted[key].bytes += there ? row->size * row->live : 0;
            wanted[key].blocks += there ? row->live : 0;
        }
    }
}

static void check_sums(const hl_snapshot *snapshot, hl_sums_frames frames)
{
    hl_sum wanted[KEYS + 1], found[KEYS + 1];
    hl_sums sums;
    model(snapshot, frames, wanted);
    CHECK_OR_RETURN(hl_sums_open(&sums, snapshot, frames) == HL_OK);
    uint32_t *keys = malloc((sums.count + 1) * sizeof *keys);
    for (uint32_t i = 0; i < sums.count; i++) {
        keys[i] = key_of(snapshot->names, sums.locations[i]);
        for (uint32_t j = 0; j < i; j++)
            CHECK(sums.locations[i] != sums.locations[j]);
    }
    CHECK(hl_sums_add(&sums, keys, KEYS, found) == HL_OK);
    for (uint32_t key = 0; key <= KEYS; key++) {
        CHECK_EQUAL(found[key].bytes, wanted[key].bytes);
        CHECK_EQUAL(found[key].blocks, wanted[key].blocks);
    }
    free(keys);
    hl_sums_close(&sums);
}

/* Key 1 says yes, all others but none say no. */
static void check_split(const hl_snapshot *snapshot)
{
    hl_snapshot *parts[2];
    hl_sums sums;
    hl_sum wanted[KEYS + 1];
    model(snapshot, HL_SUMS_FIRST, wanted);
    CHECK_OR_RETURN(hl_sums_open(&sums, snapshot, HL_SUMS_FIRST) == HL_OK);
    uint32_t *keys = malloc((sums.count + 1) * sizeof *keys);
    for (uint32_t i = 0; i < sums.count; i++) {
        uint32_t key = key_of(snapshot->names, sums.locations[i]);
        keys[i] = key == HL_SUMS_NO_KEY ? key : key == 1;
    }
    if (CHECK(hl_sums_split(&sums, keys, parts) == HL_OK)) {
        CHECK_EQUAL(parts[1]->bytes, wanted[1].bytes);
        CHECK_EQUAL(parts[1]->blocks, wanted[1].blocks);
        CHECK_EQUAL(parts[0]->bytes + parts[1]->bytes, snapshot->bytes);
        CHECK_EQUAL(parts[0]->blocks + parts[1]->blocks, snapshot->blocks);
        hl_snapshot_drop(parts[0]);
        hl_snapshot_drop(parts[1]);
    }
    free(keys);
    hl_sums_close(&sums);
}

static void check_all_sums(const hl_snapshot *snapshot)
{
    check_sums(snapshot, HL_SUMS_NEWEST);
    check_sums(snapshot, HL_SUMS_FIRST);
    check_sums(snapshot, HL_SUMS_ALL);
    check_split(snapshot);
}

static void random_sums(void)
{
    uint64_t seed = 1;
    for (int round = 0; round < 60; round++) {
        hl_names *names = sample_names(round % 2 == 0);
        hl_snapshot *snapshot =
            sample_snapshot(names, check_below(&seed, 200), 1 + check_below(&seed, 6), 1 + round % 3 * 50, &seed);
        check_all_sums(snapshot);
        hl_snapshot_drop(snapshot);
        hl_names_drop(names);
    }
}

/* Thousands of names in the name table, a handful in the rows. */
static void few_rows_of_a_large_names(void)
{
    uint64_t seed = 2;
    hl_names *names = sample_names(true);
    for (uint32_t i = 0; i < 20000; i++)
        sample_location(names, "a", 1, i, "f");
    hl_snapshot *snapshot = sample_snapshot(names, 40, 10, 5, &seed);
    check_all_sums(snapshot);
    hl_snapshot_drop(snapshot);
    hl_names_drop(names);
}

static void no_memory(void)
{
    uint64_t seed = 3;
    hl_names *names = sample_names(false);
    hl_snapshot *snapshot = sample_snapshot(names, 50, 5, 5, &seed);
    uint32_t *keys = calloc(1000, sizeof *keys);
    hl_sum found[2];
    for (size_t n = 1; n < 5; n++) {
        hl_sums sums;
        (void)hl_os_fail_every(n);
        hl_status status = hl_sums_open(&sums, snapshot, HL_SUMS_ALL);
        if (status == HL_OK) {
            status = hl_sums_add(&sums, keys, 1, found);
            hl_sums_close(&sums);
        }
        CHECK(status == (hl_os_fail_every(0) > 0 ? HL_NO_MEMORY : HL_OK));
        CHECK((status == HL_OK) == (n == 4)); /* three obtain memory */
    }
    free(keys);
    hl_snapshot_drop(snapshot);
    hl_names_drop(names);
}

static void no_memory_for_parts(void)
{
    uint64_t seed = 4;
    hl_names *names = sample_names(false);
    hl_snapshot *snapshot = sample_snapshot(names, 50, 5, 5, &seed), *parts[2];
    uint32_t *keys = calloc(1000, sizeof *keys);
    hl_sums sums;
    CHECK_OR_RETURN(hl_sums_open(&sums, snapshot, HL_SUMS_FIRST) == HL_OK);
    size_t failed = 1;
    for (size_t n = 1; failed != 0; n++) {
        (void)hl_os_fail_every(n);
        hl_status status = hl_sums_split(&sums, keys, parts);
        failed = hl_os_fail_every(0);
        CHECK(status == (failed > 0 ? HL_NO_MEMORY : HL_OK));
        if (status == HL_OK) {
            hl_snapshot_drop(parts[0]);
            hl_snapshot_drop(parts[1]);
        }
    }
    hl_sums_close(&sums);
    free(keys);
    hl_snapshot_drop(snapshot);
    hl_names_drop(names);
}

CHECK_MAIN(TEST(random_sums), TEST(few_rows_of_a_large_names), TEST(no_memory), TEST(no_memory_for_parts))
