/* test_ledger.c: random histories against a model that keeps every block, with and without failing memory. */

#include <stdlib.h>

#include "ledger_model.h"

static void random_histories_agree_with_the_model(void)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        CHECK_OR_RETURN(begin(seed));
        run(&the_history, 40000, 4000, 0);
        hl_ledger_close(&the_history.ledger);
    }
}

static void failing_memory_only_loses_records(void)
{
    for (size_t n = 1; n <= 60; n++) {
        CHECK_OR_RETURN(begin(n));
        run(&the_history, 1500, 300, n);
        hl_ledger_close(&the_history.ledger);
    }
    CHECK_OR_RETURN(begin(9));
    run(&the_history, 3000, 500, 1);
    CHECK(the_history.ledger.lost > 0); /* the failures did come through */
    hl_ledger_close(&the_history.ledger);
}

/* A ledger that is cleared goes on like a new one, with memory that fails too; not while a snapshot names its name
 * table. */
static void a_cleared_ledger_is_like_a_new_one(void)
{
    for (size_t fail = 0; fail < 12; fail++) {
        CHECK_OR_RETURN(begin(fail + 1));
        hl_ledger *ledger = &the_history.ledger;
        for (uint32_t clear_count = 1; clear_count < 4; clear_count++) {
            run(&the_history, 400, 200, fail);
            if (clear_count == 2) {
                hl_ledger_inherit(ledger);
                run(&the_history, 100, 100, fail);
            }
            uint64_t origin = ledger->origins.ids[0], lost = ledger->lost;
            hl_snapshot *snapshot;
            CHECK_OR_RETURN(hl_snapshot_new(ledger->names, 1, &snapshot) == HL_OK);
            CHECK(!hl_ledger_clear(ledger));
            CHECK_EQUAL(ledger->clear_count, clear_count);
            hl_snapshot_drop(snapshot);
            hl_os_fail_every(fail);
            CHECK_OR_RETURN(hl_ledger_clear(ledger));
            hl_os_fail_every(0);
            CHECK_EQUAL(ledger->clear_count, clear_count + 1);
            CHECK_EQUAL(ledger->lost, lost);
            CHECK(ledger->origins.count == 1 && ledger->origins.ids[0] != origin);
            CHECK_EQUAL(ledger->sites.table.count, 1);
            CHECK_EQUAL(ledger->names->strings.count + ledger->names->locations.count + ledger->names->stacks.count, 0);
            for (uint32_t at = 0; at < BLOCKS; at++)
                model_forget(&the_history, at);
            the_history.peak = 0;
            memset(the_history.peak_blocks, 0, sizeof the_history.peak_blocks);
            CHECK_EQUAL(the_history.traced, 0);
        }
        run(&the_history, 400, 200, fail);
        hl_ledger_close(ledger);
    }
}

static void a_large_ledger_is_not_cleared_in_place(void)
{
    CHECK_OR_RETURN(begin(1));
    hl_ledger *ledger = &the_history.ledger;
    for (uint64_t size = 0; size < 4 * HL_TABLE_SPAN; size++)
        CHECK(site_of(ledger, 1, size, 0) != 0);
    CHECK(!hl_ledger_clear(ledger));
    CHECK_EQUAL(ledger->sites.table.count, 4 * HL_TABLE_SPAN + 1);
    hl_ledger_close(ledger);
}

static void opening_fails_cleanly(void)
{
    hl_ledger ledger;
    bool opened = false;
    for (size_t n = 1; n < 200 && !opened; n++) {
        hl_os_fail_every(n);
        opened = hl_ledger_open(&ledger, 25, 1) == HL_OK;
        hl_os_fail_every(0);
        if (opened)
            hl_ledger_close(&ledger);
    }
    CHECK(opened);
}

