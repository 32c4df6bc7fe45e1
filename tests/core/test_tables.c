/* test_tables.c: the building blocks: regions, tables, the pool, the map. */

#include <stdlib.h>

#include "../../src/core/index.h"
#include "../../src/core/map.h"
#include "check.h"

/* Regions. */

static void a_region_keeps_its_content(void)
{
    hl_region region = {0};
    for (size_t bytes = 1; bytes <= 8u << 20; bytes *= 2) {
        CHECK_OR_RETURN(hl_region_ensure(&region, bytes) == HL_OK);
        CHECK(region.bytes >= bytes && region.bytes <= (32 << 10) + bytes * 5 / 4);
        region.base[bytes - 1] = (char)bytes;
        region.base[0] = 7;
    }
    hl_region_shrink(&region, 8u << 19);
    CHECK_EQUAL(region.bytes >= 8u << 20, 1); /* half of it in use: it may be needed again */
    hl_region_shrink(&region, 64);
    CHECK(region.bytes < 64 << 10);
    CHECK_EQUAL(region.base[0], 7);
    CHECK_EQUAL(region.base[63], 64);
    hl_region_close(&region);
}

static void a_region_that_is_refused_more_gets_what_it_needs(void)
{
    hl_region region = {0};
    hl_os_fail_every(0);
    CHECK_OR_RETURN(hl_region_ensure(&region, 1 << 20) == HL_OK);
    hl_os_fail_every(1);
    CHECK_EQUAL(hl_region_ensure(&region, (1 << 20) + 1), HL_NO_MEMORY);
    CHECK_EQUAL(region.bytes, 1 << 20);
    hl_os_fail_every(2);
    size_t page = hl_os_page();
    void *pages = hl_os_map(page); /* the first call passes, the second is refused, the third passes */
    CHECK_EQUAL(hl_region_ensure(&region, (1 << 20) + 1), HL_OK);
    CHECK_EQUAL(region.bytes, (1 << 20) + page);
    hl_os_fail_every(0);
    hl_os_unmap(pages, page);
    hl_region_close(&region);
}

/* Tables. */

enum { ITEMS = 20000 };

static uint32_t find(const hl_table *table, uint32_t hash, uint32_t value)
{
    for (uint32_t id = hl_table_first(table, hash); id != 0; id = hl_table_link(table, id)->next)
        if (*(const uint32_t *)hl_table_at(table, id) == value)
            return id;
    return 0;
}

static void a_table_finds_what_was_added_and_not_what_was_removed(void)
{
    hl_table table;
    static uint32_t ids[ITEMS];
    uint64_t seed = 1;
    hl_table_open(&table, sizeof(uint32_t), ITEMS, true);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < ITEMS; i++) {
            uint32_t hash = round == 1 ? i & 7 : (uint32_t)hl_mix(i); /* long chains too */
            if (round == 1 && i >= 500)
                break;
            CHECK_OR_RETURN(hl_table_add(&table, hash, &ids[i]) == HL_OK);
            *(uint32_t *)hl_table_at(&table, ids[i]) = i;
        }
        uint32_t count = round == 1 ? 500 : ITEMS;
        CHECK_EQUAL(table.count, count);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t hash = round == 1 ? i & 7 : (uint32_t)hl_mix(i);
            CHECK_EQUAL(find(&table, hash, i), ids[i]);
        }
        for (uint32_t i = 0; i < count; i++)
            if (check_below(&seed, 2) == 0) {
                hl_table_remove(&table, ids[i]);
                ids[i] = 0;
            }
        for (uint32_t i = 0; i < count; i++) {
            uint32_t hash = round == 1 ? i & 7 : (uint32_t)hl_mix(i);
            CHECK_EQUAL(find(&table, hash, i), ids[i]);
        }
        for (uint32_t i = 0; i < count; i++)
            if (ids[i] != 0)
                hl_table_remove(&table, ids[i]);
        CHECK_EQUAL(table.count, 0);
    }
    CHECK_EQUAL(table.span_count, ITEMS / HL_TABLE_SPAN + 1); /* ids came back */
    hl_table_close(&table);
}

static void a_full_table_says_so(void)
{
    hl_table table;
    uint32_t id;
    hl_table_open(&table, 8, 3, false);
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL(hl_table_add(&table, 5, &id), HL_OK);
    CHECK_EQUAL(hl_table_add(&table, 5, &id), HL_FULL);
    hl_table_remove(&table, 2);
    CHECK_EQUAL(hl_table_add(&table, 5, &id), HL_OK);
    CHECK_EQUAL(id, 2);
    hl_table_close(&table);
}

/* The pool. */

enum { PIECES = 3000 };

