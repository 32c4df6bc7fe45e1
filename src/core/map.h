/* map.h: from the address of a block to its site.
 *
 * The address space is cut into pages of 16 KB. (A pool of CPython's small-object allocator is one such page.) Each
 * page with blocks has an array of slots, one for every 2^shift bytes. 2^shift is at most the size of the smallest
 * block that we saw there. So no two live blocks share a slot, and a page of large blocks costs little.
 *
 *     address:  | leaf (18 bits) | page in leaf (16) | offset in page (14) |
 *
 *     numbers[leaf] -> leaves[number] -> pages[page] = where the slots are, the cut, the number of blocks (hl_map_page)
 *     slots[offset >> shift] = | address bits 11..4 : 8 | site id : 24 |        0: no block starts here
 *
 * The eight bits keep the exact start of the block, for two reasons. An address inside a slot that is not the block's
 * start must not find the block. And we cut a page finer when a smaller block arrives. Eight bits are enough, because a
 * slot spans at most 4 KB.
 *
 * Why do no two live blocks share a slot? Addresses are multiples of 16, so after a block of n bytes, the next start is
 * at least round_up(n, 16) away. And 2^shift <= round_up(n, 16) for every block of the page. Addresses that are odd
 * multiples of 8 (jemalloc) make the page's shift 3. So if a new block finds its slot occupied, the old entry is stale:
 * its block was released without our notice, and the caller removes it.
 *
 * Addresses that do not fit belong in the side table: those that are not a multiple of 8, are above 48 bits, or are in
 * the first page. See hl_map_takes. The path of every allocation handles only multiples of 16, which we call plain: see
 * hl_map_unit.
 *
 * Most blocks of a program are in one leaf. We remember that leaf, so that the lookup begins with the page.
 *
 * When the last block of a page leaves, the page keeps its array for a while. The last 64 pages that became empty wait
 * in a queue.
 *
 * Threading: needs the ledger's lock.
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
    HL_MAP_COARSEST = 12, /* shift: beyond it, the eight bits of the start are not enough */
};

/* How finely a page is cut, or must be cut for a block. The lower half is the shift. The upper half is a number that is
 * larger for a finer cut. So one comparison tells whether a page is cut finely enough for a block. 0: the page has no
 * slots. */
typedef uint16_t hl_map_cut;
#define HL_MAP_TOO_FINE UINT16_MAX /* no page is cut this finely, so hl_map_put_quickly refuses */

typedef struct {
    uint64_t slots; /* where the slot of address 0 would be, so that we need no offset in the page */
    uint32_t live;  /* number of blocks */
    hl_map_cut cut;
    bool queued; /* the page is in the queue */
} hl_map_page;

typedef struct {
    hl_map_page *pages;
    uintptr_t start; /* its first address */
} hl_map_leaf;

typedef struct {
    uint64_t near;           /* the first unit (hl_map_unit) of the leaf where a page was last made ready */
    hl_map_page *near_pages; /* the pages of that leaf */
    uint32_t *numbers;       /* HL_MAP_LEAVES numbers of leaves, from 1 on; 0: no leaf. NULL: the map is closed */
    hl_region leaves;        /* hl_map_leaf, by number minus 1 */
    uint32_t leaf_count;
    hl_pool *pool;                 /* memory for the slots */
    uintptr_t queue[HL_MAP_QUEUE]; /* an odd address in each page that became empty, oldest at `queue_at`; 0: none */
    uint32_t queue_at;
} hl_map;

/* The value of `near` if there is no such leaf. Only odd addresses of the kernel have units from here on. */
#define HL_MAP_NOWHERE (-(UINT64_C(1) << (HL_MAP_LEAF_SHIFT - 4)))
/* A closed map. Nothing is found in it, and nothing can be put into it. */
#define HL_MAP_CLOSED {.near = HL_MAP_NOWHERE}

hl_status hl_map_open(hl_map *map) HL_MUST_USE;
void hl_map_close(hl_map *map);
/* Forget all blocks. */
void hl_map_clear(hl_map *map);
size_t hl_map_memory(const hl_map *map);
/* The number of blocks, added up over the pages. For validators and tests, like hl_map_each. */
uint64_t hl_map_blocks(const hl_map *map);
/* Call `visit` for every block. */
typedef void (*hl_map_visitor)(void *context, uintptr_t address, uint32_t site);
void hl_map_each(const hl_map *map, hl_map_visitor visit, void *context);

/* Does this address belong in the map? Otherwise it belongs in the side table. The first page stays empty, so that the
 * hooks may look up NULL without a check. */