/* Every block has a size of its own: the tables must not grow with the number of allocations. */
static void sites_that_come_and_go_do_not_pile_up(void)
{
    CHECK_OR_RETURN(begin(1));
    hl_ledger *ledger = &the_history.ledger;
    size_t middle = 0;
    for (uint64_t i = 0; i < 400000; i++) {
        hl_site_id site = site_of(ledger, (uint32_t)(i % STACKS), i, 0);
        CHECK_OR_RETURN(site != 0);
        block_enters(ledger, 0x550000001000, i, 0, site);
        block_leaves(ledger, 0x550000001000, 0);
        if (i % 50 == 0) /* a peak keeps what it counts; later ones are lower */
            hl_ledger_reset_peak(ledger);
        if (i == 100000)
            middle = hl_table_memory(&ledger->sites.table) + hl_names_memory(ledger->names);
    }
    CHECK(hl_table_memory(&ledger->sites.table) + hl_names_memory(ledger->names) <= middle + (64 << 10));
    CHECK(ledger->sites.table.used < 20000);
    CHECK(hl_ledger_validate(ledger) == NULL);
    uint64_t bytes, blocks;
    hl_ledger_allocated(ledger, &bytes, &blocks);
    CHECK_EQUAL(blocks, 400000); /* nothing of what was ever allocated is forgotten */
    CHECK_EQUAL(bytes, (uint64_t)400000 * 399999 / 2);
    hl_ledger_close(ledger);
}

/* A snapshot's stacks outlive the sites they came from; afterwards they are reclaimed. */
static void a_snapshot_keeps_what_it_names(void)
{
    CHECK_OR_RETURN(begin(1));
    hl_ledger *ledger = &the_history.ledger;
    hl_snapshot *snapshot;
    ledger->names->pins_made = UINT32_MAX; /* as after a great many */
    for (uint32_t i = 0; i < STACKS; i++)
        block_enters(ledger, address_of(i * 8), 16, 0, site_of(ledger, i, 16, 0));
    size_t room = hl_ledger_rows(ledger);
    CHECK_OR_RETURN(hl_snapshot_new(ledger->names, room, &snapshot) == HL_OK);
    CHECK_OR_RETURN(hl_ledger_fill(ledger, HL_LIVE, snapshot, room) == HL_OK);
    for (uint32_t i = 0; i < STACKS; i++)
        CHECK(block_leaves(ledger, address_of(i * 8), 0));
    hl_ledger_reset_peak(ledger);
    for (uint64_t i = 0; i < 40000; i++) { /* makes the hand go round */
        hl_site_id site = site_of(ledger, 0, 1000 + i, 0);
        block_enters(ledger, 0x550000001000, 1000 + i, 0, site);
        block_leaves(ledger, 0x550000001000, 0);
        hl_ledger_reset_peak(ledger);
    }
    CHECK_EQUAL(snapshot->row_count, STACKS);
    for (size_t i = 0; i < snapshot->row_count; i++) {
        const hl_stack *stack = hl_names_get_stack(snapshot->names, snapshot->rows[i].stack);
        uint32_t line = hl_names_get_location(snapshot->names, stack->locations[0])->line;
        CHECK_EQUAL(stack->depth, 1 + (line - 1) % NFRAME);
    }
    uint32_t kept = ledger->names->stacks.count;
    CHECK(kept >= STACKS);
    hl_snapshot_drop(snapshot);
    hl_names_sweep(ledger->names, 1000);
    CHECK(ledger->names->stacks.count < kept);
    hl_ledger_close(ledger);
}

/* A code object's address comes back: what was learnt of it must not. */
static void a_dead_code_object_is_forgotten(void)
{
    CHECK_OR_RETURN(begin(1));
    hl_ledger *ledger = &the_history.ledger;
    for (int known = 0; known < 2; known++) { /* allocated before the ledger, or entered in it */
        uintptr_t code = 0x560000004000;
        if (known)
            block_enters(ledger, code, 300, 0, site_of(ledger, 1, 300, 0));
        hl_string_id file, name;
        hl_code_id id;
        hl_location_id location;
        uint32_t generation = ledger->codes.code_generation;
        CHECK_OR_RETURN(hl_ledger_watch_code(ledger, code) == HL_OK);
        CHECK_OR_RETURN(hl_names_string(ledger->names, "a.py", 4, &file) == HL_OK);
        CHECK_OR_RETURN(hl_names_string(ledger->names, "f", 1, &name) == HL_OK);
        CHECK_OR_RETURN(hl_codes_add(&ledger->codes, ledger->names, code, file, name, &id) == HL_OK);
        CHECK_OR_RETURN(hl_codes_learn(&ledger->codes, ledger->names, id, code + 100, 7, &location) == HL_OK);
        CHECK_EQUAL(hl_codes_location(&ledger->codes, code + 100), location);
        CHECK_EQUAL(hl_ledger_traced(ledger), known ? 300 : 0);
        CHECK(block_leaves(ledger, code, 0));
        CHECK(ledger->codes.code_generation != generation);
        CHECK_EQUAL(hl_codes_location(&ledger->codes, code + 100), 0);
        CHECK_EQUAL(hl_codes_find(&ledger->codes, code), 0);
        CHECK(hl_ledger_validate(ledger) == NULL);
    }
    hl_ledger_close(ledger);
}