static void pieces_do_not_overlap_and_come_zeroed(void)
{
    static struct {
        unsigned char *bytes;
        size_t size;
    } pieces[PIECES];
    hl_pool *pool;
    uint64_t seed = 3;
    CHECK_OR_RETURN(hl_pool_new(&pool) == HL_OK);
    for (int step = 0; step < 60000; step++) {
        uint32_t at = check_below(&seed, PIECES);
        if (pieces[at].bytes == NULL) {
            size_t size = check_below(&seed, check_below(&seed, 50) == 0 ? 100000 : 700);
            pieces[at].bytes = hl_pool_alloc(pool, size);
            pieces[at].size = size;
            CHECK_OR_RETURN(pieces[at].bytes != NULL && (uintptr_t)pieces[at].bytes % (size > 8 ? 16 : 8) == 0);
            for (size_t i = 0; i < size; i++)
                CHECK_OR_RETURN(pieces[at].bytes[i] == 0);
            memset(pieces[at].bytes, (int)(at % 255) + 1, size);
        } else {
            for (size_t i = 0; i < pieces[at].size; i++)
                CHECK_OR_RETURN(pieces[at].bytes[i] == at % 255 + 1);
            hl_pool_free(pool, pieces[at].bytes, pieces[at].size);
            pieces[at].bytes = NULL;
        }
    }
    for (int at = 0; at < PIECES; at++)
        if (pieces[at].bytes != NULL)
            hl_pool_free(pool, pieces[at].bytes, pieces[at].size);
    hl_pool_free_all(pool);
}

/* Rounding up loses a quarter at most, and what is not touched yet does not count. */
static void pieces_take_little_more_than_asked_for(void)
{
    static const size_t sizes[] = {8, 16, 33, 65, 100, 129, 300, 1000, 2049, 4000};
    enum { EACH = 2000 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        hl_pool *pool;
        CHECK_OR_RETURN(hl_pool_new(&pool) == HL_OK);
        CHECK_OR_RETURN(hl_pool_alloc(pool, sizes[i]) != NULL);
        CHECK(hl_pool_memory(pool) <= 2 * hl_os_page() + sizes[i]);
        for (int j = 1; j < EACH; j++)
            CHECK_OR_RETURN(hl_pool_alloc(pool, sizes[i]) != NULL);
        size_t asked = EACH * sizes[i], taken = hl_pool_memory(pool);
        CHECK(taken >= asked && (taken - hl_os_page()) * 2 <= asked * 3);
        hl_pool_free_all(pool);
    }
}

static void memory_is_given_back_after_a_peak(void)
{
    hl_pool *pool;
    static void *pieces[20000];
    CHECK_OR_RETURN(hl_pool_new(&pool) == HL_OK);
    for (int i = 0; i < 20000; i++)
        CHECK_OR_RETURN((pieces[i] = hl_pool_alloc(pool, 1024)) != NULL);
    size_t peak = hl_pool_memory(pool);
    CHECK(peak >= 20000u * 1024);
    for (int i = 0; i < 20000; i++)
        hl_pool_free(pool, pieces[i], 1024);
    CHECK(hl_pool_memory(pool) < peak / 32);
    hl_pool_free_all(pool);
}

static void a_cleared_pool_serves_any_size_again(void)
{
    hl_pool *pool;
    enum { EACH = 700 };
    CHECK_OR_RETURN(hl_pool_new(&pool) == HL_OK);
    hl_pool_clear(pool);
    CHECK_EQUAL(hl_pool_memory(pool), 0);
    for (size_t size = 8; size <= 1 << 15; size *= 2) { /* up to pieces that are mapped one by one */
        unsigned char *pieces[EACH];
        for (int i = 0; i < EACH; i++) {
            CHECK_OR_RETURN((pieces[i] = hl_pool_alloc(pool, size)) != NULL);
            CHECK_OR_RETURN(pieces[i][0] == 0 && pieces[i][size - 1] == 0);
            memset(pieces[i], 1 + i % 255, size);
        }
        for (int i = 0; i < EACH; i++)
            CHECK_OR_RETURN(pieces[i][0] == 1 + i % 255 && pieces[i][size - 1] == 1 + i % 255);
        for (int i = 0; i < EACH; i += 3)
            hl_pool_free(pool, pieces[i], size);
        hl_pool_clear(pool);
        CHECK(hl_pool_memory(pool) <= 5 * (64 << 10));
    }
    hl_pool_free_all(pool);
}

/* The map. */

