/* map.h: from the address of a block to its site.
 *
 * The address space is cut into pages of 16 KB (a pool of CPython's small-object allocator is one such page). Each page
 * with blocks has an array of slots, one for every 2^shift bytes, where 2^shift is at most the size of the smallest
 * block seen there: so no two live blocks share a slot, and a page of large blocks costs little.
 *
 *     address:  | leaf (17 bits) | page in leaf (17) | offset in page (14) |
 *
 *     leaves[leaf] -> pages[page] = descriptor:  | unused | queued:1 | live:12 | slots' address:44 | shift-3:4 |
 *                                                   63..61    60       59..48        47..4            3..0
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
 * Addresses that do not fit (not a multiple of 8, above 48 bits) belong in the side table: see hl_map_takes.
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

#define HL_MAP_SLOTS_MASK UINT64_C(0x0000fffffffffff0)
#define HL_MAP_ONE_LIVE (UINT64_C(1) << 48)
#define HL_MAP_QUEUED (UINT64_C(1) << 60)

typedef struct {
    uint64_t **leaves;             /* HL_MAP_LEAVES */
    uint32_t *used;                /* which of them exist: looking would bring a megabyte of zeros into memory */
    uint32_t used_leaves;          /* how many */
    hl_pool *pool;                 /* the slots */
    uint64_t *queue[HL_MAP_QUEUE]; /* descriptors of pages that became empty, oldest at `queue_at` */
    uint32_t queue_at;
} hl_map;

hl_status hl_map_open(hl_map *map) HL_MUST_USE;
void hl_map_close(hl_map *map);
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

static inline uint32_t hl_map_shift_for(uintptr_t address, size_t size)
{
    if (HL_UNLIKELY(address & 8))
        return HL_MAP_FINEST;
    if (size > (size_t)1 << HL_MAP_COARSEST)
        return HL_MAP_COARSEST;
    return 63 - (uint32_t)__builtin_clzll((size + 15) | 16); /* log2 of the size rounded up to 16 */
}

static inline uint64_t *hl_map_page(const hl_map *map, uintptr_t address)
{
    uint64_t *leaf = map->leaves[address >> HL_MAP_LEAF_SHIFT];
    return leaf == NULL ? NULL : leaf + ((address >> HL_MAP_PAGE_SHIFT) & (HL_MAP_PAGES_PER_LEAF - 1));
}

static inline uint32_t hl_map_shift(uint64_t descriptor)
{
    return (uint32_t)(descriptor & 15) + HL_MAP_FINEST;
}

static inline uint32_t *hl_map_slot(uint64_t descriptor, uintptr_t address)
{
    uint32_t *slots = (uint32_t *)(uintptr_t)(descriptor & HL_MAP_SLOTS_MASK);
    return slots + ((address & ((1u << HL_MAP_PAGE_SHIFT) - 1)) >> hl_map_shift(descriptor));
}

/* The start of a block, as kept in the upper eight bits of its slot, and back from any address in the slot's span. */
static inline uint32_t hl_map_start(uintptr_t address)
{
    return (uint32_t)(address >> 4 << HL_MAP_SITE_BITS);
}

static inline uintptr_t hl_map_address(uint64_t descriptor, uintptr_t in_span, uint32_t slot)
{
    if (hl_map_shift(descriptor) == HL_MAP_FINEST)
        return in_span & ~(uintptr_t)7;
    return (in_span & ~(uintptr_t)0xfff) | (uintptr_t)(slot >> HL_MAP_SITE_BITS) << 4;
}

/* Does the block in the slot start at `address`? The eight bits do not tell odd multiples of 8, which only pages of the
 * finest cut have. */
static inline bool hl_map_is_start(uint64_t descriptor, uintptr_t address, uint32_t slot)
{
    return slot != 0 && (slot & ~HL_MAP_MOST_SITES) == hl_map_start(address) &&
           HL_LIKELY((address & 8) == 0 || hl_map_shift(descriptor) == HL_MAP_FINEST);
}

/* The parts of hl_map_put and hl_map_take that are rare. The first makes the page fit and returns it, or NULL for want of
 * memory. */
uint64_t *hl_map_prepare(hl_map *map, uintptr_t address, uint32_t shift);
void hl_map_page_emptied(hl_map *map, uint64_t *page);

/* What stood in a slot that a new block needed. */
typedef struct {
    uintptr_t address;
    uint32_t site; /* 0: nothing */
} hl_map_stale;

/* Enter a block. Fails only for want of memory, and then nothing has changed. */
static inline hl_status hl_map_put(hl_map *map, uintptr_t address, size_t size, uint32_t site, hl_map_stale *stale)
{
    uint32_t shift = hl_map_shift_for(address, size);
    uint64_t *page = hl_map_page(map, address);
    if (HL_UNLIKELY(page == NULL || *page == 0 || hl_map_shift(*page) > shift)) {
        page = hl_map_prepare(map, address, shift);
        if (page == NULL)
            return HL_NO_MEMORY;
    }
    uint64_t descriptor = *page;
    uint32_t *slot = hl_map_slot(descriptor, address);
    uint32_t old = *slot;
    *slot = hl_map_start(address) | site;
    if (HL_LIKELY(old == 0)) {
        *page = descriptor + HL_MAP_ONE_LIVE;
        stale->site = 0;
    } else {
        stale->address = hl_map_address(descriptor, address, old);
        stale->site = old & HL_MAP_MOST_SITES;
    }
    return HL_OK;
}

/* The slot of the block that starts at `address`, or NULL. */
static inline uint32_t *hl_map_find(const hl_map *map, uintptr_t address)
{
    uint64_t *page = hl_map_page(map, address);
    if (page == NULL || *page == 0)
        return NULL;
    uint32_t *slot = hl_map_slot(*page, address);
    return hl_map_is_start(*page, address, *slot) ? slot : NULL;
}

/* Remove the block and return its site, or 0 when there is none. */
static inline uint32_t hl_map_take(hl_map *map, uintptr_t address)
{
    uint64_t *page = hl_map_page(map, address);
    if (page == NULL || *page == 0)
        return 0;
    uint64_t descriptor = *page;
    uint32_t *slot = hl_map_slot(descriptor, address);
    uint32_t old = *slot;
    if (HL_UNLIKELY(!hl_map_is_start(descriptor, address, old)))
        return 0;
    *slot = 0;
    *page = descriptor -= HL_MAP_ONE_LIVE;
    if (HL_UNLIKELY(descriptor < HL_MAP_ONE_LIVE)) /* no block left and not in the queue yet */
        hl_map_page_emptied(map, page);
    return old & HL_MAP_MOST_SITES;
}

#endif
