/* cache.h: from a stack and a size to the site, without a search.
 *
 * Direct-mapped: a key (locations, size, domain) has one place, and the last comer has it. A hit compares the locations
 * with those of the site's stack, so it is exact; an entry is void when its site was reclaimed (`life`).
 *
 * Threading: the ledger's lock.
 */
#ifndef HL_CACHE_H
#define HL_CACHE_H

#include "sites.h"

/* What a site is looked up by. */
typedef struct {
    const hl_location_id *locations; /* newest first */
    uint32_t depth;
    uint32_t domain;
    uint64_t size;
    uint64_t stack_hash; /* of the locations: see hl_book_stack_hashed */
    uint64_t version;    /* equal versions, equal locations; never 0 */
} hl_key;

typedef struct {
    uint64_t hash;    /* 0: empty */
    uint64_t version; /* of the key that was last found equal: its locations need not be compared again */
    hl_site_id site;
    uint32_t life;
    uint32_t depth;
    hl_location_id newest; /* of a stack of one location this is all there is to compare */
} hl_cache_entry;

/* Room for the working set of a large program; only the places that are used cost memory. */
enum { HL_CACHE_LOG2 = 16 };

typedef struct {
    hl_cache_entry *entries;
} hl_cache;

hl_status hl_cache_open(hl_cache *cache) HL_MUST_USE;
void hl_cache_close(hl_cache *cache);
void hl_cache_clear(hl_cache *cache);
size_t hl_cache_memory(const hl_cache *cache);

static inline uint64_t hl_cache_hash(const hl_key *key)
{
    return (key->stack_hash + (key->size ^ (uint64_t)key->domain << 40) * 0xd6e8feb86659fd93u) | 1;
}

static inline hl_cache_entry *hl_cache_place(const hl_cache *cache, uint64_t hash)
{
    return cache->entries + ((hash * 0x9e3779b97f4a7c15u) >> (64 - HL_CACHE_LOG2));
}

#endif
