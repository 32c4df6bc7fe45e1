/* test_reclaim.c: sites that died: what makes the hand move, how many may stay, and the memory that comes back. */

#include "stacks.h"

static hl_ledger ledger;

static bool begin(void)
{
    hl_os_fail_every(0);
    return hl_ledger_open(&ledger, 25, 1) == HL_OK;
}

static bool in_own_files; /* each number has a file of its own */

/* The site of a stack of two frames that no other number has. */
static hl_site_id numbered_site(uint32_t number, uint64_t size)
{
    hl_string_id file;
    hl_location_id locations[2];
    hl_site_id site = 0;
    char name[16];
    int length = snprintf(name, sizeof name, "%u.py", in_own_files ? number : 0);
    if (hl_names_string(ledger.names, name, (size_t)length, &file) != HL_OK)
        return 0;
    if (hl_names_location(ledger.names, file, 1, 0, &locations[1]) == HL_OK) {
        if (hl_names_location(ledger.names, file, number + 2, 0, &locations[0]) == HL_OK) {
            hl_key key = key_of(locations, 2, size, 0);
            site = hl_ledger_cached(&ledger, &key);
            if (site == 0)
                site = hl_ledger_site(&ledger, &key);
            hl_names_release_location(ledger.names, locations[0]);
        }
        hl_names_release_location(ledger.names, locations[1]);
    }
    hl_names_release_string(ledger.names, file);
    return site;
}

enum { SIZE = 48, ELSEWHERE = 0x10000000, PAGE = 1 << HL_MAP_PAGE_SHIFT };
#define FIRST ((uintptr_t)0x7f0000000000)

static void many_blocks_enter(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        block_enters(&ledger, FIRST + (uintptr_t)i * SIZE, SIZE, 0, numbered_site(i, SIZE));
}

static void many_blocks_leave(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        CHECK(block_leaves(&ledger, FIRST + (uintptr_t)i * SIZE, 0));
}

/* A program that goes on, on one stack: pages become empty all the time. */
static void blocks_come_and_go(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uintptr_t address = ELSEWHERE + (uintptr_t)(i % 1000) * PAGE;
        block_enters(&ledger, address, SIZE, 0, numbered_site(0, SIZE));
        CHECK(block_leaves(&ledger, address, 0));
    }
}

static size_t memory(void)
{
    return hl_sites_memory(&ledger.sites) + hl_names_memory(ledger.names);
}

/* The peak's counts are exact as long as it is the peak: its sites stay. Once there is a higher one, or the program has
 * reset it, they go, without a new site. */
static void memory_comes_back_after_a_peak(void)
{
    enum { SITES = 1000000, FEW = 50000 };
    for (int reset = 0; reset < 2; reset++) {
        uint32_t sites = reset == 0 ? SITES : FEW;
        CHECK_OR_RETURN(begin());
        many_blocks_enter(sites);
        size_t at_peak = memory();
        CHECK(at_peak > sites * 100u);
        many_blocks_leave(sites);
        blocks_come_and_go(5000);
        CHECK(memory() > at_peak / 2);
        CHECK(hl_ledger_validate(&ledger) == NULL); /* the peak's counts are there */
        if (reset == 0) {
            hl_site_id large = numbered_site(1, (uint64_t)SITES * SIZE * 2);
            block_enters(&ledger, ELSEWHERE, (uint64_t)SITES * SIZE * 2, 0, large);
            CHECK(block_leaves(&ledger, ELSEWHERE, 0));
        } else {
            hl_ledger_reset_peak(&ledger);
        }
        blocks_come_and_go(5000);
        CHECK(ledger.sites.table.count <= HL_FEW_SITES);
        CHECK(memory() < 3 << 20);
        CHECK(hl_ledger_validate(&ledger) == NULL);
        many_blocks_enter(2 * HL_FEW_SITES);
        CHECK(hl_ledger_validate(&ledger) == NULL);
        hl_ledger_close(&ledger);
    }
}

