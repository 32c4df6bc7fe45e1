/* test_moments.c: snapshots of the peak and of all allocations against a model that keeps every event.
 *
 * The ledger keeps no log; the model is nothing else. What was alive at the peak is found by going through the events
 * twice: once for the moment at which the greatest total was first reached, once for the counts at that moment.
 */

#include <stdlib.h>

#include "../../src/core/hlsnap.h"
#include "stacks.h"

enum { MOST_EVENTS = 200000, MOST_BLOCKS = 8000, MOST_SIZES = 3000, DOMAINS = 2, OTHER_DOMAIN = 389047 };
enum { MOST_KEYS = STACKS * MOST_SIZES * DOMAINS, HIDDEN = MOST_KEYS, NOT_ENTERED = MOST_KEYS + 1 };
enum { SIZE_STEP = 3 }; /* sizes are multiples of it, 0 included */

typedef enum { ENTER, LEAVE, RESET, CLEAR } event_kind;

typedef struct {
    event_kind kind;
    uint32_t key; /* what (stack, size, domain) it is about */
} event;

typedef struct {
    uint64_t counts[MOST_KEYS];
    uint64_t bytes;
    uint64_t blocks;
} sums;

static struct {
    hl_ledger ledger;
    uint64_t seed;
    uint32_t stacks, sizes, blocks; /* how many to choose from */
    bool shrinking;
    size_t event_count;
    event events[MOST_EVENTS];
    uint32_t keys[MOST_BLOCKS]; /* block -> what it is entered under, HIDDEN or NOT_ENTERED */
} the;

static sums live, peak, allocated;

static uint32_t key_made_of(uint32_t stack, uint64_t size, uint32_t domain)
{
    return (stack * MOST_SIZES + (uint32_t)(size / SIZE_STEP)) * DOMAINS + (domain != 0);
}

static uint64_t size_in(uint32_t key)
{
    return (uint64_t)(key / DOMAINS % MOST_SIZES) * SIZE_STEP;
}

/* The model. */

static void note(event_kind kind, uint32_t key)
{
    if (key != HIDDEN && key != NOT_ENTERED && CHECK(the.event_count < MOST_EVENTS))
        the.events[the.event_count++] = (event){kind, key};
}

static void apply(sums *to, uint32_t key, bool enters)
{
    uint64_t sign = enters ? 1 : (uint64_t)-1;
    to->counts[key] += sign;
    to->blocks += sign;
    to->bytes += sign * size_in(key);
}

/* The counts after events [first, last). */
static void replay(size_t first, size_t last, sums *to)
{
    memset(to, 0, sizeof *to);
    for (size_t i = first; i < last; i++)
        if (the.events[i].kind == ENTER || the.events[i].kind == LEAVE)
            apply(to, the.events[i].key, the.events[i].kind == ENTER);
}

static void replay_all(void)
{
    size_t first = the.event_count;
    while (first > 0 && the.events[first - 1].kind != CLEAR)
        first--;
    memset(&allocated, 0, sizeof allocated);
    uint64_t traced = 0, greatest = 0;
    size_t moment = first;
    for (size_t i = first; i < the.event_count; i++) {
        event now = the.events[i];
        if (now.kind == ENTER) {
            apply(&allocated, now.key, true);
            traced += size_in(now.key);
        } else if (now.kind == LEAVE) {
            traced -= size_in(now.key);
        }
        if (now.kind == RESET || traced > greatest) {
            greatest = traced;
            moment = i + 1;
        }
    }
    replay(first, the.event_count, &live);
    replay(first, moment, &peak);
    CHECK_EQUAL(live.bytes, hl_ledger_traced(&the.ledger));
    CHECK_EQUAL(peak.bytes, the.ledger.peak);
    CHECK_EQUAL(greatest, the.ledger.peak);
}

/* The comparison. */

/* A file that is made of the ledger is the one that is made of its snapshot, to the byte. */
static void compare_files(hl_moment moment, const hl_snapshot *snapshot)
{
    hl_hlsnap_file copied, direct;
    hl_rows rows = hl_rows_of_ledger(&the.ledger, moment);
    CHECK_OR_RETURN(hl_hlsnap_write(&snapshot, 1, NULL, 0, &copied) == HL_OK);
    CHECK_OR_RETURN(hl_hlsnap_write_rows(&rows, 1, NULL, 0, &direct) == HL_OK);
    CHECK(copied.length == direct.length && memcmp(copied.bytes, direct.bytes, direct.length) == 0);
    hl_os_free(copied.bytes);
    hl_os_free(direct.bytes);
}

