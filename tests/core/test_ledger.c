/* test_ledger.c: random histories against a model that keeps every block, with and without failing memory. */

#include <stdlib.h>

#include "stacks.h"

enum { BLOCKS = 3000 };

typedef struct {
    bool entered;
    uint64_t size;
    uint32_t domain;
    uint32_t stack; /* index into the model's stacks */
} model_block;

typedef struct {
    hl_ledger ledger;
    model_block blocks[BLOCKS];
    model_block peak_blocks[BLOCKS]; /* as they were at the peak */
    uint64_t traced, peak;
    uint64_t seed;
} history;

/* Each block has its own 8 KB of addresses, so that any size below fits; a few are misaligned or out of the map's range,
 * and one in eight belongs to another domain. */
static uintptr_t address_of(uint32_t at)
{
    uintptr_t address = 0x7f0000000000 + (uintptr_t)at * 8192 + (at % 5) * 16;
    return at % 50 == 7    ? address + 3
           : at % 50 == 9  ? address | (uintptr_t)1 << 60
           : at % 50 == 11 ? address + 8
                           : address;
}

static uint32_t domain_of(uint32_t at)
{
    return at % 8 == 3 ? 389047 : 0;
}

static void model_changed(history *h)
{
    if (h->traced > h->peak) {
        h->peak = h->traced;
        memcpy(h->peak_blocks, h->blocks, sizeof h->blocks);
    }
}

static void model_forget(history *h, uint32_t at)
{
    if (h->blocks[at].entered)
        h->traced -= h->blocks[at].size;
    h->blocks[at].entered = false;
}

static void enter(history *h, uint32_t at, uint64_t size)
{
    uint32_t stack = check_below(&h->seed, STACKS), domain = domain_of(at);
    hl_site_id site = site_of(&h->ledger, stack, size, domain);
    uint64_t lost = h->ledger.lost;
    hl_ledger_enter(&h->ledger, address_of(at), size, domain, site);
    model_forget(h, at); /* entered again without having left: released behind our back */
    if (h->ledger.lost != lost)
        return;
    h->blocks[at] = (model_block){.entered = true, .size = size, .domain = domain, .stack = stack};
    h->traced += size;
    model_changed(h);
}

static void reallocate(history *h, uint32_t at)
{
    if (domain_of(at) != 0)
        return;
    hl_site_id old = hl_ledger_detach(&h->ledger, address_of(at));
    CHECK_EQUAL(old != 0, h->blocks[at].entered);
    CHECK(hl_ledger_find(&h->ledger, address_of(at), 0) == 0);
    CHECK_EQUAL(h->ledger.traced, h->traced); /* still in the totals */
    if (old == 0)
        return;
    if (check_below(&h->seed, 3) == 0) {
        uint64_t lost = h->ledger.lost;
        hl_ledger_reattach(&h->ledger, address_of(at), old);
        if (h->ledger.lost != lost)
            model_forget(h, at);
        return;
    }
    hl_ledger_let_go(&h->ledger, old);
    model_forget(h, at);
    enter(h, at, check_below(&h->seed, 5000));
}

static void reattribute(history *h, uint32_t at)
{
    if (domain_of(at) != 0 || !hl_map_takes(address_of(at)) || !h->blocks[at].entered)
        return;
    uint32_t stack = check_below(&h->seed, STACKS);
    hl_site_id site = site_of(&h->ledger, stack, h->blocks[at].size, 0);
    uint64_t lost = h->ledger.lost;
    hl_ledger_reattribute(&h->ledger, address_of(at), site);
    CHECK_EQUAL(h->ledger.lost - lost, site == 0);
    if (site != 0)
        h->blocks[at].stack = stack;
    else
        model_forget(h, at);
}

/* The snapshot must hold what the model's blocks add up to, stack by stack and size by size. */
static void compare_snapshot(history *h, bool peak)
{
    const model_block *blocks = peak ? h->peak_blocks : h->blocks;
    hl_snapshot *snapshot;
    size_t room = hl_ledger_rows(&h->ledger);
    if (hl_snapshot_new(h->ledger.book, room, &snapshot) != HL_OK)
        return;
    if (hl_ledger_fill(&h->ledger, peak ? HL_PEAK : HL_LIVE, snapshot, room) != HL_OK) {
        hl_snapshot_drop(snapshot);
        return;
    }
    CHECK_EQUAL(snapshot->bytes, peak ? h->peak : h->traced);
    uint64_t per_stack[STACKS] = {0}, per_line[STACKS] = {0}, entered = 0;
    for (int i = 0; i < BLOCKS; i++) {
        if (!blocks[i].entered)
            continue;
        per_stack[blocks[i].stack] += blocks[i].size * 3 + 1;
        entered++;
    }
    CHECK_EQUAL(snapshot->blocks, entered);
    for (size_t i = 0; i < snapshot->row_count; i++) {
        const hl_row *row = &snapshot->rows[i];
        per_line[stack_of(snapshot->book, row->stack)] += row->live * (row->size * 3 + 1);
    }
    for (int i = 0; i < STACKS; i++)
        CHECK_EQUAL(per_line[i], per_stack[i]);
    hl_snapshot_drop(snapshot);
}

