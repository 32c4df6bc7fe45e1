/* map.h: from the address of a block to its site.
 *
 * The address space is cut into pages of 16 KB (a pool of CPython's small-object allocator is one such page). Each page
 * with blocks has an array of slots, one for every 2^shift bytes, where 2^shift is at most the size of the smallest
 * block seen there: so no two live blocks share a slot, and a page of large blocks costs little.
 *
 *     address:  | leaf (17 bits) | page in leaf (17) | offset in page (14) |
 *
 *     leaves[leaf] -> pages[page] = descriptor:  | slots' address / 16 : 44 | unused | queued:1 | live:12 | shift:4 |
 *                                                          63..20             19..17     16       15..4      3..0
 *     slots[offset >> shift] = | address bits 11..4 : 8 | site id : 24 |        0: no block starts here
 *
 * The eight bits keep the exact start of the block, so that an address inside a slot but not at the block's start is
 * not taken for it, and a page can be re-cut finer when a smaller block turns up. A slot spans at most 4 KB, so they
 * suffice.
 *
 * Why no two live blocks share a slot: addresses are multiples of 16, so a block of n bytes keeps the next start at
 * least round_up(n, 16) away, and 2^shift <= round_up(n, 16) for every block of the page. Addresses that are odd
 * multiples of 8 (jemalloc) make the page's shift 3. A slot found occupied at insertion is therefore stale: its block
 * was released behind our back, and the caller closes it.
 *
 * Addresses that do not fit (not a multiple of 8, above 48 bits) belong in the side table: see hl_map_takes. The path
 * of every allocation deals with multiples of 16 only: see hl_map_plain_leaf.
 *
 * Most blocks of a program are in one leaf, which is remembered: then the lookup begins with the page.
 *
 * A page whose last block goes keeps its array for a while: the last 64 pages to become empty wait in a queue.
 *
 * Threading: the ledger's lock.
 */
#ifndef HL_MAP_H
#define HL_MAP_H

#include "pool.h"

#define HL_MAP_SITE_BITS 24
#define HL_MAP_MOST_SITES ((UINT32_C(1) << HL_MAP_SITE_BITS) - 1)

enum {
    HL_MAP_PAGE_SHIFT = 14,
    HL_MAP_LEAF_SHIFT = 31,
    HL_MAP_ADDRESS_BITS = 48,
    HL_MAP_LEAVES = 1 << (HL_MAP_ADDRESS_BITS - HL_MAP_LEAF_SHIFT),
    HL_MAP_PAGES_PER_LEAF = 1 << (HL_MAP_LEAF_SHIFT - HL_MAP_PAGE_SHIFT),
    HL_MAP_QUEUE = 64,
    HL_MAP_FINEST = 3,    /* shift */
    HL_MAP_COARSEST = 12, /* shift: beyond it the eight bits of the start do not suffice */
};

enum {
    HL_MAP_SHIFT_MASK = 0xf,
    HL_MAP_ONE_LIVE = 0x10,
    HL_MAP_LIVE_MASK = 0xfff0,
    HL_MAP_QUEUED = 0x10000,
    HL_MAP_SLOTS_AT = 20, /* the first bit of their address, without its own lowest four */
};

typedef struct {
    uint64_t near;                 /* the leaf in which a page was last made ready: most blocks are there */
    uint64_t *near_pages;          /* its pages; NULL: there is none */
    uint64_t **leaves;             /* HL_MAP_LEAVES */
    uint32_t *used;                /* which of them exist: looking would bring a megabyte of zeros into memory */
    uint32_t used_leaves;          /* how many */
    hl_pool *pool;                 /* the slots */
    uint64_t *queue[HL_MAP_QUEUE]; /* descriptors of pages that became empty, oldest at `queue_at` */
    uint32_t queue_at;
} hl_map;

