/* map.c: the rare cases: leaves, arrays of slots, finer cuts, pages that become empty. See map.h. */

#include "map.h"

#include <string.h>

enum {
    PAGE_BYTES = 1 << HL_MAP_PAGE_SHIFT,
    ROOT_BYTES = HL_MAP_LEAVES * sizeof(uint32_t),
    LEAF_BYTES = HL_MAP_PAGES_PER_LEAF * sizeof(hl_map_page),
};

static size_t slots_bytes(uint32_t shift)
{
    return ((size_t)PAGE_BYTES >> shift) * sizeof(uint32_t);
}

hl_status hl_map_open(hl_map *map)
{
    *map = (hl_map)HL_MAP_CLOSED;
    map->numbers = hl_os_map(ROOT_BYTES);
    if (map->numbers == NULL)
        return HL_NO_MEMORY;
    hl_status status = hl_pool_new(&map->pool);
    if (status != HL_OK)
        hl_map_close(map);
    return status;
}

void hl_map_close(hl_map *map)
{
    if (map->numbers != NULL) {
        for (uint32_t i = 0; i < map->leaf_count; i++)
            hl_os_unmap(hl_map_leaf_at(map, i)->pages, LEAF_BYTES);
        hl_os_unmap(map->numbers, ROOT_BYTES);
    }
    hl_region_close(&map->leaves);
    if (map->pool != NULL)
        hl_pool_free_all(map->pool);
    *map = (hl_map)HL_MAP_CLOSED;
}

void hl_map_clear(hl_map *map)
{
    for (uint32_t i = 0; i < map->leaf_count; i++)
        hl_os_discard(hl_map_leaf_at(map, i)->pages, LEAF_BYTES);
    memset(map->queue, 0, sizeof map->queue);
    hl_pool_clear(map->pool);
}

/* The first address of the page that contains `address`. */
static uintptr_t start_of(uintptr_t address)
{
    return address & ~(uintptr_t)(PAGE_BYTES - 1);
}

static void free_slots(hl_map *map, const hl_map_page *page, uintptr_t address)
{
    hl_pool_free(map->pool, hl_map_slot(page, start_of(address)), slots_bytes(hl_map_shift(page->cut)));
}

/* Cut the page finer. Every block moves to the slot that holds its exact start. */
static void spread(const hl_map_page *from, const hl_map_page *to, uintptr_t start)
{
    uint32_t old_shift = hl_map_shift(from->cut);
    for (uintptr_t address = start; address < start + PAGE_BYTES; address += (uintptr_t)1 << old_shift) {
        uint32_t entry = *hl_map_slot(from, address);
        if (entry != 0)
            *hl_map_slot(to, hl_map_address(from, address, entry)) = entry;
    }
}

static hl_map_cut cut_for(uintptr_t address, size_t size)
{
    return address & 8 ? hl_map_cut_of_shift(HL_MAP_FINEST) : hl_map_cut_for(size);
}

/* The number of an address's leaf, which is made if it does not exist. 0: no memory. */
static uint32_t leaf_of(hl_map *map, uintptr_t address)
{
    uint32_t *number = &map->numbers[address >> HL_MAP_LEAF_SHIFT];
    if (*number != 0)
        return *number;
    if (hl_region_ensure(&map->leaves, (map->leaf_count + 1) * sizeof(hl_map_leaf)) != HL_OK)
        return 0;
    hl_map_page *pages = hl_os_map(LEAF_BYTES);
    if (pages == NULL)
        return 0;
    uintptr_t start = address >> HL_MAP_LEAF_SHIFT << HL_MAP_LEAF_SHIFT;
    *hl_map_leaf_at(map, map->leaf_count++) = (hl_map_leaf){.pages = pages, .start = start};
    *number = map->leaf_count;
    return *number;
}