static void the_cache_shrinks_with_the_sites(void)
{
    enum { SITES = 100000 };
    CHECK_OR_RETURN(begin());
    uint32_t smallest = ledger.cache.log2;
    for (int pass = 0; pass < 3; pass++)
        many_blocks_enter(SITES);
    CHECK(ledger.cache.log2 > smallest && ledger.cache.far);
    many_blocks_leave(SITES);
    hl_ledger_reset_peak(&ledger);
    blocks_come_and_go(5000);
    CHECK(ledger.cache.log2 <= smallest + 2);
    CHECK_EQUAL(ledger.cache.far, 0);
    many_blocks_enter(SITES);
    CHECK(hl_ledger_validate(&ledger) == NULL);
    hl_ledger_close(&ledger);
}

/* Stacks that a snapshot names wait for it, and go when it has gone, without a new site. */
static void what_waited_for_a_snapshot_goes(void)
{
    enum { SITES = 50000 };
    CHECK_OR_RETURN(begin());
    many_blocks_enter(SITES);
    hl_snapshot *snapshot;
    CHECK_OR_RETURN(hl_snapshot_new(ledger.names, hl_ledger_rows(&ledger), &snapshot) == HL_OK);
    CHECK_OR_RETURN(hl_ledger_fill(&ledger, HL_LIVE, snapshot, hl_ledger_rows(&ledger)) == HL_OK);
    many_blocks_leave(SITES);
    hl_ledger_reset_peak(&ledger);
    blocks_come_and_go(3000);
    CHECK(ledger.names->limbo_first != 0);
    CHECK(ledger.names->stacks.count > SITES - HL_FEW_SITES);
    for (size_t i = 0; i < snapshot->row_count; i++)
        CHECK_EQUAL(hl_names_get_stack(ledger.names, snapshot->rows[i].stack)->depth, 2);
    hl_snapshot_drop(snapshot);
    blocks_come_and_go(3000);
    CHECK_EQUAL(ledger.names->limbo_first, 0);
    CHECK(ledger.names->stacks.count <= HL_FEW_SITES);
    hl_ledger_close(&ledger);
}

/* Whatever is full: when the dead sites are reclaimed there is room for new ones, from one try to the next. */
static void a_full_table_makes_room(void)
{
    enum { MOST = 500 };
    for (int which = 0; which < 5; which++) {
        CHECK_OR_RETURN(begin());
        hl_table *full = which == 0   ? &ledger.sites.table
                         : which == 1 ? &ledger.names->stacks
                         : which == 2 ? &ledger.names->locations
                         : which == 3 ? &ledger.names->strings
                                      : NULL; /* then memory */
        in_own_files = full == &ledger.names->strings;
        if (full != NULL)
            full->most = MOST;
        uint32_t made = 0;
        for (;; made++) {
            if (full == NULL && made == MOST)
                break;
            hl_site_id site = numbered_site(made, SIZE);
            if (site == 0)
                break;
            block_enters(&ledger, FIRST + (uintptr_t)made * SIZE, SIZE, 0, site);
        }
        CHECK(made > MOST - 10 && made <= MOST);
        CHECK(!hl_ledger_make_room(&ledger)); /* every site has a block */
        many_blocks_leave(made);
        CHECK(!hl_ledger_make_room(&ledger)); /* the peak needs them */
        hl_ledger_reset_peak(&ledger);
        for (uint32_t i = 0; i < 3 * MOST; i++) {
            hl_os_fail_every(full == NULL);
            hl_site_id site = numbered_site(10000 + i, SIZE + 1);
            if (site == 0 && hl_ledger_make_room(&ledger))
                site = numbered_site(10000 + i, SIZE + 1);
            hl_os_fail_every(0);
            CHECK_OR_RETURN(site != 0);
            block_enters(&ledger, FIRST, SIZE + 1, 0, site);
            CHECK(block_leaves(&ledger, FIRST, 0));
            if (i % 100 == 0)
                hl_ledger_reset_peak(&ledger);
        }
        CHECK_EQUAL(ledger.cache.stack_version == 0 || ledger.cache.stack != 0, 1);
        CHECK(hl_ledger_validate(&ledger) == NULL);
        hl_ledger_close(&ledger);
    }
}