static void step(history *h)
{
    uint32_t at = check_below(&h->seed, BLOCKS), what = check_below(&h->seed, 1000);
    if (what < 450) {
        enter(h, at, check_below(&h->seed, what % 4 == 0 ? 5000 : 64));
    } else if (what < 850) {
        CHECK_EQUAL(hl_ledger_leave(&h->ledger, address_of(at), domain_of(at)), h->blocks[at].entered);
        model_forget(h, at);
    } else if (what < 930) {
        reallocate(h, at);
    } else if (what < 990) {
        reattribute(h, at);
    } else if (what < 994) {
        hl_ledger_reset_peak(&h->ledger);
        h->peak = h->traced;
        memcpy(h->peak_blocks, h->blocks, sizeof h->blocks);
    } else {
        compare_snapshot(h, what % 2);
    }
}

static void run(history *h, int steps, int validate_every, size_t fail_every)
{
    for (int i = 0; i < steps && check_failures == 0; i++) {
        hl_os_fail_every(fail_every);
        step(h);
        hl_os_fail_every(0);
        CHECK_EQUAL(h->ledger.traced, h->traced);
        CHECK_EQUAL(h->ledger.peak, h->peak);
        if (i % validate_every == 0) {
            const char *wrong = hl_ledger_validate(&h->ledger);
            if (!CHECK(wrong == NULL))
                printf("step %d: %s\n", i, wrong);
        }
    }
}

static history the_history;

static bool begin(uint64_t seed)
{
    memset(&the_history, 0, sizeof the_history);
    the_history.seed = seed;
    return hl_ledger_open(&the_history.ledger, NFRAME, 1) == HL_OK;
}

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
        hl_ledger_enter(ledger, 0x550000001000, i, 0, site);
        hl_ledger_leave(ledger, 0x550000001000, 0);
        if (i % 50 == 0) /* a peak keeps what it counts; later ones are lower */
            hl_ledger_reset_peak(ledger);
        if (i == 100000)
            middle = hl_table_memory(&ledger->sites.table) + hl_book_memory(ledger->book);
    }
    CHECK(hl_table_memory(&ledger->sites.table) + hl_book_memory(ledger->book) <= middle + (64 << 10));
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
    for (uint32_t i = 0; i < STACKS; i++)
        hl_ledger_enter(ledger, address_of(i * 8), 16, 0, site_of(ledger, i, 16, 0));
    size_t room = hl_ledger_rows(ledger);
    CHECK_OR_RETURN(hl_snapshot_new(ledger->book, room, &snapshot) == HL_OK);
    CHECK_OR_RETURN(hl_ledger_fill(ledger, HL_LIVE, snapshot, room) == HL_OK);
    for (uint32_t i = 0; i < STACKS; i++)
        CHECK(hl_ledger_leave(ledger, address_of(i * 8), 0));
    hl_ledger_reset_peak(ledger);
    for (uint64_t i = 0; i < 40000; i++) { /* makes the hand go round */
        hl_site_id site = site_of(ledger, 0, 1000 + i, 0);
        hl_ledger_enter(ledger, 0x550000001000, 1000 + i, 0, site);
        hl_ledger_leave(ledger, 0x550000001000, 0);
        hl_ledger_reset_peak(ledger);
    }
    CHECK_EQUAL(snapshot->row_count, STACKS);
    for (size_t i = 0; i < snapshot->row_count; i++) {
        const hl_stack *stack = hl_book_get_stack(snapshot->book, snapshot->rows[i].stack);
        uint32_t line = hl_book_get_location(snapshot->book, stack->locations[0])->line;
        CHECK_EQUAL(stack->depth, 1 + (line - 1) % NFRAME);
    }
    uint32_t kept = ledger->book->stacks.count;
    CHECK(kept >= STACKS);
    hl_snapshot_drop(snapshot);
    hl_book_sweep(ledger->book, 1000);
    CHECK(ledger->book->stacks.count < kept);
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
            hl_ledger_enter(ledger, code, 300, 0, site_of(ledger, 1, 300, 0));
        hl_string_id file, name;
        hl_code_id id;
        hl_location_id location;
        uint32_t generation = ledger->codes.generation;
        CHECK_OR_RETURN(hl_ledger_watch_code(ledger, code) == HL_OK);
        CHECK_OR_RETURN(hl_book_string(ledger->book, "a.py", 4, &file) == HL_OK);
        CHECK_OR_RETURN(hl_book_string(ledger->book, "f", 1, &name) == HL_OK);
        CHECK_OR_RETURN(hl_codes_add(&ledger->codes, ledger->book, code, file, name, &id) == HL_OK);
        CHECK_OR_RETURN(hl_codes_learn(&ledger->codes, ledger->book, id, code + 100, 7, &location) == HL_OK);
        CHECK_EQUAL(hl_codes_location(&ledger->codes, code + 100), location);
        CHECK_EQUAL(ledger->traced, known ? 300 : 0);
        CHECK(hl_ledger_leave(ledger, code, 0));
        CHECK(ledger->codes.generation != generation);
        CHECK_EQUAL(hl_codes_location(&ledger->codes, code + 100), 0);
        CHECK_EQUAL(hl_codes_find(&ledger->codes, code), 0);
        CHECK(hl_ledger_validate(ledger) == NULL);
    }
    hl_ledger_close(ledger);
}