/* Make the page ready for a block of this cut, and return it. NULL: no memory. */
static hl_map_page *prepare(hl_map *map, uintptr_t address, hl_map_cut cut)
{
    uint32_t number = leaf_of(map, address);
    if (number == 0)
        return NULL;
    map->near = (address >> HL_MAP_LEAF_SHIFT) * HL_MAP_UNITS_PER_LEAF;
    map->near_pages = hl_map_leaf_at(map, number - 1)->pages;
    hl_map_page *page = hl_map_page_of(map, address);
    if (page->cut >= cut)
        return page;
    uint32_t shift = hl_map_shift(cut);
    void *slots = hl_pool_alloc(map->pool, slots_bytes(shift));
    if (slots == NULL)
        return NULL;
    uintptr_t start = start_of(address);
    hl_map_page old = *page;
    page->slots = (uintptr_t)slots - (start >> shift) * sizeof(uint32_t);
    page->cut = cut;
    if (old.cut != 0) {
        spread(&old, page, start);
        free_slots(map, &old, start);
    }
    return page;
}

hl_status hl_map_put(hl_map *map, uintptr_t address, size_t size, uint32_t site, hl_map_stale *stale)
{
    *stale = (hl_map_stale){0};
    hl_map_page *page = prepare(map, address, cut_for(address, size));
    if (page == NULL)
        return HL_NO_MEMORY;
    uint32_t *slot = hl_map_slot(page, address);
    if (*slot == 0)
        page->live++;
    else
        *stale = (hl_map_stale){.address = hl_map_address(page, address, *slot), .site = *slot & HL_MAP_MOST_SITES};
    *slot = hl_map_start(address) | site;
    return HL_OK;
}

static void enqueue(hl_map *map, uintptr_t address)
{
    hl_map_page_of(map, address)->queued = true;
    uintptr_t oldest = map->queue[map->queue_at];
    map->queue[map->queue_at] = address | 1;
    map->queue_at = (map->queue_at + 1) % HL_MAP_QUEUE;
    if (oldest == 0)
        return;
    hl_map_page *leaving = hl_map_page_of(map, oldest);
    leaving->queued = false;
    if (leaving->live != 0)
        return; /* in use again */
    free_slots(map, leaving, oldest);
    *leaving = (hl_map_page){0};
}

uint32_t hl_map_take(hl_map *map, uintptr_t address)
{
    uint32_t *slot = hl_map_find(map, address);
    if (slot == NULL)
        return 0;
    uint32_t site = *slot & HL_MAP_MOST_SITES;
    hl_map_page *page = hl_map_page_of(map, address);
    hl_map_take_from(&(hl_map_place){.page = page, .slot = slot, .site = site});
    if (page->live == 0 && !page->queued)
        enqueue(map, address);
    return site;
}

size_t hl_map_memory(const hl_map *map)
{
    if (map->numbers == NULL)
        return 0;
    size_t bytes = hl_os_resident(map->numbers, ROOT_BYTES) + map->leaf_count * sizeof(hl_map_leaf);
    for (uint32_t i = 0; i < map->leaf_count; i++)
        bytes += hl_os_resident(hl_map_leaf_at(map, i)->pages, LEAF_BYTES);
    return bytes + hl_pool_memory(map->pool);
}

uint64_t hl_map_blocks(const hl_map *map)
{
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < map->leaf_count; i++)
        for (uint32_t j = 0; j < HL_MAP_PAGES_PER_LEAF; j++)
            blocks += hl_map_leaf_at(map, i)->pages[j].live;
    return blocks;
}

static void each_in_page(const hl_map_page *page, uintptr_t start, hl_map_visitor visit, void *context)
{
    uintptr_t step = (uintptr_t)1 << hl_map_shift(page->cut);
    for (uintptr_t address = start; address < start + PAGE_BYTES; address += step) {
        uint32_t entry = *hl_map_slot(page, address);
        if (entry != 0)
            visit(context, hl_map_address(page, address, entry), entry & HL_MAP_MOST_SITES);
    }
}

void hl_map_each(const hl_map *map, hl_map_visitor visit, void *context)
{
    for (uint32_t i = 0; i < map->leaf_count; i++) {
        uintptr_t start = hl_map_leaf_at(map, i)->start;
        const hl_map_page *pages = hl_map_leaf_at(map, i)->pages;
        for (uintptr_t j = 0; j < HL_MAP_PAGES_PER_LEAF; j++)
            if (pages[j].cut != 0)
                each_in_page(&pages[j], start | j << HL_MAP_PAGE_SHIFT, visit, context);
    }
}
