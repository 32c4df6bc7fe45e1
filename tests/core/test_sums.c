/* test_sums.c: sums by a caller's key, against a naive model. */

#include <stdlib.h>

#include "../../src/core/sums.h"
#include "sample.h"

/* A location's key: its line, so that many locations share one. */
enum { KEYS = 4 };

static uint32_t key_of(const hl_book *book, hl_location_id id)
{
    return hl_book_get_location(book, id)->line % KEYS;
}

static void model(const hl_snapshot *snapshot, bool all_frames, hl_sum wanted[KEYS])
{
    memset(wanted, 0, KEYS * sizeof *wanted);
    for (size_t i = 0; i < snapshot->row_count; i++) {
        const hl_row *row = &snapshot->rows[i];
        const hl_stack *stack = hl_book_get_stack(snapshot->book, row->stack);
        for (uint32_t key = 0; key < KEYS; key++) {
            bool there = false;
            for (uint32_t frame = 0; frame < stack->depth && (all_frames || frame == 0); frame++)
                there |= key_of(snapshot->book, stack->locations[frame]) == key;
            wanted[key].bytes += there ? row->size * row->live : 0;
            wanted[key].blocks += there ? row->live : 0;
        }
    }
}

static void check_sums(const hl_snapshot *snapshot, bool all_frames)
{
    hl_sum wanted[KEYS], found[KEYS];
    hl_sums sums;
    model(snapshot, all_frames, wanted);
    CHECK_OR_RETURN(hl_sums_open(&sums, snapshot, all_frames) == HL_OK);
    uint32_t *keys = malloc((sums.count + 1) * sizeof *keys);
    for (uint32_t i = 0; i < sums.count; i++) {
        keys[i] = key_of(snapshot->book, sums.locations[i]);
        for (uint32_t j = 0; j < i; j++)
            CHECK(sums.locations[i] != sums.locations[j]);
    }
    CHECK(hl_sums_add(&sums, keys, KEYS, found) == HL_OK);
    for (uint32_t key = 0; key < KEYS; key++) {
        CHECK_EQUAL(found[key].bytes, wanted[key].bytes);
        CHECK_EQUAL(found[key].blocks, wanted[key].blocks);
    }
    free(keys);
    hl_sums_close(&sums);
}

static void random_sums(void)
{
    uint64_t seed = 1;
    for (int round = 0; round < 60; round++) {
        hl_book *book = sample_book(round % 2 == 0);
        hl_snapshot *snapshot =
            sample_snapshot(book, check_below(&seed, 200), 1 + check_below(&seed, 6), 1 + round % 3 * 50, &seed);
        check_sums(snapshot, false);
        check_sums(snapshot, true);
        hl_snapshot_drop(snapshot);
        hl_book_drop(book);
    }
}

/* Thousands of names in the book, a handful in the rows. */
static void few_rows_of_a_large_book(void)
{
    uint64_t seed = 2;
    hl_book *book = sample_book(true);
    for (uint32_t i = 0; i < 20000; i++)
        sample_location(book, "a", 1, i, "f");
    hl_snapshot *snapshot = sample_snapshot(book, 40, 10, 5, &seed);
    check_sums(snapshot, false);
    check_sums(snapshot, true);
    hl_snapshot_drop(snapshot);
    hl_book_drop(book);
}

static void no_memory(void)
{
    uint64_t seed = 3;
    hl_book *book = sample_book(false);
    hl_snapshot *snapshot = sample_snapshot(book, 50, 5, 5, &seed);
    uint32_t *keys = calloc(1000, sizeof *keys);
    hl_sum found[1];
    for (size_t n = 1; n < 5; n++) {
        hl_sums sums;
        (void)hl_os_fail_every(n);
        hl_status status = hl_sums_open(&sums, snapshot, true);
        if (status == HL_OK) {
            status = hl_sums_add(&sums, keys, 1, found);
            hl_sums_close(&sums);
        }
        CHECK(status == (hl_os_fail_every(0) > 0 ? HL_NO_MEMORY : HL_OK));
        CHECK((status == HL_OK) == (n == 4)); /* three obtain memory */
    }
    free(keys);
    hl_snapshot_drop(snapshot);
    hl_book_drop(book);
}

CHECK_MAIN(TEST(random_sums), TEST(few_rows_of_a_large_book), TEST(no_memory))
