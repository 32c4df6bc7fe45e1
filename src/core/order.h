/* order.h: sorting things that compare as sequences of 64-bit symbols, such as sums and tracebacks.
 *
 * Each symbol of a sequence is looked at once, whatever the number of comparisons another sort would make: things are
 * sorted by their first symbol, then every run of equals by the second, and so on. Linear in the symbols that must be
 * seen to tell the things apart, and tracebacks share long beginnings.
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

/* Set the symbol of each item to the one that its thing has at `depth`. Past the end of its sequence a thing has one
 * symbol that no other thing has there. */
typedef void hl_order_symbols(const void *context, hl_order_item *items, size_t count, uint32_t depth);

/* How many symbols from `depth` on are the same for all items, at the least; saves asking for them one by one. */
typedef uint32_t hl_order_shared(const void *context, const hl_order_item *items, size_t count, uint32_t depth);

/* Sort ascending; `shared` may be NULL. Things whose first `limit` symbols are equal stay in any order, and so do all that
 * come after the first `wanted`. `spare` has room for `count` items. */
void hl_order_sort(hl_order_item *items, hl_order_item *spare, size_t count, size_t wanted, uint32_t limit,
                   hl_order_symbols *symbols, hl_order_shared *shared, const void *context);

#endif