static void an_address_within_a_block_is_not_the_block(void)
{
    hl_map map;
    hl_map_stale stale;
    CHECK_OR_RETURN(hl_map_open(&map) == HL_OK);
    CHECK_EQUAL(hl_map_put(&map, 0x10030, 2000, 5, &stale), HL_OK);
    CHECK(hl_map_find(&map, 0x10030) != NULL);
    CHECK(hl_map_find(&map, 0x10020) == NULL);
    CHECK(hl_map_find(&map, 0x10040) == NULL);
    CHECK(hl_map_find(&map, 0x10038) == NULL); /* an odd multiple of 8 */
    CHECK_EQUAL(hl_map_take(&map, 0x10040), 0);
    CHECK_EQUAL(hl_map_take(&map, 0x10030), 5);
    CHECK_EQUAL(hl_map_take(&map, 0x10030), 0);
    CHECK_EQUAL(hl_map_blocks(&map), 0);
    hl_map_close(&map);
}

static void a_finer_cut_keeps_every_block(void)
{
    hl_map map;
    hl_map_stale stale;
    CHECK_OR_RETURN(hl_map_open(&map) == HL_OK);
    /* Sizes that shrink: each makes the page be cut anew. The last address is an odd multiple of 8. */
    static const struct {
        uintptr_t address;
        size_t size;
    } blocks[] = {{0x4030, 5000}, {0x5400, 2048}, {0x5c10, 1000}, {0x6000, 513}, {0x6210, 300},
                  {0x6350, 129},  {0x63e0, 65},   {0x6430, 33},   {0x6460, 17},  {0x6480, 16},
                  {0x6490, 1},    {0x64a0, 0},    {0x64b8, 8}};
    enum { BLOCKS = sizeof blocks / sizeof *blocks };
    for (uint32_t i = 0; i < BLOCKS; i++) {
        CHECK_EQUAL(hl_map_put(&map, blocks[i].address, blocks[i].size, i + 1, &stale), HL_OK);
        CHECK_EQUAL(stale.site, 0);
        for (uint32_t j = 0; j <= i; j++) {
            uint32_t *slot = hl_map_find(&map, blocks[j].address);
            CHECK_OR_RETURN(slot != NULL);
            CHECK_EQUAL(*slot & HL_MAP_MOST_SITES, j + 1);
        }
    }
    for (uint32_t i = 0; i < BLOCKS; i++)
        CHECK_EQUAL(hl_map_take(&map, blocks[i].address), i + 1);
    hl_map_close(&map);
}

static void the_short_way_is_for_plain_addresses_in_pages_that_are_ready(void)
{
    hl_map map;
    hl_map_stale stale;
    hl_map_place place;
    CHECK_OR_RETURN(hl_map_open(&map) == HL_OK);
    for (size_t size = 0; size < 3 << HL_MAP_COARSEST; size++) {
        size_t rounded = size == 0 ? 16 : (size + 15) & ~(size_t)15;
        CHECK_EQUAL((size_t)1 << hl_map_shift(hl_map_cut_for(size)) <= rounded, 1);
        uint32_t shift = hl_map_shift(hl_map_cut_for(size));
        CHECK_EQUAL(shift == HL_MAP_COARSEST || (size_t)2 << shift > rounded, 1);
    }
    CHECK_EQUAL(hl_map_put_quickly(&map, 0x20100, hl_map_cut_for(256), 1), 0); /* there is no leaf */
    CHECK_EQUAL(hl_map_put(&map, 0x20100, 256, 1, &stale), HL_OK);
    CHECK_EQUAL(hl_map_put_quickly(&map, 0x24100, hl_map_cut_for(256), 2), 0); /* no page */
    CHECK_EQUAL(hl_map_put_quickly(&map, 0x20300, hl_map_cut_for(112), 2), 0); /* cut too coarse */
    CHECK_EQUAL(hl_map_put_quickly(&map, 0x20100, hl_map_cut_for(256), 2), 0); /* the slot is taken */
    static const uintptr_t odd[] = {0x20308, 0x20301, 0x2030f, (uintptr_t)1 << 48 | 0x20300, ~(uintptr_t)0xf};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        CHECK_EQUAL(hl_map_put_quickly(&map, odd[i], hl_map_cut_for(256), 2), 0);
        CHECK_EQUAL(hl_map_look(&map, odd[i], &place), 0);
    }
    CHECK_EQUAL(hl_map_look(&map, 0x20100, &place), 0); /* the last one of its page */
    CHECK_EQUAL(hl_map_put_quickly(&map, 0x20300, hl_map_cut_for(256), 2), 1);
    CHECK_OR_RETURN(hl_map_look(&map, 0x20310, &place)); /* inside a block */
    CHECK_EQUAL(place.site, 0);
    CHECK_OR_RETURN(hl_map_look(&map, 0x20500, &place)); /* none there */
    CHECK_EQUAL(place.site, 0);
    CHECK_EQUAL(hl_map_look(&map, 0x24300, &place), 0);
    CHECK_OR_RETURN(hl_map_look(&map, 0x20300, &place));
    CHECK_EQUAL(place.site, 2);
    CHECK_EQUAL(hl_map_blocks(&map), 2);
    hl_map_take_from(&place);
    CHECK_EQUAL(hl_map_blocks(&map), 1);
    CHECK_EQUAL(hl_map_take(&map, 0x20100), 1);
    hl_map_close(&map);
}

