/* cache.h: from the instructions of a call stack to the site, without resolving anything.
 *
 * Direct-mapped: a key (instruction addresses, size, domain) has one place, and the last comer has it. A hit compares
 * the whole key, so it is exact; an entry is stale when a code object died since (`generation`) or its
 * site was reclaimed (`life`), and the caller then resolves the stack again.
 *
 * Threading: the ledger's lock.
 */
#ifndef HL_CACHE_H
#define HL_CACHE_H

#include "sites.h"

/* What a site is looked up by. */
typedef struct {
    const uintptr_t *instructions;
    uint32_t depth;
    uint32_t domain;
    uint64_t size;
    uint64_t version; /* equal versions: equal instructions; never 0 */
    uint64_t hash;    /* hl_cache_hash */
} hl_key;

typedef struct {
    uint64_t hash;
    uint64_t version;    /* of the key that was last found equal: its instructions need not be compared again */
    uint32_t generation; /* 0: empty */
    uint32_t depth;
    hl_site_id site;
    uint32_t life;
    uintptr_t instructions[]; /* `depth` of them; room for the frame limit */
} hl_cache_entry;

typedef struct {
    char *entries;
    size_t stride; /* bytes from one entry to the next */
    size_t bytes;
    uint32_t index_shift; /* 64 - log2 of the number of entries */
} hl_cache;

/* For keys of at most `nframe` instructions. */
hl_status hl_cache_open(hl_cache *cache, uint32_t nframe) HL_MUST_USE;
void hl_cache_close(hl_cache *cache);

/* `stack_hash` is a hash of the instructions alone. */
static inline uint64_t hl_cache_hash(uint64_t stack_hash, uint64_t size, uint32_t domain)
{
    return (stack_hash ^ (stack_hash >> 29)) + (size ^ (uint64_t)domain << 40) * 0xd6e8feb86659fd93u;
}

static inline hl_cache_entry *hl_cache_place(const hl_cache *cache, uint64_t hash)
{
    return (hl_cache_entry *)(void *)(cache->entries +
                                      ((hash * 0x9e3779b97f4a7c15u) >> cache->index_shift) * cache->stride);
}

#endif
