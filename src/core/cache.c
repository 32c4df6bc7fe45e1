/* cache.c: see cache.h. */

#include "cache.h"

/* Enough places for the working set of a large program; fewer when keys are long, within about a megabyte, since the
 * processor's own cache is what makes this one fast. Only places that are used cost memory. */
enum { MOST_PLACES_LOG2 = 13, FEWEST_PLACES_LOG2 = 6, BUDGET = 1 << 20 };

hl_status hl_cache_open(hl_cache *cache, uint32_t nframe)
{
    *cache = (hl_cache){.stride = sizeof(hl_cache_entry) + nframe * sizeof(uintptr_t)};
    uint32_t log2 = MOST_PLACES_LOG2;
    while (log2 > FEWEST_PLACES_LOG2 && cache->stride << log2 > BUDGET)
        log2--;
    size_t page = hl_os_page();
    cache->index_shift = 64 - log2;
    cache->bytes = ((cache->stride << log2) + page - 1) / page * page;
    cache->entries = hl_os_map(cache->bytes);
    return cache->entries == NULL ? HL_NO_MEMORY : HL_OK;
}

void hl_cache_close(hl_cache *cache)
{
    if (cache->entries != NULL)
        hl_os_unmap(cache->entries, cache->bytes);
    *cache = (hl_cache){0};
}
