/* order.h: sorting things that compare as sequences of 64-bit symbols, such as sums and tracebacks.
 *
 * The sort looks at each symbol of a sequence once, however many comparisons another sort would make. It sorts things
 * by their first symbol, then every run of equal ones by the second, and so on. The time is linear in the symbols
 * that tell the things apart. This matters because tracebacks share long beginnings.
 *
 * Threading: no state of its own.
 */
#ifndef HL_ORDER_H
#define HL_ORDER_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t symbol; /* scratch */
    uint32_t index;  /* the caller's thing */
} hl_order_item;

/* Set the symbol of each item to the one that its thing has at `depth`. Past the end of its sequence, a thing has a
 * symbol that no other thing has there. */
typedef void hl_order_symbols(const void *context, hl_order_item *items, size_t count, uint32_t depth);

/* A lower bound for how many symbols from `depth` on are the same for all items. Saves asking for them one by one. */
typedef uint32_t hl_order_shared(const void *context, const hl_order_item *items, size_t count, uint32_t depth);

/* Sort ascending; `shared` may be NULL. Things whose first `limit` symbols are equal end up in any order, and so do
 * all things after the first `wanted`. `spare` has room for `count` items. */
void hl_order_sort(hl_order_item *items, hl_order_item *spare, size_t count, size_t wanted, uint32_t limit,
                   hl_order_symbols *symbols, hl_order_shared *shared, const void *context);

#endif
