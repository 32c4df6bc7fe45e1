/* test_linetable.c: hl_linetable_line against tables that the compilers of CPython 3.11 to 3.15 made, with the lines
 * that PyCode_Addr2Line gives for them, and against tables that are cut short or wrong. */

#include <stdlib.h>

#include "../../src/core/linetable.h"
#include "check.h"

/* So many code units, each of two bytes, have this line. */
typedef struct {
    unsigned units;
    uint32_t line;
} run;

typedef struct {
    int first_line;
    size_t length;
    const uint8_t *table;
    const run *runs; /* ends with no units */
} vector;

/* clang-format off */
#define B(...) sizeof((uint8_t[]){__VA_ARGS__}), (const uint8_t[]){__VA_ARGS__}
#define R(...) (const run[]){__VA_ARGS__, {0, 0}}

static const vector vectors[] = {
    /* 3.11: long forms, thousands of lines forth and back */
    {1, B(0x80, 0x00, 0xd8, 0x0c, 0x0d, 0xf4, 0x70, 0x5d, 0x01, 0x00, 0x0a, 0x0b, 0xf4, 0x00, 0x00, 0x54, 0x03, 0x55,
          0x03, 0xf0, 0x71, 0x5d, 0x01, 0x78, 0x2e, 0x05, 0x56, 0x03),
     R({1, 1}, {1, 2}, {10, 3002}, {1, 2})},
    /* 3.12: a with block and a comprehension over several lines; entries without a line */
    {2, B(0x80, 0x00, 0xd8, 0x09, 0x0a, 0xf0, 0x00, 0x03, 0x05, 0x0a, 0x88, 0x61, 0xe0, 0x15, 0x16, 0xf6, 0x03, 0x02,
          0x10, 0x0a, 0xd8, 0x10, 0x11, 0xf2, 0x03, 0x00, 0x11, 0x12, 0xf2, 0x00, 0x02, 0x10, 0x0a, 0xf7, 0x03, 0x03,
          0x05, 0x0a, 0xf1, 0x00, 0x03, 0x05, 0x0a, 0xf9, 0xf2, 0x02, 0x02, 0x10, 0x0a, 0xf7, 0x03, 0x03, 0x05, 0x0a,
          0xf0, 0x00, 0x03, 0x05, 0x0a, 0xfa),
     R({1, 2}, {3, 3}, {1, 5}, {7, 4}, {1, 5}, {6, 4}, {10, 3}, {2, 0}, {3, 4}, {9, 3}, {3, 0})},
    /* 3.13: a class */
    {2, B(0x87, 0x00, 0xf0, 0x06, 0x00, 0x12, 0x13, 0x80, 0x45, 0x88, 0x33, 0x86, 0x4e), R({8, 2}, {10, 5})},
    /* 3.14: a match statement */
    {2, B(0x80, 0x00, 0xd8, 0x0a, 0x0b, 0xdf, 0x0d, 0x17, 0x8b, 0x5a, 0x8d, 0x61, 0x88, 0x5a, 0xdf, 0x0c, 0x10, 0xe0,
          0x13, 0x17, 0x88, 0x4b, 0xf0, 0x07, 0x00, 0x0e, 0x18, 0xf4, 0x08, 0x00, 0x0b, 0x13, 0xd8, 0x08, 0x09, 0xf3,
          0x03, 0x01, 0x0b, 0x0b, 0xf0, 0x00, 0x01, 0x05, 0x0b),
     R({1, 2}, {1, 3}, {19, 4}, {8, 5}, {2, 7}, {1, 4}, {5, 8}, {1, 9}, {5, 8})},
    /* 3.15: a coroutine; begins without columns, ends without lines */
    {2, B(0xe9, 0x00, 0x81, 0x00, 0xdf, 0x0f, 0x10, 0x8f, 0x71, 0x8c, 0x71, 0xe0, 0x0c, 0x0d, 0xf7, 0x03, 0x02, 0x09,
          0x0a, 0xf2, 0x00, 0x02, 0x09, 0x0a, 0xf7, 0x03, 0x00, 0x10, 0x11, 0x8f, 0x71, 0x8d, 0x71, 0xf1, 0x02, 0x02,
          0x09, 0x0a, 0xf7, 0x03, 0x00, 0x10, 0x11, 0x8f, 0x71, 0x8f, 0x71, 0x8d, 0x71, 0xfc),
     R({4, 2}, {21, 3}, {1, 5}, {11, 4}, {22, 3}, {2, 4}, {30, 3}, {5, 0})},
};
/* clang-format on */

/* A copy of the exact size, so that the sanitizer sees a read past the end. */
static uint32_t line_of(const uint8_t *table, size_t length, int first_line, size_t offset)
{
    uint8_t *copy = malloc(length);
    if (length != 0)
        memcpy(copy, table, length);
    hl_linetable_place place = {0};
    uint32_t line = hl_linetable_line(copy, length, first_line, offset, &place);
    free(copy);
    return line;
}