static void the_cache_compares_whole_keys(void)
{
    CHECK_OR_RETURN(begin(1));
    hl_ledger *ledger = &the_history.ledger;
    hl_string_id file;
    hl_location_id one[3], other[3];
    CHECK_OR_RETURN(hl_book_string(ledger->book, "a.py", 4, &file) == HL_OK);
    for (uint32_t i = 0; i < 3; i++)
        CHECK_OR_RETURN(hl_book_location(ledger->book, file, i + 1, 0, &one[i]) == HL_OK);
    memcpy(other, one, sizeof one);
    other[2] = one[0];
    hl_key key = key_of(one, 3, 64, 0);
    CHECK_EQUAL(hl_ledger_cached(ledger, &key), 0);
    hl_site_id site = hl_ledger_site(ledger, &key);
    CHECK(site != 0);
    CHECK_EQUAL(hl_ledger_cached(ledger, &key), site);
    hl_key wrong = key;
    wrong.locations = other; /* the same hash, another stack */
    wrong.version++;
    CHECK_EQUAL(hl_ledger_cached(ledger, &wrong), 0);
    wrong = key;
    wrong.depth = 2;
    wrong.version++;
    CHECK_EQUAL(hl_ledger_cached(ledger, &wrong), 0);
    wrong = key;
    wrong.size = 65;
    CHECK_EQUAL(hl_ledger_cached(ledger, &wrong), 0);
    key.version += 5;
    CHECK_EQUAL(hl_ledger_cached(ledger, &key), site);
    hl_sites_at(&ledger->sites, site)->life++; /* reclaimed, and perhaps another site's now */
    CHECK_EQUAL(hl_ledger_cached(ledger, &key), 0);
    hl_ledger_close(ledger);
}

/* A cache of many sites grows, and what it finds is the site of the key, at a depth of one and of more. */
static void the_cache_grows_with_the_sites(void)
{
    CHECK_OR_RETURN(begin(1));
    hl_ledger *ledger = &the_history.ledger;
    hl_string_id file;
    hl_location_id locations[2];
    CHECK_OR_RETURN(hl_book_string(ledger->book, "a.py", 4, &file) == HL_OK);
    for (uint32_t i = 0; i < 2; i++)
        CHECK_OR_RETURN(hl_book_location(ledger->book, file, i + 1, 0, &locations[i]) == HL_OK);
    enum { SIZES = 20000 };
    static hl_site_id sites[2][SIZES];
    uint32_t before = ledger->cache.log2, found = 0;
    for (int round = 0; round < 3; round++) { /* the cache that has grown is filled in the second */
        found = 0;
        for (uint32_t size = 0; size < SIZES; size++) {
            for (uint32_t i = 0; i < 2; i++) {
                hl_key key = key_of(locations, i + 1, size, 0);
                hl_site_id cached = hl_ledger_cached(ledger, &key);
                CHECK_OR_RETURN(cached == 0 || cached == sites[i][size]);
                found += cached != 0;
                hl_site_id site = hl_ledger_site(ledger, &key);
                CHECK_OR_RETURN(site != 0 && (round == 0 || site == sites[i][size]));
                sites[i][size] = site;
                hl_sites_at(&ledger->sites, site)->live = 1; /* not to be reclaimed */
            }
        }
        CHECK(round != 0 || found == 0);
    }
    CHECK(ledger->cache.log2 > before);
    CHECK(found > 2 * SIZES * 3 / 4);
    hl_ledger_close(ledger);
}