/* `exact`: the rows are all that the model has; else the blocks of reclaimed sites may be missing. */
static void compare(hl_moment moment, const sums *model, bool exact)
{
    static uint64_t found[MOST_KEYS];
    hl_snapshot *snapshot;
    size_t room = hl_ledger_rows(&the.ledger);
    CHECK_OR_RETURN(hl_snapshot_new(the.ledger.names, room, &snapshot) == HL_OK);
    CHECK_OR_RETURN(hl_ledger_fill(&the.ledger, moment, snapshot, room) == HL_OK);
    memset(found, 0, sizeof found);
    for (size_t i = 0; i < snapshot->row_count; i++) {
        const hl_row *row = &snapshot->rows[i];
        uint32_t key = key_made_of(stack_of(snapshot->names, row->stack), row->size, row->domain);
        CHECK(row->live > 0);
        CHECK_EQUAL(found[key], 0); /* one row for one site */
        found[key] = row->live;
        CHECK(row->allocated >= row->live);
    }
    for (uint32_t key = 0; key < MOST_KEYS; key++) {
        if (exact)
            CHECK_EQUAL(found[key], model->counts[key]);
        else
            CHECK(found[key] <= model->counts[key] && found[key] >= live.counts[key]);
    }
    if (exact) {
        CHECK_EQUAL(snapshot->bytes, model->bytes);
        CHECK_EQUAL(snapshot->blocks, model->blocks);
    }
    compare_files(moment, snapshot);
    hl_snapshot_drop(snapshot);
}

static void compare_all(void)
{
    uint64_t bytes, blocks;
    replay_all();
    compare(HL_LIVE, &live, true);
    compare(HL_PEAK, &peak, true);
    compare(HL_ALLOCATED, &allocated, the.ledger.sites.retired_blocks == 0);
    hl_ledger_allocated(&the.ledger, &bytes, &blocks);
    CHECK_EQUAL(bytes, allocated.bytes);
    CHECK_EQUAL(blocks, allocated.blocks);
    CHECK(hl_ledger_validate(&the.ledger) == NULL);
}

/* The events, in the ledger and in the model. */

static uintptr_t address_of(uint32_t block)
{
    return 0x7f0000000000 + (uintptr_t)block * 16384;
}

static uint32_t domain_of(uint32_t block)
{
    return block % 8 == 3 ? OTHER_DOMAIN : 0;
}

/* A site for a block of this size, now and then a hidden one. */
static hl_site_id any_site(uint32_t block, uint64_t size, uint32_t *key)
{
    uint32_t domain = domain_of(block);
    if (check_below(&the.seed, 20) == 0) {
        *key = HIDDEN;
        return hl_ledger_own_site(&the.ledger, size);
    }
    uint32_t stack = check_below(&the.seed, the.stacks);
    *key = key_made_of(stack, size, domain);
    return site_of(&the.ledger, stack, size, domain);
}

static uint64_t any_size(void)
{
    return (uint64_t)check_below(&the.seed, the.sizes) * SIZE_STEP;
}

static void enter(uint32_t block)
{
    uint64_t size = any_size();
    uint32_t key;
    hl_site_id site = any_site(block, size, &key);
    CHECK_OR_RETURN(site != 0);
    block_enters(&the.ledger, address_of(block), size, domain_of(block), site);
    note(LEAVE, the.keys[block]); /* entered again without having left: released behind our back */
    note(ENTER, key);
    the.keys[block] = key;
}

static void leave(uint32_t block)
{
    bool left = block_leaves(&the.ledger, address_of(block), domain_of(block));
    CHECK_EQUAL(left, the.keys[block] != NOT_ENTERED);
    note(LEAVE, the.keys[block]);
    the.keys[block] = NOT_ENTERED;
}

static void reallocate(uint32_t block)
{
    if (domain_of(block) != 0 || the.keys[block] == NOT_ENTERED)
        return;
    hl_site_id old = hl_ledger_detach(&the.ledger, address_of(block));
    CHECK_OR_RETURN(old != 0);
    if (check_below(&the.seed, 4) == 0)
        enter((block + 1) % the.blocks); /* another thread, meanwhile: the block is still in the totals */
    if (check_below(&the.seed, 3) == 0) {
        hl_ledger_reattach(&the.ledger, address_of(block), old);
        return;
    }
    hl_ledger_let_go(&the.ledger, old);
    note(LEAVE, the.keys[block]);
    the.keys[block] = NOT_ENTERED;
    enter(block);
}

