/* map.c: what is rare: leaves, arrays of slots, finer cuts, pages that become empty. See map.h. */

#include "map.h"

#include <string.h>

enum {
    PAGE_BYTES = 1 << HL_MAP_PAGE_SHIFT,
    ROOT_BYTES = HL_MAP_LEAVES * (sizeof(uint64_t *) + sizeof(uint32_t)),
    LEAF_BYTES = HL_MAP_PAGES_PER_LEAF * sizeof(uint64_t),
};

static size_t slots_bytes(uint32_t shift)
{
    return ((size_t)PAGE_BYTES >> shift) * sizeof(uint32_t);
}

hl_status hl_map_open(hl_map *map)
{
    *map = (hl_map){.near = HL_MAP_LEAVES};
    map->leaves = hl_os_map(ROOT_BYTES);
    if (map->leaves == NULL)
        return HL_NO_MEMORY;
    map->used = (uint32_t *)(void *)(map->leaves + HL_MAP_LEAVES);
    hl_status status = hl_pool_new(&map->pool);
    if (status != HL_OK)
        hl_map_close(map);
    return status;
}

void hl_map_close(hl_map *map)
{
    if (map->leaves != NULL) {
        for (uint32_t i = 0; i < map->used_leaves; i++)
            hl_os_unmap(map->leaves[map->used[i]], LEAF_BYTES);
        hl_os_unmap(map->leaves, ROOT_BYTES);
    }
    if (map->pool != NULL)
        hl_pool_free_all(map->pool);
    *map = (hl_map){0};
}

void hl_map_clear(hl_map *map)
{
    for (uint32_t i = 0; i < map->used_leaves; i++)
        hl_os_discard(map->leaves[map->used[i]], LEAF_BYTES);
    memset(map->queue, 0, sizeof map->queue);
    hl_pool_clear(map->pool);
}

/* Cut the page finer: every block moves to the slot that holds its exact start. */
static void spread(uint64_t from, uint64_t to, uintptr_t page_address)
{
    uint32_t old_shift = hl_map_shift(from);
    for (uintptr_t offset = 0; offset < PAGE_BYTES; offset += (uintptr_t)1 << old_shift) {
        uint32_t entry = *hl_map_slot(from, page_address + offset);
        if (entry != 0)
            *hl_map_slot(to, hl_map_address(from, page_address + offset, entry)) = entry;
    }
}

static uint32_t shift_for(uintptr_t address, size_t size)
{
    if (address & 8)
        return HL_MAP_FINEST;
    return hl_map_cut(size);
}

/* Make the page fit, and return it; NULL: no memory. */
static uint64_t *prepare(hl_map *map, uintptr_t address, uint32_t shift)
{
    uint64_t **leaf = &map->leaves[address >> HL_MAP_LEAF_SHIFT];
    if (*leaf == NULL) {
        *leaf = hl_os_map(LEAF_BYTES);
        if (*leaf == NULL)
            return NULL;
        map->used[map->used_leaves++] = (uint32_t)(address >> HL_MAP_LEAF_SHIFT);
    }
    map->near = address >> HL_MAP_LEAF_SHIFT;
    map->near_pages = *leaf;
    uint64_t *page = hl_map_page(map, address);
    if (*page != 0 && hl_map_shift(*page) <= shift)
        return page;
    void *slots = hl_pool_alloc(map->pool, slots_bytes(shift));
    if (slots == NULL)
        return NULL;
    uint64_t old = *page;
    uint64_t made = (uint64_t)(uintptr_t)slots << (HL_MAP_SLOTS_AT - 4) | shift;
    if (old != 0) {
        made |= old & (HL_MAP_LIVE_MASK | HL_MAP_QUEUED);
        spread(old, made, address & ~(uintptr_t)(PAGE_BYTES - 1));
        hl_pool_free(map->pool, hl_map_slots(old), slots_bytes(hl_map_shift(old)));
    }
    *page = made;
    return page;
}

hl_status hl_map_put(hl_map *map, uintptr_t address, size_t size, uint32_t site, hl_map_stale *stale)
{
    *stale = (hl_map_stale){0};
    uint64_t *page = prepare(map, address, shift_for(address, size));
    if (page == NULL)
        return HL_NO_MEMORY;
    uint32_t *slot = hl_map_slot(*page, address);
    if (*slot == 0)
        *page += HL_MAP_ONE_LIVE;
    else
        *stale = (hl_map_stale){.address = hl_map_address(*page, address, *slot), .site = *slot & HL_MAP_MOST_SITES};
    *slot = hl_map_start(address) | site;
    return HL_OK;
}

static void enqueue(hl_map *map, uint64_t *page)
{
    *page |= HL_MAP_QUEUED;
    uint64_t *leaving = map->queue[map->queue_at];
    map->queue[map->queue_at] = page;
    map->queue_at = (map->queue_at + 1) % HL_MAP_QUEUE;
    if (leaving == NULL)
        return;
    *leaving &= ~HL_MAP_QUEUED;
    if ((*leaving & HL_MAP_LIVE_MASK) != 0)
        return; /* in use again */
    hl_pool_free(map->pool, hl_map_slots(*leaving), slots_bytes(hl_map_shift(*leaving)));
    *leaving = 0;
}

uint32_t hl_map_take(hl_map *map, uintptr_t address)
{
    uint32_t *slot = hl_map_find(map, address);
    if (slot == NULL)
        return 0;
    uint32_t site = *slot & HL_MAP_MOST_SITES;
    uint64_t *page = hl_map_page(map, address);
    hl_map_take_from(&(hl_map_place){.page = page, .slot = slot, .site = site});
    if ((*page & (HL_MAP_LIVE_MASK | HL_MAP_QUEUED)) == 0) /* no block left and not in the queue yet */
        enqueue(map, page);
    return site;
}

size_t hl_map_memory(const hl_map *map)
{
    if (map->leaves == NULL)
        return 0;
    size_t bytes = hl_os_resident(map->leaves, ROOT_BYTES);
    for (uint32_t i = 0; i < map->used_leaves; i++)
        bytes += hl_os_resident(map->leaves[map->used[i]], LEAF_BYTES);
    return bytes + hl_pool_memory(map->pool);
}

uint64_t hl_map_blocks(const hl_map *map)
{
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < map->used_leaves; i++)
        for (uint32_t j = 0; j < HL_MAP_PAGES_PER_LEAF; j++)
            blocks += (map->leaves[map->used[i]][j] & HL_MAP_LIVE_MASK) / HL_MAP_ONE_LIVE;
    return blocks;
}

static void each_in_page(uint64_t page, uintptr_t start, hl_map_visitor visit, void *context)
{
    uintptr_t step = (uintptr_t)1 << hl_map_shift(page);
    for (uintptr_t address = start; address < start + PAGE_BYTES; address += step) {
        uint32_t entry = *hl_map_slot(page, address);
        if (entry != 0)
            visit(context, hl_map_address(page, address, entry), entry & HL_MAP_MOST_SITES);
    }
}

void hl_map_each(const hl_map *map, hl_map_visitor visit, void *context)
{
    for (uint32_t i = 0; i < map->used_leaves; i++) {
        uintptr_t start = (uintptr_t)map->used[i] << HL_MAP_LEAF_SHIFT;
        const uint64_t *pages = map->leaves[map->used[i]];
        for (uintptr_t j = 0; j < HL_MAP_PAGES_PER_LEAF; j++)
            if (pages[j] != 0)
                each_in_page(pages[j], start | j << HL_MAP_PAGE_SHIFT, visit, context);
    }
}