/* Extensions may report integers that are no addresses, and an allocator that refuses gives NULL to the hooks. */
static void no_block_is_at_null(void)
{
    CHECK_OR_RETURN(begin(1));
    hl_ledger *ledger = &the_history.ledger;
    hl_site_id site = site_of(ledger, 1, 16, 0);
    for (uintptr_t address = 16; address < 64; address += 16)
        hl_ledger_enter(ledger, address, 8, 0, site);
    CHECK(!hl_ledger_enter_quickly(ledger, 0, site, 16));
    CHECK_EQUAL(hl_ledger_traced(ledger), 3 * 16);
    for (uint32_t domain = 0; domain < 2; domain++) { /* unless it was reported */
        for (int twice = 0; twice < 2; twice++)
            hl_ledger_enter(ledger, 0, 8, domain, site_of(ledger, 1, 16, domain));
        CHECK_EQUAL(hl_ledger_traced(ledger), 4 * 16);
        CHECK(!hl_ledger_leave_quickly(ledger, 0));
        CHECK(hl_ledger_leave(ledger, 0, domain));
    }
    CHECK(block_leaves(ledger, 32, 0));
    CHECK(hl_ledger_validate(ledger) == NULL);
    hl_ledger_close(ledger);
}

static void the_cache_compares_whole_keys(void)
{
    CHECK_OR_RETURN(begin(1));
    hl_ledger *ledger = &the_history.ledger;
    hl_string_id file;
    hl_location_id one[3], other[3];
    CHECK_OR_RETURN(hl_names_string(ledger->names, "a.py", 4, &file) == HL_OK);
    for (uint32_t i = 0; i < 3; i++)
        CHECK_OR_RETURN(hl_names_location(ledger->names, file, i + 1, 0, &one[i]) == HL_OK);
    memcpy(other, one, sizeof one);
    other[2] = one[0];
    hl_key key = key_of(one, 3, 64, 0);
    CHECK_EQUAL(hl_ledger_cached(ledger, &key), 0);
    hl_site_id site = hl_ledger_site(ledger, &key);
    CHECK(site != 0);
    CHECK_EQUAL(hl_ledger_cached(ledger, &key), site);
    hl_key wrong = key;
    wrong.locations = other; /* the same hash, another stack */
    wrong.stack_version++;
    CHECK_EQUAL(hl_ledger_cached(ledger, &wrong), 0);
    wrong = key;
    wrong.depth = 2;
    wrong.stack_version++;
    CHECK_EQUAL(hl_ledger_cached(ledger, &wrong), 0);
    wrong = key;
    wrong.size = 65;
    CHECK_EQUAL(hl_ledger_cached(ledger, &wrong), 0);
    key.stack_version += 5;
    CHECK_EQUAL(hl_ledger_cached(ledger, &key), site);
    hl_sites_at(&ledger->sites, site)->reuse_count++; /* reclaimed, and perhaps another site's now */
    CHECK_EQUAL(hl_ledger_cached(ledger, &key), 0);
    hl_ledger_close(ledger);
}

/* The cache grows when sites that are there are not found in it, and what it finds is the site of the key, at a depth
 * of one and of more. */
