/* cache.h: from a stack and a size to the site, without a search.
 *
 * A key (locations, size, domain) has one place: a cache line with room for two entries, which go to the last comers.
 * A hit compares the locations with those of the site's stack, unless the key has the same version as last time. So
 * it is exact. An entry is void if its site was reclaimed (`reuse_count`).
 *
 * Spots (spots.h) are asked first, and nearly always know the site.
 *
 * With very many sites, the cache's places are far away for the processor. Then a guess comes first: the site that
 * followed the last one, the last time (hl_ledger_guess). It is compared like any other.
 *
 * The cache of stacks grows if there are more sites than places and the cache suffers from it: it is asked for sites
 * that it could have known, and does not find them. Most programs have their sites from imports and never ask again.
 * A larger cache begins empty: refilling it is spread over the misses to come, and moving the entries would be a
 * pause. A smaller cache, when most sites are gone, begins empty too.
 *
 * Threading: the ledger's lock.
 */
#ifndef HL_CACHE_H
#define HL_CACHE_H

#include <string.h>

#include "codes.h"
#include "sites.h"

/* What a site is looked up by. */
typedef struct {
    const hl_location_id *locations; /* newest first */
    uint32_t depth;
    uint32_t domain;
    uint64_t size;
    uint64_t stack_hash;    /* of the locations: see hl_names_stack_hashed */
    uint64_t stack_version; /* equal versions mean equal locations; 0: it was not looked up in the cache */
} hl_key;

typedef struct {
    uint64_t hash;          /* 0: empty */
    uint64_t stack_version; /* of the key that was last found equal; its locations need not be compared again */
    hl_site_id site;
    uint32_t reuse_count;
    uint64_t stack; /* of the site, to save a lookup: see hl_cache_stack */
} hl_cache_entry;

enum { HL_CACHE_WAYS = 2 };

typedef struct {
    hl_cache_entry *entries;
    uint32_t log2;     /* of the number of places */
    uint32_t largest;  /* the highest log2 allowed */
    uint32_t missed;   /* how often an existing site was not found, since the cache has this size */
    bool far;          /* it has outgrown the processor's nearer caches */
    hl_site_id last;   /* the site that was found last; 0: none */
    hl_stack_id stack; /* of the key of this `stack_version` */
    uint64_t stack_version;
} hl_cache;

/* `small`: the frame limit is 1. */
hl_status hl_cache_open(hl_cache *cache, bool small) HL_MUST_USE;
void hl_cache_close(hl_cache *cache);
void hl_cache_clear(hl_cache *cache);
size_t hl_cache_memory(const hl_cache *cache);
/* An existing site, one of `sites`, was not found. Grow if it is time and memory is available. */
void hl_cache_miss(hl_cache *cache, size_t sites);
/* Only `sites` sites are left. A cache that is far too large for them gives its memory back and begins empty. */
void hl_cache_shrink(hl_cache *cache, size_t sites);

static inline uint64_t hl_cache_hash(const hl_key *key)
{
    /* The last product separates hashes that differ only in the lowest bit, which is then set: hashes of neighbouring
     * lines. */
    return ((key->stack_hash + (key->size ^ (uint64_t)key->domain << 40) * 0xd6e8feb86659fd93u) * 0x9e3779b97f4a7c15u) |
           1;
}

static inline hl_cache_entry *hl_cache_place(const hl_cache *cache, uint64_t hash)
{
    return cache->entries + HL_CACHE_WAYS * (hash >> (64 - cache->log2));
}

/* The depth in the upper 16 bits. In the lower 48 bits the only location, or the address of several. */
static inline uint64_t hl_cache_stack(const hl_location_id *locations, uint32_t depth)
{
    return (uint64_t)depth << 48 | (depth == 1 ? (uint64_t)*locations : (uint64_t)(uintptr_t)locations);
}

/* Whether this is the stack of the key. */
static inline bool hl_cache_same_stack(uint64_t stack, const hl_key *key)
{
    if (key->depth == 1)
        return stack == hl_cache_stack(key->locations, 1);
    const hl_location_id *locations = (const hl_location_id *)(uintptr_t)(stack & ((UINT64_C(1) << 48) - 1));
    return stack >> 48 == key->depth && memcmp(locations, key->locations, key->depth * sizeof *locations) == 0;
}

/* The entry of a key; NULL if there is none or it is void. */
static inline const hl_cache_entry *hl_cache_find(const hl_cache *cache, const hl_sites *sites, const hl_key *key)
{
    uint64_t hash = hl_cache_hash(key);
    hl_cache_entry *entry = hl_cache_place(cache, hash);
    if (HL_UNLIKELY(entry->hash != hash) && (++entry)->hash != hash)
        return NULL;
    const hl_site *site = hl_sites_at(sites, entry->site);
    if (HL_UNLIKELY(site->size != key->size || site->domain != key->domain || site->reuse_count != entry->reuse_count))
        return NULL;
    if (entry->stack_version != key->stack_version) {
        if (HL_UNLIKELY(!hl_cache_same_stack(entry->stack, key)))
            return NULL;
        entry->stack_version = key->stack_version;
    }
    return entry;
}

/* `locations` are those of the site's stack. */
void hl_cache_put(hl_cache *cache, const hl_key *key, hl_site_id site, uint32_t reuse_count,
                  const hl_location_id *locations);

#endif
