/* order.c: see order.h.
 *
 * A run is sorted by one symbol at a time: by insertion when it is short, otherwise by the bytes of the symbol that
 * differ within the run, lowest first. Recursion handles all parts of equal symbols except the longest. The loop
 * handles that one. So recursion is never deeper than log2(count), however long the sequences are.
 */

#include "order.h"

#include <string.h>

enum { SHORT_RUN = 32 };

typedef struct {
    hl_order_symbols *symbols;
    hl_order_shared *shared;
    const void *context;
    hl_order_item *spare;
    const hl_order_item *stop; /* items from here on may be in any order */
    uint32_t limit;
} sorter;

static void sort_by_insertion(hl_order_item *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        hl_order_item item = items[i];
        size_t at = i;
        for (; at > 0 && items[at - 1].symbol > item.symbol; at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

/* `varying` has a bit set wherever two symbols differ. */
static void sort_by_bytes(hl_order_item *items, hl_order_item *spare, size_t count, uint64_t varying)
{
    hl_order_item *from = items, *to = spare;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        if ((varying >> shift & 0xff) == 0)
            continue;
        size_t places[256] = {0};
        for (size_t i = 0; i < count; i++)
            places[from[i].symbol >> shift & 0xff]++;
        size_t next = 0;
        for (size_t i = 0; i < 256; i++) {
            size_t here = places[i];
            places[i] = next;
            next += here;
        }
        for (size_t i = 0; i < count; i++)
            to[places[from[i].symbol >> shift & 0xff]++] = from[i];
        hl_order_item *swap = from;
        from = to;
        to = swap;
    }
    if (from != items)
        memcpy(items, from, count * sizeof *items);
}

static void sort_run(const sorter *how, hl_order_item *items, size_t count, uint32_t depth)
{
    while (count > 1 && items < how->stop && depth < how->limit) {
        if (how->shared != NULL)
            depth += how->shared(how->context, items, count, depth);
        how->symbols(how->context, items, count, depth++);
        uint64_t varying = 0;
        for (size_t i = 1; i < count; i++)
            varying |= items[i].symbol ^ items[0].symbol;
        if (varying == 0)
            continue;
        if (count <= SHORT_RUN)
            sort_by_insertion(items, count);
        else
            sort_by_bytes(items, how->spare, count, varying);
        hl_order_item *longest = items;
        size_t longest_count = 0;
        for (size_t start = 0, stop; start < count; start = stop) {
            for (stop = start + 1; stop < count && items[stop].symbol == items[start].symbol;)
                stop++;
            if (stop - start > longest_count) {
                sort_run(how, longest, longest_count, depth);
                longest = items + start;
                longest_count = stop - start;
            } else {
                sort_run(how, items + start, stop - start, depth);
            }
        }
        items = longest;
        count = longest_count;
    }
}

void hl_order_sort(hl_order_item *items, hl_order_item *spare, size_t count, size_t wanted, uint32_t limit,
                   hl_order_symbols *symbols, hl_order_shared *shared, const void *context)
{
    sorter how = {.symbols = symbols, .shared = shared, .context = context, .spare = spare, .limit = limit};
    how.stop = items + (wanted < count ? wanted : count);
    sort_run(&how, items, count, 0);
}
