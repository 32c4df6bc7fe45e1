/* test_order.c: hl_order_sort gives every thing once, and as many as are wanted in the order of whole sequences. */

#include <stdlib.h>

#include "../../src/core/order.h"
#include "check.h"

enum { LONGEST = 12, MOST = 1000 };

typedef struct {
    uint64_t symbols[LONGEST]; /* zero past the end; others are at least 1 */
} sequence;

static sequence sequences[MOST];

static void symbols_of(const void *context, hl_order_item *items, size_t count, uint32_t depth)
{
    const sequence *all = context;
    for (size_t i = 0; i < count; i++)
        items[i].symbol = all[items[i].index].symbols[depth];
}

static uint32_t shared_by_all(const void *context, const hl_order_item *items, size_t count, uint32_t depth)
{
    const sequence *all = context;
    uint32_t shared = 0;
    for (; depth + shared < LONGEST; shared++)
        for (size_t i = 1; i < count; i++)
            if (all[items[i].index].symbols[depth + shared] != all[items[0].index].symbols[depth + shared])
                return shared;
    return shared;
}

static int compare(const void *left, const void *right)
{
    const sequence *a = left, *b = right;
    for (int i = 0; i < LONGEST; i++)
        if (a->symbols[i] != b->symbols[i])
            return a->symbols[i] < b->symbols[i] ? -1 : 1;
    return 0;
}

/* Few symbols make long common beginnings and equal sequences; wide ones differ in their upper bytes. */
static void sorts_whole_sequences(void)
{
    uint64_t seed = 1;
    static hl_order_item items[MOST], spare[MOST];
    for (int round = 0; round < 200; round++) {
        size_t count = round % 3 == 0 ? check_below(&seed, 40) : check_below(&seed, MOST + 1);
        uint32_t symbols = 1 + check_below(&seed, round % 4 == 0 ? 1000 : 3);
        unsigned shift = check_below(&seed, 54);
        memset(sequences, 0, sizeof sequences);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t length = check_below(&seed, LONGEST + 1);
            for (uint32_t j = 0; j < length; j++)
                sequences[i].symbols[j] = (uint64_t)(1 + check_below(&seed, symbols)) << shift;
            items[i].index = i;
        }
        size_t wanted = round % 5 == 0 ? check_below(&seed, MOST + 1) : count;
        hl_order_sort(items, spare, count, wanted, LONGEST, symbols_of, round % 2 == 0 ? shared_by_all : NULL,
                      sequences);
        bool seen[MOST] = {false};
        for (size_t i = 0; i < count; i++) {
            CHECK(!seen[items[i].index]);
            seen[items[i].index] = true;
            CHECK(i == 0 || i >= wanted || compare(&sequences[items[i - 1].index], &sequences[items[i].index]) <= 0);
        }
        for (size_t i = wanted; i < count && wanted > 0; i++)
            CHECK(compare(&sequences[items[wanted - 1].index], &sequences[items[i].index]) <= 0);
    }
}

CHECK_MAIN(TEST(sorts_whole_sequences))