static void the_cache_grows_when_it_would_help(void)
{
    CHECK_OR_RETURN(begin(1));
    hl_ledger *ledger = &the_history.ledger;
    hl_string_id file;
    hl_location_id locations[2];
    CHECK_OR_RETURN(hl_names_string(ledger->names, "a.py", 4, &file) == HL_OK);
    for (uint32_t i = 0; i < 2; i++)
        CHECK_OR_RETURN(hl_names_location(ledger->names, file, i + 1, 0, &locations[i]) == HL_OK);
    enum { SIZES = 20000 };
    static hl_site_id sites[2][SIZES];
    uint32_t before = ledger->cache.log2, found = 0;
    for (int round = 0; round < 4; round++) { /* it grows in the second, and is filled in the third */
        found = 0;
        for (uint32_t size = 0; size < SIZES; size++) {
            for (uint32_t i = 0; i < 2; i++) {
                hl_key key = key_of(locations, i + 1, size, 0);
                hl_site_id cached = hl_ledger_cached(ledger, &key);
                CHECK_OR_RETURN(cached == 0 || cached == sites[i][size]);
                found += cached != 0;
                hl_site_id site = cached != 0 ? cached : hl_ledger_site(ledger, &key);
                CHECK_OR_RETURN(site != 0 && (round == 0 || site == sites[i][size]));
                sites[i][size] = site;
                hl_sites_at(&ledger->sites, site)->allocated++; /* not to be reclaimed */
            }
        }
        CHECK(round != 0 || found == 0);
        CHECK(round == 0 ? ledger->cache.log2 == before : ledger->cache.log2 > before);
    }
    CHECK(found > 2 * SIZES * 3 / 4);
    hl_ledger_close(ledger);
}

/* The hashes of stacks that end in neighbouring lines differ in the lowest bit. */
static void neighbouring_lines_do_not_drive_each_other_out(void)
{
    CHECK_OR_RETURN(begin(1));
    hl_ledger *ledger = &the_history.ledger;
    enum { LINES = 64 };
    hl_string_id file;
    hl_location_id stacks[LINES][2];
    hl_site_id sites[LINES];
    CHECK_OR_RETURN(hl_names_string(ledger->names, "a.py", 4, &file) == HL_OK);
    for (uint32_t line = 0; line < LINES; line++) {
        CHECK_OR_RETURN(hl_names_location(ledger->names, file, line + 1, 0, &stacks[line][0]) == HL_OK);
        stacks[line][1] = stacks[0][0];
        hl_key key = key_of(stacks[line], 2, 64, 0);
        sites[line] = hl_ledger_site(ledger, &key);
    }
    uint32_t found = 0;
    for (uint32_t line = 0; line < LINES; line++) {
        hl_key key = key_of(stacks[line], 2, 64, 0);
        found += hl_ledger_cached(ledger, &key) == sites[line];
    }
    CHECK_EQUAL(found, LINES);
    hl_ledger_close(ledger);
}

/* Blocks that are gone at once, at many places, come back under the sites they had: for two sites with a block that
 * lasts there may be one without. */
static void temporaries_keep_their_sites(void)
{
    CHECK_OR_RETURN(begin(1));
    hl_ledger *ledger = &the_history.ledger;
    enum { LASTING = 20000, TEMPORARY = 10000, ROUNDS = 4, FIRST = 0x10000000, APART = 1 << 15 };
    for (uint64_t i = 0; i < LASTING; i++)
        block_enters(ledger, FIRST + i * APART, 1000 + i, 0, site_of(ledger, 1, 1000 + i, 0));
    uint64_t retired = 0;
    for (int round = 0; round < ROUNDS; round++) {
        retired = ledger->sites.retired_blocks;
        for (uint64_t i = 0; i < TEMPORARY; i++) {
            uint64_t size = 1000000 + i;
            block_enters(ledger, FIRST / 2, size, 0, site_of(ledger, 2, size, 0));
            CHECK_OR_RETURN(block_leaves(ledger, FIRST / 2, 0));
        }
    }
    CHECK_EQUAL(ledger->sites.retired_blocks, retired);
    CHECK(hl_ledger_validate(ledger) == NULL);
    hl_ledger_close(ledger);
}