static void reset(void)
{
    hl_ledger_reset_peak(&the.ledger);
    note(RESET, 0);
}

static void forget_blocks(void)
{
    for (uint32_t block = 0; block < MOST_BLOCKS; block++)
        the.keys[block] = NOT_ENTERED;
}

static void clear(void)
{
    hl_ledger_close(&the.ledger);
    CHECK_OR_RETURN(hl_ledger_open(&the.ledger, NFRAME, 1) == HL_OK);
    note(CLEAR, 0);
    forget_blocks();
}

static void step(void)
{
    uint32_t block = check_below(&the.seed, the.blocks), what = check_below(&the.seed, 1000);
    if (check_below(&the.seed, the.blocks) == 0) /* tides, so that the peak is mostly not now */
        the.shrinking = !the.shrinking;
    if (what < (the.shrinking ? 100 : 650))
        enter(block);
    else if (what < 850)
        leave(block);
    else
        reallocate(block);
}

static bool begin(uint64_t seed, uint32_t stacks, uint32_t sizes, uint32_t blocks)
{
    the.seed = seed;
    the.stacks = stacks;
    the.sizes = sizes;
    the.blocks = blocks;
    the.event_count = 0;
    forget_blocks();
    return hl_ledger_open(&the.ledger, NFRAME, 1) == HL_OK;
}

/* Few sizes: many blocks under one site, and totals that reach the peak again without passing it. */
static void every_moment_of_a_small_ledger(void)
{
    for (uint64_t seed = 1; seed <= 6 && check_failures == 0; seed++) {
        CHECK_OR_RETURN(begin(seed, 4, seed % 2 == 0 ? 3 : 40, 100));
        for (int i = 0; i < 6000 && check_failures == 0; i++) {
            step();
            uint32_t what = check_below(&the.seed, 1000);
            if (what < 15)
                compare_all();
            else if (what < 17)
                reset();
            else if (what < 18)
                clear();
        }
        compare_all();
        hl_ledger_close(&the.ledger);
    }
}

/* More sites than are left alone: the dead are reclaimed all the time, but not those that the peak counts. */
static void the_peak_while_sites_are_reclaimed(void)
{
    bool reclaimed = false, away_from_peak = false;
    for (uint64_t seed = 1; seed <= 2 && check_failures == 0; seed++) {
        CHECK_OR_RETURN(begin(seed, STACKS, MOST_SIZES, MOST_BLOCKS));
        for (int i = 0; i < 90000 && check_failures == 0; i++) {
            step();
            if (i % 9000 == 8999) {
                compare_all();
                reclaimed = reclaimed || the.ledger.sites.retired_blocks > 0;
                away_from_peak = away_from_peak || hl_ledger_traced(&the.ledger) < the.ledger.peak * 2 / 3;
            }
            if (i == 40000)
                reset();
        }
        hl_ledger_close(&the.ledger);
    }
    CHECK(reclaimed);
    CHECK(away_from_peak);
}

/* The first moment of the greatest total is the peak: reaching it again does not move it. */
static void a_tie_does_not_move_the_peak(void)
{
    CHECK_OR_RETURN(begin(1, STACKS, MOST_SIZES, MOST_BLOCKS));
    hl_ledger *ledger = &the.ledger;
    block_enters(ledger, address_of(0), 30, 0, site_of(ledger, 1, 30, 0));
    block_leaves(ledger, address_of(0), 0);
    block_enters(ledger, address_of(0), 30, 0, site_of(ledger, 2, 30, 0)); /* a tie, under another stack */
    block_enters(ledger, address_of(1), 0, 0, site_of(ledger, 3, 0, 0));   /* empty: a tie again */
    hl_snapshot *snapshot;
    CHECK_OR_RETURN(hl_snapshot_new(ledger->names, 10, &snapshot) == HL_OK);
    CHECK_OR_RETURN(hl_ledger_fill(ledger, HL_PEAK, snapshot, 10) == HL_OK);
    CHECK_OR_RETURN(snapshot->row_count == 1);
    CHECK_EQUAL(stack_of(snapshot->names, snapshot->rows[0].stack), 1);
    CHECK_EQUAL(snapshot->rows[0].live, 1);
    hl_snapshot_drop(snapshot);
    hl_ledger_close(ledger);
}

CHECK_MAIN(TEST(every_moment_of_a_small_ledger), TEST(the_peak_while_sites_are_reclaimed),
           TEST(a_tie_does_not_move_the_peak))