hl_status hl_map_open(hl_map *map) HL_MUST_USE;
void hl_map_close(hl_map *map);
/* All blocks are forgotten. */
void hl_map_clear(hl_map *map);
size_t hl_map_memory(const hl_map *map);
/* How many blocks are entered, by the descriptors. For validators and tests, like the next. */
uint64_t hl_map_blocks(const hl_map *map);
/* Call `visit` for every block. */
typedef void (*hl_map_visitor)(void *context, uintptr_t address, uint32_t site);
void hl_map_each(const hl_map *map, hl_map_visitor visit, void *context);

/* Does this address belong in the map, or else in the side table? */
static inline bool hl_map_takes(uintptr_t address)
{
    return (address & 7) == 0 && address >> HL_MAP_ADDRESS_BITS == 0;
}

/* The leaf of a multiple of 16 that belongs in the map; of any other address a number that no leaf has. So one
 * comparison tells whether an address is plain. */
static inline uint64_t hl_map_plain_leaf(uintptr_t address)
{
    uint64_t rotated = address >> 4 | address << 60;
    return rotated >> (HL_MAP_LEAF_SHIFT - 4);
}

/* The same address, which is plain, so that the compiler leaves out what is for odd multiples of 8. */
static inline uintptr_t hl_map_plain(uintptr_t address)
{
    const char *place = (const char *)address; /* clang 14 crashes without the variable */
    return (uintptr_t)__builtin_assume_aligned(place, 16);
}

/* The coarsest shift for a block of this size at a multiple of 16: 2^shift is at most the size rounded up to 16. */
static inline uint8_t hl_map_cut(size_t size)
{
    if (size >= (size_t)1 << HL_MAP_COARSEST)
        return HL_MAP_COARSEST;
    return (uint8_t)(63 - __builtin_clzll((size + 15) | 16));
}

static inline uint64_t *hl_map_page_of(const hl_map *map, uint64_t leaf_index, uintptr_t address)
{
    uint64_t *leaf = map->leaves[leaf_index];
    return leaf == NULL ? NULL : leaf + ((address >> HL_MAP_PAGE_SHIFT) & (HL_MAP_PAGES_PER_LEAF - 1));
}

/* The same for the number that hl_map_plain_leaf gives: NULL, too, if the address is not plain. */
HL_INLINE uint64_t *hl_map_plain_page(const hl_map *map, uint64_t leaf_index, uintptr_t address)
{
    if (HL_LIKELY(leaf_index == map->near)) {
        uint64_t *page = map->near_pages + ((address >> HL_MAP_PAGE_SHIFT) & (HL_MAP_PAGES_PER_LEAF - 1));
        if (page == NULL)
            __builtin_unreachable(); /* so that nobody asks again */
        return page;
    }
    return leaf_index < HL_MAP_LEAVES ? hl_map_page_of(map, leaf_index, address) : NULL;
}

static inline uint64_t *hl_map_page(const hl_map *map, uintptr_t address)
{
    return hl_map_page_of(map, address >> HL_MAP_LEAF_SHIFT, address);
}

static inline uint32_t hl_map_shift(uint64_t descriptor)
{
    return (uint32_t)descriptor & HL_MAP_SHIFT_MASK;
}

static inline uint32_t *hl_map_slots(uint64_t descriptor)
{
    return (uint32_t *)(uintptr_t)(descriptor >> HL_MAP_SLOTS_AT << 4);
}

static inline uint32_t *hl_map_slot(uint64_t descriptor, uintptr_t address)
{
    return hl_map_slots(descriptor) + ((address & ((1u << HL_MAP_PAGE_SHIFT) - 1)) >> hl_map_shift(descriptor));
}

/* The start of a block, as kept in the upper eight bits of its slot, and back from any address in the slot's span. */
static inline uint32_t hl_map_start(uintptr_t address)
{
    return (uint32_t)address << (HL_MAP_SITE_BITS - 4) & ~HL_MAP_MOST_SITES;
}