/* With very many sites the next one is guessed: from what came after the last. */
static void a_guess_must_be_right(void)
{
    CHECK_OR_RETURN(begin(1));
    hl_ledger *ledger = &the_history.ledger;
    ledger->cache.far = true;
    enum { SIZE = 64 };
    hl_string_id file;
    hl_location_id stacks[3][2];
    CHECK_OR_RETURN(hl_names_string(ledger->names, "a.py", 4, &file) == HL_OK);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_OR_RETURN(hl_names_location(ledger->names, file, i + 1, 0, &stacks[i][0]) == HL_OK);
        stacks[i][1] = stacks[0][0];
    }
    hl_key first = key_of(stacks[0], 2, SIZE, 0), second = key_of(stacks[1], 2, SIZE, 0);
    hl_key third = key_of(stacks[2], 2, SIZE, 0), larger = first;
    larger.size++;
    hl_site_id sites[] = {hl_ledger_site(ledger, &first), hl_ledger_site(ledger, &second)};
    hl_cache_clear(&ledger->cache); /* what is found from now on was guessed */
    ledger->cache.last = sites[0];
    CHECK_EQUAL(hl_ledger_cached(ledger, &third), 0);
    CHECK_EQUAL(hl_ledger_cached(ledger, &larger), 0);
    CHECK_EQUAL(hl_ledger_cached(ledger, &second), sites[1]);
    CHECK_EQUAL(hl_ledger_site(ledger, &first), sites[0]);
    hl_site_id large = hl_ledger_site(ledger, &larger);
    hl_cache_clear(&ledger->cache);
    ledger->cache.last = sites[1];
    CHECK_EQUAL(hl_ledger_cached(ledger, &first), sites[0]);
    CHECK_EQUAL(hl_ledger_cached(ledger, &larger), large); /* the same stack, by its stack version */
    ledger->cache.last = sites[0];
    larger.stack_version = third.stack_version;
    larger.locations = third.locations;
    CHECK_EQUAL(hl_ledger_cached(ledger, &larger), 0);
    ledger->cache.last = sites[1];
    hl_sites_at(&ledger->sites, sites[0])->next = sites[1];
    CHECK_EQUAL(hl_ledger_cached(ledger, &first), sites[0]);
    CHECK_EQUAL(hl_ledger_cached(ledger, &first), 0); /* the guess is the second: another stack, by the stack version */
    /* A stack that was reclaimed gives its id to another. */
    ledger->cache.last = sites[1];
    CHECK_EQUAL(hl_ledger_cached(ledger, &first), sites[0]);
    CHECK_EQUAL(ledger->cache.stack_version, first.stack_version);
    CHECK(hl_ledger_own_site(ledger, SIZE) != 0);
    CHECK_EQUAL(ledger->cache.stack_version, 0);
    hl_ledger_inherit(ledger);
    ledger->cache.last = sites[1];
    CHECK_EQUAL(hl_ledger_cached(ledger, &first), 0);
    hl_ledger_close(ledger);
}

/* A site whose id was reused as often as the count can say is not reclaimed any more. */
static void a_last_life_does_not_end(void)
{
    CHECK_OR_RETURN(begin(1));
    hl_ledger *ledger = &the_history.ledger;
    enum { SIZE = 7 };
    hl_site_id site = site_of(ledger, 1, SIZE, 0), other = site_of(ledger, 2, SIZE, 0);
    CHECK_OR_RETURN(site != 0 && other != 0);
    hl_sites_at(&ledger->sites, site)->reuse_count = HL_MOST_REUSES;
    for (uint64_t size = 100; size < 100 + 4 * HL_FEW_SITES; size++)
        CHECK(site_of(ledger, 3, size, 0) != 0);
    CHECK_EQUAL(site_of(ledger, 1, SIZE, 0), site);
    CHECK_EQUAL(hl_sites_at(&ledger->sites, site)->reuse_count, HL_MOST_REUSES);
    CHECK(hl_sites_at(&ledger->sites, other)->reuse_count > 0);
    hl_ledger_close(ledger);
}

