/* cache.c: see cache.h. */

#include "cache.h"

/* From 2,048 places (128 KB) to half a million, each step four times the previous one. From 2 MB on it is far away.
 * With a frame limit of 1, spots answer for all sites but new ones. Then the cache is smaller, and stays so. */
enum { SMALL = 8, SMALLEST = 11, STEP = 2, FAR = 15, LARGEST = 19 };

static size_t bytes_of(uint32_t log2)
{
    return HL_CACHE_WAYS * sizeof(hl_cache_entry) << log2;
}

hl_status hl_cache_open(hl_cache *cache, bool small)
{
    uint32_t log2 = small ? SMALL : SMALLEST;
    *cache = (hl_cache){.entries = hl_os_map(bytes_of(log2)), .log2 = log2, .largest = small ? SMALL : LARGEST};
    return cache->entries == NULL ? HL_NO_MEMORY : HL_OK;
}

void hl_cache_close(hl_cache *cache)
{
    if (cache->entries != NULL)
        hl_os_unmap(cache->entries, bytes_of(cache->log2));
    *cache = (hl_cache){0};
}

void hl_cache_clear(hl_cache *cache)
{
    hl_os_discard(cache->entries, bytes_of(cache->log2));
    cache->last = cache->stack = 0;
    cache->stack_version = 0;
}

static void resize(hl_cache *cache, uint32_t log2)
{
    cache->missed = 0;
    hl_cache_entry *entries = hl_os_map_dense(bytes_of(log2)); /* its places fill in any order */
    if (entries == NULL)
        return;
    hl_os_unmap(cache->entries, bytes_of(cache->log2));
    cache->entries = entries;
    cache->log2 = log2;
    cache->far = cache->log2 >= FAR;
}

void hl_cache_miss(hl_cache *cache, size_t sites)
{
    uint32_t places = UINT32_C(1) << cache->log2;
    if (HL_LIKELY(sites < places || ++cache->missed < places / 2) || cache->log2 == cache->largest)
        return;
    resize(cache, cache->log2 + STEP);
}

void hl_cache_shrink(hl_cache *cache, size_t sites)
{
    uint32_t log2 = cache->log2;
    while (log2 > SMALLEST && sites <= (size_t)1 << log2 >> (STEP + 1)) /* then it still has room for twice as many */
        log2 -= STEP;
    if (log2 != cache->log2)
        resize(cache, log2);
}

void hl_cache_put(hl_cache *cache, const hl_key *key, hl_site_id site, uint32_t reuse_count,
                  const hl_location_id *locations)
{
    uint64_t hash = hl_cache_hash(key), stack = hl_cache_stack(locations, key->depth);
    if (stack >> 48 != key->depth)
        return; /* an address beyond 48 bits */
    hl_cache_entry *place = hl_cache_place(cache, hash);
    if (place[0].hash != hash)
        place[1] = place[0];
    place[0] = (hl_cache_entry){
        .hash = hash, .stack_version = key->stack_version, .site = site, .reuse_count = reuse_count, .stack = stack};
}

size_t hl_cache_memory(const hl_cache *cache)
{
    return hl_os_resident(cache->entries, bytes_of(cache->log2));
}
