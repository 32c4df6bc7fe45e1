/* index.h: tables of interned things: an array of items addressed by a 32-bit id, found by hash.
 *
 *     heads[bucket] -> id -> links[id].next -> ... -> 0          items[id]: the thing itself
 *
 * The hash side is Litwin's linear hashing: an insertion that makes the table too full splits one bucket, so growth
 * never stops the world and the longest pause is one chain. Items keep their id for life; a removed id is reused.
 * Id 0 is never used.
 *
 * Threading: the owner's lock for everything that changes the table. Items of a `stable` table never move, so an item
 * whose id was obtained under the lock may be read without it as long as it is not removed.
 */
#ifndef HL_INDEX_H
#define HL_INDEX_H

#include <string.h>

#include "region.h"

typedef struct {
    uint32_t hash;
    uint32_t next; /* next id in the bucket's chain, or in the list of free ids; 0 at the end */
} hl_link;

typedef struct {
    hl_region items; /* item_size bytes each */
    hl_region links; /* hl_link each */
    hl_region heads; /* uint32_t each */
    uint32_t item_size;
    uint32_t most;     /* greatest id that may be used */
    uint32_t used;     /* greatest id ever used */
    uint32_t count;    /* items in the table */
    uint32_t free_ids; /* list of removed ids */
    uint32_t buckets;  /* in use, at least 1 once anything is stored */
    uint32_t level;    /* 2^level <= buckets < 2^(level+1) */
} hl_table;

/* `most` ids of `item_size` bytes; `stable` reserves addresses for all of them (fewer when the system refuses). */
hl_status hl_table_open(hl_table *table, uint32_t item_size, uint32_t most, bool stable) HL_MUST_USE;
void hl_table_close(hl_table *table);
/* A new item under `hash`; the caller fills it at once. It holds zeros, or what the id's last holder left. */
hl_status hl_table_add(hl_table *table, uint32_t hash, uint32_t *id) HL_MUST_USE;
void hl_table_remove(hl_table *table, uint32_t id);
size_t hl_table_memory(const hl_table *table);

static inline void *hl_table_at(const hl_table *table, uint32_t id)
{
    return (char *)table->items.base + (size_t)id * table->item_size;
}

static inline const hl_link *hl_table_link(const hl_table *table, uint32_t id)
{
    return (const hl_link *)(const void *)table->links.base + id;
}

/* The first id in the chain of `hash`, or 0. Walk with
 *     for (uint32_t id = hl_table_first(t, hash); id != 0; id = hl_table_link(t, id)->next)
 * and compare the link's hash before the item. */
static inline uint32_t hl_table_first(const hl_table *table, uint32_t hash)
{
    if (table->buckets == 0)
        return 0;
    uint32_t bucket = hash & ((2u << table->level) - 1);
    if (bucket >= table->buckets)
        bucket &= (1u << table->level) - 1;
    return ((const uint32_t *)(const void *)table->heads.base)[bucket];
}

/* The usual finaliser: every input bit reaches every output bit. */
static inline uint64_t hl_mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}

/* Of bytes, for a table that is filled from anywhere: whoever does not know the seed finds no collisions. */
static inline uint32_t hl_hash_bytes(uint64_t seed, const char *bytes, size_t length)
{
    uint64_t hash = seed ^ length;
    for (; length >= 8; bytes += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        hash = hl_mix(hash ^ word);
    }
    uint64_t rest = 0;
    memcpy(&rest, bytes, length);
    return (uint32_t)hl_mix(hash ^ rest);
}

#endif