/* One pass over as many stacks, each with a block that is gone at once. How many sites were reclaimed. */
static uint32_t temporaries(uint32_t first, uint32_t stacks)
{
    uint64_t retired = ledger.sites.retired_blocks;
    for (uint32_t i = 0; i < stacks; i++) {
        block_enters(&ledger, FIRST, SIZE, 0, numbered_site(first + i, SIZE));
        CHECK(block_leaves(&ledger, FIRST, 0));
    }
    return (uint32_t)(ledger.sites.retired_blocks - retired);
}

static void the_bound_follows_the_program(void)
{
    CHECK_OR_RETURN(begin());
    block_enters(&ledger, ELSEWHERE, 1 << 20, 0, numbered_site(0, 1 << 20)); /* the peak is above what follows */
    static const uint32_t stacks[] = {HL_FEW_SITES / 2, 2 * HL_FEW_SITES, 8 * HL_FEW_SITES};
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        for (int pass = 0; pass < 10; pass++)
            temporaries(0, stacks[i]);
        CHECK_EQUAL(temporaries(0, stacks[i]), 0);
    }
    CHECK(ledger.sites.bound >= 8 * HL_FEW_SITES);
    hl_sites_count(&ledger.sites, true); /* a window opens, and closes */
    CHECK_EQUAL(ledger.sites.few, HL_FEW_COUNTED_SITES);
    hl_sites_count(&ledger.sites, false);
    CHECK_EQUAL(ledger.sites.few, ledger.sites.bound);
    /* Every block has a size of its own: no site comes again, so none need stay. */
    for (uint64_t i = 0; i < 200000; i++) {
        block_enters(&ledger, FIRST, 1000 + i, 0, numbered_site(0, 1000 + i));
        CHECK(block_leaves(&ledger, FIRST, 0));
    }
    CHECK_EQUAL(ledger.sites.bound, HL_FEW_SITES);
    CHECK(ledger.sites.table.count < 3 * HL_FEW_SITES);
    /* More than the greatest bound has room for: then the smallest does as well. */
    for (int pass = 0; pass < 5; pass++)
        temporaries(0, 2 * HL_MOST_FEW_SITES);
    CHECK_EQUAL(ledger.sites.bound, HL_FEW_SITES);
    CHECK(ledger.sites.table.count < 3 * HL_FEW_SITES);
    hl_ledger_close(&ledger);
}

/* Code that is made and dies: its locations have the ids of others that died before, and its blocks their sizes. */
static void ids_that_come_again_are_no_rebirth(void)
{
    enum { STACKS_EACH = 2 * HL_FEW_SITES };
    CHECK_OR_RETURN(begin());
    block_enters(&ledger, ELSEWHERE, 1 << 20, 0, numbered_site(0, 1 << 20));
    for (uint32_t pass = 0; pass < 10; pass++)
        temporaries(pass * STACKS_EACH, STACKS_EACH);
    CHECK(ledger.sites.retired_blocks > 7 * STACKS_EACH);
    CHECK_EQUAL(ledger.sites.bound, HL_FEW_SITES);
    hl_ledger_close(&ledger);
}

CHECK_MAIN(TEST(memory_comes_back_after_a_peak), TEST(the_cache_shrinks_with_the_sites),
           TEST(what_waited_for_a_snapshot_goes), TEST(a_full_table_makes_room), TEST(the_bound_follows_the_program),
           TEST(ids_that_come_again_are_no_rebirth))