static inline bool hl_map_takes(uintptr_t address)
{
    return (address & 7) == 0 && address >> HL_MAP_ADDRESS_BITS == 0 && address >> HL_MAP_PAGE_SHIFT != 0;
}

/* The unit of an address. For a multiple of 16 that belongs in the map, it is the address divided by 16. Any other
 * address has a unit that none of those has. So one comparison tells whether an address is plain and in a leaf. */
static inline uint64_t hl_map_unit(uintptr_t address)
{
    return address >> 4 | (uint64_t)address << 60;
}

enum { HL_MAP_UNITS_PER_LEAF = 1 << (HL_MAP_LEAF_SHIFT - 4), HL_MAP_UNITS_PER_PAGE = 1 << (HL_MAP_PAGE_SHIFT - 4) };

/* The same address. It is plain, and this tells the compiler so. Then the compiler leaves out the code for odd
 * multiples of 8. */
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

/* The coarsest cut for a block of this size at a multiple of 16. 2^shift is at most the size rounded up to 16. */
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

/* The page of an address. NULL: there is no such leaf. */
static inline hl_map_page *hl_map_page_of(const hl_map *map, uintptr_t address)
{
    uint32_t number = map->numbers[address >> HL_MAP_LEAF_SHIFT];
    return number == 0 ? NULL
                       : hl_map_leaf_at(map, number - 1)->pages +
                             ((address >> HL_MAP_PAGE_SHIFT) & (HL_MAP_PAGES_PER_LEAF - 1));
}

/* The page of any address. Also NULL if the address is not plain, or if the map is closed. */
HL_INLINE hl_map_page *hl_map_plain_page(const hl_map *map, uintptr_t address)
{
    uint64_t unit = hl_map_unit(address) - map->near;
    if (HL_LIKELY(unit < HL_MAP_UNITS_PER_LEAF)) {
        hl_map_page *page = map->near_pages + unit / HL_MAP_UNITS_PER_PAGE;
        if (page == NULL)
            __builtin_unreachable(); /* so that the compiler drops later checks for NULL */
        return page;
    }
    bool plain = (address & 15) == 0 && address >> HL_MAP_ADDRESS_BITS == 0;
    return plain && map->numbers != NULL ? hl_map_page_of(map, address) : NULL;
}

/* The slot of an address. The page must have slots. */
static inline uint32_t *hl_map_slot(const hl_map_page *page, uintptr_t address)
{
    return (uint32_t *)(uintptr_t)(page->slots + (address >> hl_map_shift(page->cut)) * sizeof(uint32_t));
}

/* The start of a block, as the upper eight bits of its slot keep it. And back: the address of the block, from its slot
 * and any address that the slot spans. */
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

/* The site of the block that starts at `address`, a multiple of 16, from its slot. 0: no block starts there. */
static inline uint32_t hl_map_site(uintptr_t address, uint32_t slot)
{
    uint32_t site = slot ^ hl_map_start(address); /* the upper bits must be equal */
    if (HL_UNLIKELY(site > HL_MAP_MOST_SITES)) {
        HL_APART;
        return 0;
    }
    return site;
}

/* The old entry of a slot that a new block needed. */
typedef struct {
    uintptr_t address;
    uint32_t site; /* 0: there was none */
} hl_map_stale;

/* Enter a block of that cut (hl_map_cut) if it is plain, its page exists and is cut finely enough, and its slot is
 * free. False: nothing has changed. */
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

/* Enter a block. Fails only if there is no memory. Then nothing has changed. */
hl_status hl_map_put(hl_map *map, uintptr_t address, size_t size, uint32_t site, hl_map_stale *stale) HL_MUST_USE;

/* The slot of the block that starts at `address`, or NULL. */
static inline uint32_t *hl_map_find(const hl_map *map, uintptr_t address)
{
    const hl_map_page *page = hl_map_page_of(map, address);
    if (page == NULL || page->cut == 0)
        return NULL;
    /* A slot's eight bits do not distinguish odd multiples of 8. Only pages of the finest cut have such addresses. */
    if ((address & 8) != 0 && hl_map_shift(page->cut) != HL_MAP_FINEST)
        return NULL;
    uint32_t *slot = hl_map_slot(page, address);
    return hl_map_site(address, *slot) != 0 ? slot : NULL;
}

/* Remove the block and return its site. 0: there is no such block. */
uint32_t hl_map_take(hl_map *map, uintptr_t address);

/* Like hl_map_take, in two steps. hl_map_look finds the block if it is plain and its page will not become empty. Else
 * it returns false. hl_map_take_from removes the block. */
typedef struct {
    hl_map_page *page;
    uint32_t *slot;
    uint32_t site; /* 0: there is no block */
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