/* A spot is void once a code object has died, or its site was reclaimed. */
static void a_spot_is_void_in_another_generation(void)
{
    CHECK_OR_RETURN(begin(1));
    hl_ledger *ledger = &the_history.ledger;
    const hl_sites *sites = &ledger->sites;
    enum { AT = 0x7f001230, SIZE = 48, NOW = 7 };
    hl_site_id site = site_of(ledger, 1, SIZE, 0);
    CHECK_OR_RETURN(site != 0);
    CHECK_EQUAL(hl_cache_find_spot(&ledger->cache, sites, AT, SIZE, NOW), 0);
    hl_cache_put_spot(&ledger->cache, sites, AT, SIZE, NOW, site);
    CHECK_EQUAL(hl_cache_find_spot(&ledger->cache, sites, AT, SIZE, NOW), site);
    CHECK_EQUAL(hl_cache_find_spot(&ledger->cache, sites, AT + 2, SIZE, NOW), 0);
    CHECK_EQUAL(hl_cache_find_spot(&ledger->cache, sites, AT, SIZE + 1, NOW), 0);
    CHECK_EQUAL(hl_cache_find_spot(&ledger->cache, sites, AT, SIZE, NOW + 1), 0);
    hl_sites_at(sites, site)->life++;
    CHECK_EQUAL(hl_cache_find_spot(&ledger->cache, sites, AT, SIZE, NOW), 0);
    hl_ledger_close(ledger);
}

/* The child of a fork goes on with the same ledger: what it enters is told apart from what it inherited. */
static void inherited_blocks_are_told_apart(void)
{
    CHECK_OR_RETURN(begin(1));
    hl_ledger *ledger = &the_history.ledger;
    enum { SIZE = 64, FIRST = 0x100000 };
    for (uintptr_t i = 0; i < 3; i++)
        hl_ledger_enter(ledger, FIRST + i * SIZE, SIZE, 0, site_of(ledger, 1, SIZE, 0));
    uint64_t parent = ledger->origins.ids[0];
    hl_ledger_forked(ledger);
    CHECK_EQUAL(ledger->origins.forks, 1);
    hl_ledger_inherit(ledger);
    hl_ledger_enter(ledger, FIRST + 3 * SIZE, SIZE, 0, site_of(ledger, 1, SIZE, 0));
    CHECK(hl_ledger_leave(ledger, FIRST, 0));
    hl_snapshot *snapshot;
    CHECK_OR_RETURN(hl_snapshot_new(ledger->book, 2, &snapshot) == HL_OK);
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
    hl_ledger_enter(ledger, FIRST + 4 * SIZE, SIZE, 0, site_of(ledger, 1, SIZE, 0));
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
    hl_ledger_enter(ledger, address_of(0), 48, 0, site);
    CHECK(hl_ledger_validate(ledger) == NULL);
    ledger->traced++;
    CHECK(hl_ledger_validate(ledger) != NULL);
    ledger->traced--;
    ledger->peak++;
    CHECK(hl_ledger_validate(ledger) != NULL);
    ledger->peak--;
    hl_sites_at(&ledger->sites, site)->live++;
    CHECK(hl_ledger_validate(ledger) != NULL);
    hl_sites_at(&ledger->sites, site)->live--;
    ledger->in_transit++;
    CHECK(hl_ledger_validate(ledger) != NULL);
    ledger->in_transit--;
    CHECK(hl_map_take(&ledger->map, address_of(0)) == site);
    CHECK(hl_ledger_validate(ledger) != NULL);
    hl_ledger_close(ledger);
}

CHECK_MAIN(TEST(random_histories_agree_with_the_model), TEST(failing_memory_only_loses_records),
           TEST(opening_fails_cleanly), TEST(sites_that_come_and_go_do_not_pile_up),
           TEST(a_snapshot_keeps_what_it_names), TEST(a_dead_code_object_is_forgotten),
           TEST(the_cache_compares_whole_keys), TEST(the_cache_grows_with_the_sites),
           TEST(a_spot_is_void_in_another_generation), TEST(inherited_blocks_are_told_apart),
           TEST(the_validator_sees_each_broken_invariant))