static inline uintptr_t hl_map_address(uint64_t descriptor, uintptr_t in_span, uint32_t slot)
{
    if (hl_map_shift(descriptor) == HL_MAP_FINEST)
        return in_span & ~(uintptr_t)7;
    return (in_span & ~(uintptr_t)0xfff) | (uintptr_t)(slot >> HL_MAP_SITE_BITS) << 4;
}

/* The site of the block that starts at `address`, by its slot; 0: none starts there. The eight bits do not tell odd
 * multiples of 8, which only pages of the finest cut have. */
static inline uint32_t hl_map_site(uint64_t descriptor, uintptr_t address, uint32_t slot)
{
    uint32_t site = slot ^ hl_map_start(address); /* the upper bits must be equal and the lower ones not all 0 */
    bool starts = site - 1 < HL_MAP_MOST_SITES;
    return starts && HL_LIKELY((address & 8) == 0 || hl_map_shift(descriptor) == HL_MAP_FINEST) ? site : 0;
}

/* What stood in a slot that a new block needed. */
typedef struct {
    uintptr_t address;
    uint32_t site; /* 0: nothing */
} hl_map_stale;

/* Enter a block of that cut (hl_map_cut) if it is plain, its page there and cut fine enough, and its slot free. False:
 * nothing has changed. */
HL_INLINE bool hl_map_put_quickly(hl_map *map, uintptr_t address, uint8_t cut, uint32_t site)
{
    uint64_t leaf = hl_map_plain_leaf(address);
    uint64_t *page = hl_map_plain_page(map, leaf, address);
    if (HL_UNLIKELY(page == NULL))
        return false;
    address = hl_map_plain(address);
    uint64_t descriptor = *page;
    if (HL_UNLIKELY(descriptor == 0 || hl_map_shift(descriptor) > cut))
        return false;
    uint32_t *slot = hl_map_slot(descriptor, address);
    if (HL_UNLIKELY(*slot != 0))
        return false;
    *slot = hl_map_start(address) | site;
    *page = descriptor + HL_MAP_ONE_LIVE;
    return true;
}

/* Enter a block. Fails only for want of memory, and then nothing has changed. */
hl_status hl_map_put(hl_map *map, uintptr_t address, size_t size, uint32_t site, hl_map_stale *stale) HL_MUST_USE;

/* The slot of the block that starts at `address`, or NULL. */
static inline uint32_t *hl_map_find(const hl_map *map, uintptr_t address)
{
    uint64_t *page = hl_map_page(map, address);
    if (page == NULL || *page == 0)
        return NULL;
    uint32_t *slot = hl_map_slot(*page, address);
    return hl_map_site(*page, address, *slot) != 0 ? slot : NULL;
}

/* Remove the block and return its site, or 0 when there is none. */
uint32_t hl_map_take(hl_map *map, uintptr_t address);

/* The same in two steps: where the block is, if it is plain and its page will not become empty (else false); and
 * removing it. */
typedef struct {
    uint64_t *page;
    uint32_t *slot;
    uint32_t site; /* 0: no block is there */
} hl_map_place;

HL_INLINE bool hl_map_look(const hl_map *map, uintptr_t address, hl_map_place *place)
{
    uint64_t leaf = hl_map_plain_leaf(address);
    uint64_t *page = hl_map_plain_page(map, leaf, address);
    if (HL_UNLIKELY(page == NULL))
        return false;
    address = hl_map_plain(address);
    uint64_t descriptor = *page;
    if (HL_UNLIKELY((descriptor & (HL_MAP_QUEUED | (HL_MAP_LIVE_MASK & ~HL_MAP_ONE_LIVE))) == 0))
        return false;
    uint32_t *slot = hl_map_slot(descriptor, address);
    *place = (hl_map_place){.page = page, .slot = slot, .site = hl_map_site(descriptor, address, *slot)};
    return true;
}

static inline void hl_map_take_from(const hl_map_place *place)
{
    *place->slot = 0;
    *place->page -= HL_MAP_ONE_LIVE;
}

#endif
