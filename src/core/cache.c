/* cache.c: see cache.h. */

#include "cache.h"

enum { BYTES = sizeof(hl_cache_entry) << HL_CACHE_LOG2 };

hl_status hl_cache_open(hl_cache *cache)
{
    cache->entries = hl_os_map(BYTES);
    return cache->entries == NULL ? HL_NO_MEMORY : HL_OK;
}

void hl_cache_close(hl_cache *cache)
{
    if (cache->entries != NULL)
        hl_os_unmap(cache->entries, BYTES);
    *cache = (hl_cache){0};
}

void hl_cache_clear(hl_cache *cache)
{
    hl_os_discard(cache->entries, BYTES);
}

size_t hl_cache_memory(const hl_cache *cache)
{
    return hl_os_resident(cache->entries, BYTES);
}