static void agrees_with_the_interpreter(void)
{
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        const vector *given = &vectors[i];
        size_t offset = 0;
        for (const run *wanted = given->runs; wanted->units != 0; wanted++)
            for (unsigned j = 0; j < wanted->units; j++, offset += 2) {
                CHECK_EQUAL(line_of(given->table, given->length, given->first_line, offset), wanted->line);
                CHECK_EQUAL(line_of(given->table, given->length, given->first_line, offset + 1), wanted->line);
            }
        CHECK_EQUAL(line_of(given->table, given->length, given->first_line, offset), 0);
        CHECK_EQUAL(line_of(given->table, given->length, given->first_line, SIZE_MAX), 0);
    }
}

/* In any order, one reading after another gives what each would give alone. */
static void goes_on_where_the_last_reading_stopped(void)
{
    uint64_t seed = 3;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        const vector *given = &vectors[i];
        hl_linetable_place place = {0};
        for (int j = 0; j < 500; j++) {
            size_t offset = check_below(&seed, 120);
            uint32_t alone = line_of(given->table, given->length, given->first_line, offset);
            CHECK_EQUAL(hl_linetable_line(given->table, given->length, given->first_line, offset, &place), alone);
            CHECK(alone == 0 || place.covered <= offset);
        }
    }
    /* Going forward reads each entry once: an entry that is wrong now but was read before is not looked at again. */
    uint8_t table[] = {0x80, 0x00, 0xd8, 0x00, 0x00, 0xd8, 0x00, 0x00};
    hl_linetable_place place = {0};
    CHECK_EQUAL(hl_linetable_line(table, sizeof table, 7, 2, &place), 8);
    table[0] = 0;
    CHECK_EQUAL(hl_linetable_line(table, sizeof table, 7, 4, &place), 9);
    CHECK_EQUAL(hl_linetable_line(table, sizeof table, 7, 0, &place), 0);
}

static void a_table_cut_short_says_nothing_wrong(void)
{
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        for (size_t length = 0; length < vectors[i].length; length++) {
            const vector *given = &vectors[i];
            for (size_t offset = 0; offset < 300; offset += 2) {
                uint32_t whole = line_of(given->table, given->length, given->first_line, offset);
                uint32_t cut = line_of(given->table, length, given->first_line, offset);
                CHECK(cut == 0 || cut == whole);
            }
        }
}

#define LINE(first_line, offset, ...) \
    line_of((const uint8_t[]){__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__}), first_line, offset)

static void forms_one_by_one(void)
{
    CHECK_EQUAL(LINE(7, 0, 0x80, 0x00), 7);       /* short */
    CHECK_EQUAL(LINE(7, 0, 0xc8, 0x00), 7);       /* the last short form */
    CHECK_EQUAL(LINE(7, 0, 0xd0, 0x00, 0x00), 7); /* one line: + 0, 1, 2 */
    CHECK_EQUAL(LINE(7, 0, 0xd8, 0x00, 0x00), 8);
    CHECK_EQUAL(LINE(7, 0, 0xe0, 0x00, 0x00), 9);
    CHECK_EQUAL(LINE(7, 0, 0xe8, 0x06), 10); /* no columns: + 3, - 3 */
    CHECK_EQUAL(LINE(7, 0, 0xe8, 0x07), 4);
    CHECK_EQUAL(LINE(7, 0, 0xf0, 0x42, 0x01, 0x00, 0x01, 0x01), 40); /* long: two bytes of delta */
    CHECK_EQUAL(LINE(7, 0, 0xf8), 0);                                /* no line */
    CHECK_EQUAL(LINE(7, 2, 0xf8, 0x80, 0x00), 7);                    /* which those after it do not notice */
    CHECK_EQUAL(LINE(7, 15, 0x87, 0x00, 0xd8, 0x00, 0x00), 7);       /* eight units */
    CHECK_EQUAL(LINE(7, 16, 0x87, 0x00, 0xd8, 0x00, 0x00), 8);
    CHECK_EQUAL(LINE(0, 0, 0x80, 0x00), 0); /* a module's first instruction */
}

static void wrong_tables_give_no_line(void)
{
    CHECK_EQUAL(line_of(NULL, 0, 7, 0), 0);
    CHECK_EQUAL(LINE(7, 0, 0x00), 0);       /* not the start of an entry */
    CHECK_EQUAL(LINE(7, 0, 0xe8), 0);       /* no delta */
    CHECK_EQUAL(LINE(7, 0, 0xe8, 0x46), 0); /* a delta that does not end */
    CHECK_EQUAL(LINE(7, 0, 0xe8, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x01), 0);
    CHECK_EQUAL(LINE(7, 0, 0xe8, 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x3f), 0); /* past any line */
    CHECK_EQUAL(LINE(7, 0, 0xe8, 0x11), 0);                               /* before the first */
    CHECK_EQUAL(LINE(-5, 0, 0x80, 0x00), 0);
}

static void survives_random_bytes(void)
{
    uint64_t seed = 1;
    for (int i = 0; i < 20000; i++) {
        uint8_t table[32];
        for (size_t j = 0; j < sizeof table; j++)
            table[j] = (uint8_t)check_random(&seed);
        (void)line_of(table, check_below(&seed, sizeof table + 1), (int)check_random(&seed), check_below(&seed, 400));
    }
    CHECK(true);
}

CHECK_MAIN(TEST(agrees_with_the_interpreter), TEST(goes_on_where_the_last_reading_stopped),
           TEST(a_table_cut_short_says_nothing_wrong), TEST(forms_one_by_one), TEST(wrong_tables_give_no_line),
           TEST(survives_random_bytes))