static void a_block_released_behind_our_back_is_reported(void)
{
    hl_map map;
    hl_map_stale stale;
    CHECK_OR_RETURN(hl_map_open(&map) == HL_OK);
    CHECK_EQUAL(hl_map_put(&map, 0x20010, 600, 7, &stale), HL_OK);
    CHECK_EQUAL(hl_map_put(&map, 0x20010, 600, 8, &stale), HL_OK); /* at its start */
    CHECK_EQUAL(stale.site, 7);
    CHECK_EQUAL(stale.address, 0x20010);
    CHECK_EQUAL(hl_map_put(&map, 0x20050, 700, 9, &stale), HL_OK); /* overlapping it */
    CHECK_EQUAL(stale.site, 8);
    CHECK_EQUAL(stale.address, 0x20010);
    CHECK_EQUAL(hl_map_blocks(&map), 1);
    hl_map_close(&map);
}

static void pages_that_empty_give_their_slots_back(void)
{
    hl_map map;
    hl_map_stale stale;
    CHECK_OR_RETURN(hl_map_open(&map) == HL_OK);
    enum { BLOCKS = 1000000 };
    for (uintptr_t i = 0; i < BLOCKS; i++)
        CHECK_OR_RETURN(hl_map_put(&map, 0x7f0000000000 + i * 64, 64, 1, &stale) == HL_OK);
    size_t peak = hl_map_memory(&map);
    CHECK(peak <= BLOCKS * 5u);
    for (uintptr_t i = 0; i < BLOCKS; i++)
        CHECK_OR_RETURN(hl_map_take(&map, 0x7f0000000000 + i * 64) == 1);
    CHECK(hl_map_memory(&map) < peak / 5);
    hl_map_close(&map);
}

static void bytes_a_block_stay_below_sixteen_at_any_size(void)
{
    static const size_t sizes[] = {1, 8, 16, 31, 60, 150, 450, 511, 2000, 5000, 100000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        hl_map map;
        hl_map_stale stale;
        size_t spacing = (sizes[s] + 15) / 16 * 16, blocks = 20000;
        CHECK_OR_RETURN(hl_map_open(&map) == HL_OK);
        for (uintptr_t i = 0; i < blocks; i++)
            CHECK_OR_RETURN(hl_map_put(&map, 0x550000000000 + i * spacing, sizes[s], 1, &stale) == HL_OK);
        size_t fixed = 2 * HL_MAP_PAGES_PER_LEAF * sizeof(hl_map_page); /* the leaves: one for each GB of addresses */
        CHECK(hl_map_memory(&map) < blocks * 16 + fixed);
        hl_map_close(&map);
    }
}

static void failing_memory_leaves_the_map_as_it_was(void)
{
    for (size_t n = 1; n < 20; n++) {
        hl_map map;
        hl_map_stale stale;
        uint64_t seed = n;
        hl_os_fail_every(0);
        CHECK_OR_RETURN(hl_map_open(&map) == HL_OK);
        static bool entered[4096];
        memset(entered, 0, sizeof entered);
        for (int step = 0; step < 20000; step++) {
            uint32_t at = check_below(&seed, 4096);
            uintptr_t address = 0x7f1200000000 + (uintptr_t)at * 4096;
            hl_os_fail_every(n);
            if (entered[at])
                CHECK_EQUAL(hl_map_take(&map, address), at + 1);
            bool put =
                !entered[at] && hl_map_put(&map, address, 16 + check_below(&seed, 4000), at + 1, &stale) == HL_OK;
            hl_os_fail_every(0);
            entered[at] = put;
            CHECK_EQUAL(hl_map_find(&map, address) != NULL, put);
        }
        hl_map_close(&map);
    }
}

CHECK_MAIN(TEST(a_region_keeps_its_content), TEST(a_region_that_is_refused_more_gets_what_it_needs),
           TEST(a_table_finds_what_was_added_and_not_what_was_removed), TEST(a_full_table_says_so),
           TEST(pieces_do_not_overlap_and_come_zeroed), TEST(pieces_take_little_more_than_asked_for),
           TEST(memory_is_given_back_after_a_peak), TEST(a_cleared_pool_serves_any_size_again),
           TEST(an_address_within_a_block_is_not_the_block), TEST(a_finer_cut_keeps_every_block),
           TEST(the_short_way_is_for_plain_addresses_in_pages_that_are_ready),
           TEST(a_block_released_behind_our_back_is_reported), TEST(pages_that_empty_give_their_slots_back),
           TEST(bytes_a_block_stay_below_sixteen_at_any_size), TEST(failing_memory_leaves_the_map_as_it_was))
