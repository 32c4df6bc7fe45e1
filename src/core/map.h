/* map.h: from the address of a block to its site.
 *
 * The address space is cut into pages of 16 KB (a pool of CPython's small-object allocator is one such page). Each page
 * with blocks has an array of slots, one for every 2^shift bytes, where 2^shift is at most the size of the smallest
 * block seen there: so no two live blocks share a slot, and a page of large blocks costs little.
 *
 *     address:  | leaf (18 bits) | page in leaf (16) | offset in page (14) |
 *
 *     numbers[leaf] -> leaves[number] -> pages[page] = where the slots are, the cut, the number of blocks  
 *     (hl_map_page) slots[offset >> shift] = | address bits 11..4 : 8 | site id : 24 |        0: no block starts here
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
 * Addresses that do not fit (not a multiple of 8, above 48 bits, in the first page) belong in the side table: see
 * hl_map_takes. The path of every allocation deals with multiples of 16 only: see hl_map_unit.
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
#include "region.h"

#define HL_MAP_SITE_BITS 24
#define HL_MAP_MOST_SITES ((UINT32_C(1) << HL_MAP_SITE_BITS) - 1)

enum {
    HL_MAP_PAGE_SHIFT = 14,
    HL_MAP_LEAF_SHIFT = 30,
    HL_MAP_ADDRESS_BITS = 48,
    HL_MAP_LEAVES = 1 << (HL_MAP_ADDRESS_BITS - HL_MAP_LEAF_SHIFT),
    HL_MAP_PAGES_PER_LEAF = 1 << (HL_MAP_LEAF_SHIFT - HL_MAP_PAGE_SHIFT),
    HL_MAP_QUEUE = 64,
    HL_MAP_FINEST = 3,    /* shift */
    HL_MAP_COARSEST = 12, /* shift: beyond it the eight bits of the start do not suffice */
};

/* How finely a page is cut, or has to be for a block: the shift in the lower half, and above it what is the greater the
 * finer the cut is. So one comparison tells whether a page is cut finely enough for a block. 0: the page has no
 * slots. */
typedef uint16_t hl_map_cut;
#define HL_MAP_TOO_FINE UINT16_MAX /* no page is cut so finely: hl_map_put_quickly refuses */

typedef struct {
    uint64_t
        slots; /* the address that the slot of address 0 would have: so that no offset in the page has to be found */
    uint32_t live; /* blocks */
    hl_map_cut cut;
    bool queued; /* the page is among the last to become empty */
} hl_map_page;

typedef struct {
    hl_map_page *pages;
    uintptr_t start; /* the address that it begins with */
} hl_map_leaf;

typedef struct {
    uint64_t near;           /* the first unit (hl_map_unit) of the leaf in which a page was last made ready */
    hl_map_page *near_pages; /* its pages */
    uint32_t *numbers;       /* of the leaves, HL_MAP_LEAVES: from 1 on, 0: there is none. NULL: the map is closed */
    hl_region leaves;        /* hl_map_leaf, by number less 1 */
    uint32_t leaf_count;
    hl_pool *pool;                 /* the slots */
    uintptr_t queue[HL_MAP_QUEUE]; /* pages that became empty, oldest at `queue_at`: an odd address in each. 0: none */
    uint32_t queue_at;
} hl_map;

/* For `near`, if there is no such leaf: the units from here on are those of odd addresses of the kernel's. */
#define HL_MAP_NOWHERE (-(UINT64_C(1) << (HL_MAP_LEAF_SHIFT - 4)))
/* A closed map: nothing is found, and nothing can be put into it. */
#define HL_MAP_CLOSED {.near = HL_MAP_NOWHERE}

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

/* Does this address belong in the map, or else in the side table? The first page stays empty: so the hooks may look for
 * NULL without asking. */
static inline bool hl_map_takes(uintptr_t address)
{
    return (address & 7) == 0 && address >> HL_MAP_ADDRESS_BITS == 0 && address >> HL_MAP_PAGE_SHIFT != 0;
}

/* A multiple of 16 that belongs in the map, divided by 16; of any other address a number that none of these has. So one
 * comparison tells whether an address is plain and in a leaf. */
static inline uint64_t hl_map_unit(uintptr_t address)
{
    return address >> 4 | (uint64_t)address << 60;
}

enum { HL_MAP_UNITS_PER_LEAF = 1 << (HL_MAP_LEAF_SHIFT - 4), HL_MAP_UNITS_PER_PAGE = 1 << (HL_MAP_PAGE_SHIFT - 4) };

/* The same address, which is plain, so that the compiler leaves out what is for odd multiples of 8. */
static inline uintptr_t hl_map_plain(uintptr_t address)
{
    const char *place = (const char *)address; /* clang 14 crashes without the variable */
    return (uintptr_t)__builtin_assume_aligned(place, 16);
}

static inline hl_map_cut hl_map_cut_of_shift(uint32_t shift)
{
    return (hl_map_cut)((HL_MAP_COARSEST + 1 - shift) << 8 | shift);
}

static inline uint32_t hl_map_shift(hl_map_cut cut)
{
    return cut & 63;
}

/* The coarsest cut for a block of this size at a multiple of 16: 2^shift is at most the size rounded up to 16. */
static inline hl_map_cut hl_map_cut_for(size_t size)
{
    if (size >= (size_t)1 << HL_MAP_COARSEST)
        return hl_map_cut_of_shift(HL_MAP_COARSEST);
    return hl_map_cut_of_shift(63 - (uint32_t)__builtin_clzll((size + 15) | 16));
}

