/* cache.c: see cache.h. */

#include "cache.h"

/* From 2,048 places, 128 KB, to half a million, each step four times the one before; from 2 MB on it is far away. Behind
 * spots, which answer nearly always, it is smaller, and stays so. */
enum { SMALLEST = 11, FAR = 15, LARGEST = 19, STEP = 2, BEHIND_SPOTS = 10 };
enum { SPOT_BYTES = sizeof(hl_spot) << HL_SPOTS_LOG2 };

static size_t bytes_of(uint32_t log2)
{
    return HL_CACHE_WAYS * sizeof(hl_cache_entry) << log2;
}

hl_status hl_cache_open(hl_cache *cache, bool behind_spots)
{
    uint32_t log2 = behind_spots ? BEHIND_SPOTS : SMALLEST;
    *cache = (hl_cache){.entries = hl_os_map(bytes_of(log2)),
                        .log2 = log2,
                        .largest = behind_spots ? BEHIND_SPOTS : LARGEST,
                        .spots = behind_spots ? hl_os_map(SPOT_BYTES) : NULL};
    if (cache->entries != NULL && (cache->spots != NULL || !behind_spots))
        return HL_OK;
    hl_cache_close(cache);
    return HL_NO_MEMORY;
}

void hl_cache_close(hl_cache *cache)
{
    if (cache->entries != NULL)
        hl_os_unmap(cache->entries, bytes_of(cache->log2));
    if (cache->spots != NULL)
        hl_os_unmap(cache->spots, SPOT_BYTES);
    *cache = (hl_cache){0};
}

void hl_cache_clear(hl_cache *cache)
{
    hl_os_discard(cache->entries, bytes_of(cache->log2));
    if (cache->spots != NULL)
        hl_os_discard(cache->spots, SPOT_BYTES);
    cache->last = cache->stack = 0;
    cache->version = 0;
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
    while (log2 > SMALLEST && sites <= (size_t)1 << log2 >> (STEP + 1)) /* it has room for twice as many then */
        log2 -= STEP;
    if (log2 != cache->log2)
        resize(cache, log2);
}

void hl_cache_put(hl_cache *cache, const hl_key *key, hl_site_id site, uint32_t life, const hl_location_id *locations)
{
    uint64_t hash = hl_cache_hash(key), stack = hl_cache_stack(locations, key->depth);
    if (stack >> 48 != key->depth)
        return; /* an address beyond 48 bits */
    hl_cache_entry *place = hl_cache_place(cache, hash);
    if (place[0].hash != hash)
        place[1] = place[0];
    place[0] = (hl_cache_entry){.hash = hash, .version = key->version, .site = site, .life = life, .stack = stack};
}

void hl_cache_put_spot(hl_cache *cache, const hl_sites *sites, uintptr_t instruction, uint64_t size, uint32_t *round,
                       hl_site_id site)
{
    if (*round == 0) {
        hl_os_discard(cache->spots, SPOT_BYTES);
        *round = HL_CODES_ROUND;
    }
    uint64_t key = hl_cache_spot_key(instruction, size);
    *hl_cache_spot(cache, key) = (hl_spot){.key = key, .site = site, .stamp = *round | hl_sites_at(sites, site)->life};
}

size_t hl_cache_memory(const hl_cache *cache)
{
    size_t spots = cache->spots == NULL ? 0 : hl_os_resident(cache->spots, SPOT_BYTES);
    return hl_os_resident(cache->entries, bytes_of(cache->log2)) + spots;
}
