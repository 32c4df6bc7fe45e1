/* index.h: tables of interned things: an array of items addressed by a 32-bit id, found by hash.
 *
 *     heads[bucket] -> id -> links[id].next -> ... -> 0          items[id]: the thing itself
 *
 * The hash side is Litwin's linear hashing. An insertion that makes the table too full splits one bucket. Removals
 * that make it too empty join a few buckets again. So neither growth nor shrinking stops the world, and the longest
 * pause is one chain. Items keep their id for life. A removed id is reused. Id 0 is never used.
 *
 * Ids come in spans of 1,024, whose items and links fill whole pages:
 *
 *     span:  | used ids and removed ones (list `free`) | ids not handed out yet (from `fresh` on) |
 *
 * A span is full, or it is in one of three lists: partial (some ids in use), warm (none), cold (none, and its memory
 * was given back). New ids come from a partial span if there is one, so that the others can become empty. As long as
 * nothing is removed, ids come in ascending order from 1 on.
 *
 * Items may have a reuse count in a field of their own: how often their id was removed. This number never falls,
 * although the memory that it was in is given back. A cold span remembers the highest count of its items and begins
 * there.
 *
 * A movable table has its items in one array, which moves when it grows. A stable table has them in segments, which
 * do not move. An item whose id was obtained under the owner's lock may be read without the lock until it is removed.
 *
 * Threading: the owner's lock for everything else.
 */
#ifndef HL_INDEX_H
#define HL_INDEX_H

#include <string.h>

#include "region.h"

enum { HL_TABLE_SPAN = 1 << 10, HL_TABLE_SEGMENT = 1 << 14 };

/* At this reuse count an item stays forever: the owner must not remove it. */
enum { HL_MOST_REUSES = (1 << 16) - 1 };

typedef struct {
    uint32_t hash;
    uint32_t next; /* next id in the bucket's chain, or in the span's list of removed ids; 0 at the end */
} hl_link;

typedef struct {
    uint32_t next, previous; /* in its list: numbers of spans, which begin with 1; 0 at the ends */
    uint32_t free;           /* list of removed ids */
    uint32_t reuse_count;    /* the reuse count that the ids from `fresh` on begin with */
    uint16_t used;           /* ids in use */
    uint16_t fresh;          /* the first id not handed out since the span was cold, minus the first id of the span */
    bool cold;
} hl_span;

typedef struct {
    char **segments; /* HL_TABLE_SEGMENT items each; NULL in a movable table */
    hl_region items; /* item_size bytes each; empty in a stable table */
    hl_region links; /* hl_link each */
    hl_region heads; /* uint32_t each */
    hl_region spans; /* hl_span each */
    uint32_t item_size;
    uint32_t reuse_count_at; /* offset of the reuse count in an item, a uint32_t; 0: there is none */
    uint32_t most;           /* greatest id that may be used */
    uint32_t used;           /* no id in use is greater */
    uint32_t count;          /* items in the table */
    uint32_t buckets;        /* in use, at least 1 once anything is stored */
    uint32_t level;          /* 2^level < buckets <= 2^(level+1), from 2 buckets on */
    uint32_t span_count;
    uint32_t partial, warm, cold; /* the first span of each list; 0: none */
    uint32_t warm_count;
    bool stable;
} hl_table;

/* `most` ids of `item_size` bytes. Nothing is allocated before the first item. */
void hl_table_open(hl_table *table, uint32_t item_size, uint32_t most, bool stable);
void hl_table_close(hl_table *table);
/* Remove all items. The memory stays, with zeros in the items. Only for tables for which hl_table_is_small is true. */
void hl_table_clear(hl_table *table);
/* Add an item under `hash`; the caller fills it at once. Except for its reuse count, it holds zeros or what the last
 * holder of the id left. */
hl_status hl_table_add(hl_table *table, uint32_t hash, uint32_t *id) HL_MUST_USE;
/* Remove an item. From now on it may hold zeros. */
void hl_table_remove(hl_table *table, uint32_t id);
/* Bytes of memory, within a page or two for each region. */
size_t hl_table_memory(const hl_table *table);

/* Is clearing it cheaper than giving it up? */
static inline bool hl_table_is_small(const hl_table *table)
{
    return table->span_count <= 4;
}

static inline void *hl_table_at(const hl_table *table, uint32_t id)
{
    if (table->segments == NULL)
        return table->items.base + (size_t)id * table->item_size;
    return table->segments[id / HL_TABLE_SEGMENT] + (size_t)(id % HL_TABLE_SEGMENT) * table->item_size;
}

static inline const hl_link *hl_table_link(const hl_table *table, uint32_t id)
{
    return (const hl_link *)(const void *)table->links.base + id;
}

/* The first id from `id` on that may be in use; 0: there is none.
 *     for (uint32_t id = 1; (id = hl_table_seek(t, id)) != 0; id++)
 * visits all items. It skips spans without any item, but not each unused id. */
uint32_t hl_table_seek_span(const hl_table *table, uint32_t id);

static inline uint32_t hl_table_seek(const hl_table *table, uint32_t id)
{
    if (HL_UNLIKELY(id > table->used))
        return 0;
    return HL_LIKELY(id % HL_TABLE_SPAN > 1) ? id : hl_table_seek_span(table, id);
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

/* The usual finaliser: every input bit affects every output bit. */
static inline uint64_t hl_mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}

/* A hash of bytes, for a table that may be filled from anywhere. Without the seed, nobody can find collisions. */
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