static inline hl_map_leaf *hl_map_leaf_at(const hl_map *map, uint32_t at)
{
    return (hl_map_leaf *)(void *)map->leaves.base + at;
}

/* NULL: there is no such leaf. */
static inline hl_map_page *hl_map_page_of(const hl_map *map, uintptr_t address)
{
    uint32_t number = map->numbers[address >> HL_MAP_LEAF_SHIFT];
    return number == 0 ? NULL
                       : hl_map_leaf_at(map, number - 1)->pages +
                             ((address >> HL_MAP_PAGE_SHIFT) & (HL_MAP_PAGES_PER_LEAF - 1));
}

/* The same for any address: NULL, too, if it is not plain, and if the map is closed. */
HL_INLINE hl_map_page *hl_map_plain_page(const hl_map *map, uintptr_t address)
{
    uint64_t unit = hl_map_unit(address) - map->near;
    if (HL_LIKELY(unit < HL_MAP_UNITS_PER_LEAF)) {
        hl_map_page *page = map->near_pages + unit / HL_MAP_UNITS_PER_PAGE;
        if (page == NULL)
            __builtin_unreachable(); /* so that nobody asks again */
        return page;
    }
    bool plain = (address & 15) == 0 && address >> HL_MAP_ADDRESS_BITS == 0;
    return plain && map->numbers != NULL ? hl_map_page_of(map, address) : NULL;
}

/* The page has slots. */
static inline uint32_t *hl_map_slot(const hl_map_page *page, uintptr_t address)
{
    return (uint32_t *)(uintptr_t)(page->slots + (address >> hl_map_shift(page->cut)) * sizeof(uint32_t));
}

/* The start of a block, as kept in the upper eight bits of its slot, and back from any address in the slot's span. */
static inline uint32_t hl_map_start(uintptr_t address)
{
    return (uint32_t)address << (HL_MAP_SITE_BITS - 4) & ~HL_MAP_MOST_SITES;
}

static inline uintptr_t hl_map_address(const hl_map_page *page, uintptr_t in_span, uint32_t slot)
{
    if (hl_map_shift(page->cut) == HL_MAP_FINEST)
        return in_span & ~(uintptr_t)7;
    return (in_span & ~(uintptr_t)0xfff) | (uintptr_t)(slot >> HL_MAP_SITE_BITS) << 4;
}

/* The site of the block that starts at `address`, a multiple of 16, by its slot; 0: none starts there. */
static inline uint32_t hl_map_site(uintptr_t address, uint32_t slot)
{
    uint32_t site = slot ^ hl_map_start(address); /* the upper bits must be equal */
    if (HL_UNLIKELY(site > HL_MAP_MOST_SITES)) {
        HL_APART;
        return 0;
    }
    return site;
}

/* What stood in a slot that a new block needed. */
typedef struct {
    uintptr_t address;
    uint32_t site; /* 0: nothing */
} hl_map_stale;

/* Enter a block of that cut (hl_map_cut) if it is plain, its page there and cut fine enough, and its slot free. False:
 * nothing has changed. */
HL_INLINE bool hl_map_put_quickly(hl_map *map, uintptr_t address, hl_map_cut cut, uint32_t site)
{
    hl_map_page *page = hl_map_plain_page(map, address);
    if (HL_UNLIKELY(page == NULL || page->cut < cut))
        return false;
    address = hl_map_plain(address);
    uint32_t *slot = hl_map_slot(page, address);
    if (HL_UNLIKELY(*slot != 0))
        return false;
    *slot = hl_map_start(address) | site;
    page->live++;
    return true;
}

/* Enter a block. Fails only for want of memory, and then nothing has changed. */
hl_status hl_map_put(hl_map *map, uintptr_t address, size_t size, uint32_t site, hl_map_stale *stale) HL_MUST_USE;

/* The slot of the block that starts at `address`, or NULL. */
static inline uint32_t *hl_map_find(const hl_map *map, uintptr_t address)
{
    const hl_map_page *page = hl_map_page_of(map, address);
    if (page == NULL || page->cut == 0)
        return NULL;
    /* A slot's eight bits do not tell odd multiples of 8, which only pages of the finest cut have. */
    if ((address & 8) != 0 && hl_map_shift(page->cut) != HL_MAP_FINEST)
        return NULL;
    uint32_t *slot = hl_map_slot(page, address);
    return hl_map_site(address, *slot) != 0 ? slot : NULL;
}

/* Remove the block and return its site, or 0 when there is none. */
uint32_t hl_map_take(hl_map *map, uintptr_t address);

/* The same in two steps: where the block is, if it is plain and its page will not become empty (else false); and
 * removing it. */
typedef struct {
    hl_map_page *page;
    uint32_t *slot;
    uint32_t site; /* 0: no block is there */
} hl_map_place;

HL_INLINE bool hl_map_look(const hl_map *map, uintptr_t address, hl_map_place *place)
{
    hl_map_page *page = hl_map_plain_page(map, address);
    if (HL_UNLIKELY(page == NULL))
        return false;
    if (HL_UNLIKELY(page->live <= 1) && !page->queued)
        return false;
    address = hl_map_plain(address);
    uint32_t *slot = hl_map_slot(page, address);
    *place = (hl_map_place){.page = page, .slot = slot, .site = hl_map_site(address, *slot)};
    return true;
}

static inline void hl_map_take_from(const hl_map_place *place)
{
    *place->slot = 0;
    place->page->live--;
}

#endif