/* The child of a fork goes on with the same ledger: what it enters is told apart from what it inherited. */
static void inherited_blocks_are_told_apart(void)
{
    CHECK_OR_RETURN(begin(1));
    hl_ledger *ledger = &the_history.ledger;
    enum { SIZE = 64, FIRST = 0x100000 };
    for (uintptr_t i = 0; i < 3; i++)
        block_enters(ledger, FIRST + i * SIZE, SIZE, 0, site_of(ledger, 1, SIZE, 0));
    uint64_t parent = ledger->origins.ids[0];
    hl_ledger_forked(ledger);
    CHECK_EQUAL(ledger->origins.forks, 1);
    hl_ledger_inherit(ledger);
    block_enters(ledger, FIRST + 3 * SIZE, SIZE, 0, site_of(ledger, 1, SIZE, 0));
    CHECK(block_leaves(ledger, FIRST, 0));
    hl_snapshot *snapshot;
    CHECK_OR_RETURN(hl_snapshot_new(ledger->names, 2, &snapshot) == HL_OK);
    CHECK_OR_RETURN(hl_ledger_fill(ledger, HL_LIVE, snapshot, hl_ledger_rows(ledger)) == HL_OK);
    CHECK_EQUAL(snapshot->row_count, 2);
    CHECK_EQUAL(snapshot->origins.count, 2);
    CHECK_EQUAL(snapshot->origins.forks, 0);
    CHECK_EQUAL(snapshot->origins.ids[0], parent);
    CHECK(snapshot->origins.ids[1] != parent);
    uint64_t live[2] = {0};
    for (size_t i = 0; i < 2; i++)
        live[snapshot->rows[i].origin] += snapshot->rows[i].live;
    CHECK_EQUAL(live[0], 2);
    CHECK_EQUAL(live[1], 1);
    hl_snapshot_drop(snapshot);
    for (int generation = 0; generation < 300; generation++)
        hl_ledger_inherit(ledger);
    block_enters(ledger, FIRST + 4 * SIZE, SIZE, 0, site_of(ledger, 1, SIZE, 0));
    CHECK_EQUAL(ledger->origins.count, HL_MOST_ORIGINS);
    CHECK(hl_ledger_validate(ledger) == NULL);
    hl_ledger_close(ledger);
}

/* The validator must be able to find something. */
static void the_validator_sees_each_broken_invariant(void)
{
    CHECK_OR_RETURN(begin(1));
    hl_ledger *ledger = &the_history.ledger;
    hl_site_id site = site_of(ledger, 1, 48, 0);
    block_enters(ledger, address_of(0), 48, 0, site);
    CHECK(hl_ledger_validate(ledger) == NULL);
    ledger->below_peak--;
    CHECK(hl_ledger_validate(ledger) != NULL);
    ledger->below_peak++;
    ledger->peak++;
    ledger->below_peak++; /* traced memory stays */
    CHECK(hl_ledger_validate(ledger) != NULL);
    ledger->peak--;
    ledger->below_peak--;
    hl_sites_at(&ledger->sites, site)->freed--;
    CHECK(hl_ledger_validate(ledger) != NULL);
    hl_sites_at(&ledger->sites, site)->freed++;
    ledger->in_transit++;
    CHECK(hl_ledger_validate(ledger) != NULL);
    ledger->in_transit--;
    CHECK(hl_map_take(&ledger->map, address_of(0)) == site);
    CHECK(hl_ledger_validate(ledger) != NULL);
    hl_ledger_close(ledger);
}

CHECK_MAIN(TEST(random_histories_agree_with_the_model), TEST(failing_memory_only_loses_records),
           TEST(a_cleared_ledger_is_like_a_new_one), TEST(a_large_ledger_is_not_cleared_in_place),
           TEST(opening_fails_cleanly), TEST(sites_that_come_and_go_do_not_pile_up),
           TEST(a_snapshot_keeps_what_it_names), TEST(a_dead_code_object_is_forgotten), TEST(no_block_is_at_null),
           TEST(the_cache_compares_whole_keys), TEST(the_cache_grows_when_it_would_help),
           TEST(neighbouring_lines_do_not_drive_each_other_out), TEST(temporaries_keep_their_sites),
           TEST(a_guess_must_be_right), TEST(a_last_life_does_not_end), TEST(inherited_blocks_are_told_apart),
           TEST(the_validator_sees_each_broken_invariant))
