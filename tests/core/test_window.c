/* test_window.c: windows that open and close in any order, and the program's own peak, against a model that keeps every
 * event and goes through all of them again for each answer.
 */

#include <stdlib.h>

#include "../../src/core/rows.h"
#include "../../src/core/window.h"
#include "stacks.h"

enum { MOST_EVENTS = 20000, BLOCKS = 60, SIZES = 6, KEYS = STACKS * SIZES, WINDOWS = 5, NOT_ENTERED = KEYS };

typedef struct {
    int sign; /* 1: a block is entered, -1: it leaves */
    uint32_t key;
} event;

typedef struct {
    hl_window *window; /* NULL: not open */
    size_t from;       /* events before the opening, or the last clear */
} opened;

static struct {
    hl_ledger ledger;
    uint64_t seed;
    event events[MOST_EVENTS];
    size_t event_count, cleared, reset; /* the last two: events before the last clear and reset */
    uint32_t keys[BLOCKS];
    opened windows[WINDOWS];
    bool shrinking;
} the;

typedef struct {
    uint64_t counts[KEYS];
    uint64_t bytes;
} sums;

static uint64_t size_in(uint32_t key)
{
    return 8 * (uint64_t)(key % SIZES); /* 0 included */
}

/* The model. */

static void alive_at(size_t moment, sums *alive)
{
    *alive = (sums){0};
    for (size_t i = the.cleared; i < moment; i++) {
        alive->counts[the.events[i].key] += (uint64_t)(int64_t)the.events[i].sign;
        alive->bytes += (uint64_t)((int64_t)size_in(the.events[i].key) * the.events[i].sign);
    }
}

/* The first moment of the greatest total from `from` on. */
static void peak_since(size_t from, sums *peak)
{
    sums alive;
    alive_at(from, &alive);
    uint64_t traced = alive.bytes, greatest = traced;
    size_t moment = from;
    for (size_t i = from; i < the.event_count; i++) {
        traced += (uint64_t)((int64_t)size_in(the.events[i].key) * the.events[i].sign);
        if (traced > greatest) {
            greatest = traced;
            moment = i + 1;
        }
    }
    alive_at(moment, peak);
}

static void allocated_since(size_t from, sums *allocated)
{
    *allocated = (sums){0};
    for (size_t i = from; i < the.event_count; i++) {
        if (the.events[i].sign > 0) {
            allocated->counts[the.events[i].key]++;
            allocated->bytes += size_in(the.events[i].key);
        }
    }
}

static void growth_since(size_t from, sums *growth)
{
    static sums before;
    alive_at(from, &before);
    alive_at(the.event_count, growth);
    growth->bytes = 0;
    for (uint32_t key = 0; key < KEYS; key++) {
        uint64_t had = before.counts[key], has = growth->counts[key];
        growth->counts[key] = has > had ? has - had : 0;
        growth->bytes += growth->counts[key] * size_in(key);
    }
}

/* The comparison. */

static void compare(const hl_snapshot *snapshot, const sums *model)
{
    static uint64_t found[KEYS];
    memset(found, 0, sizeof found);
    for (size_t i = 0; i < snapshot->row_count; i++) {
        const hl_row *row = &snapshot->rows[i];
        uint32_t key = stack_of(snapshot->names, row->stack) * SIZES + (uint32_t)(row->size / 8);
        CHECK(row->live > 0 && row->allocated >= row->live);
        CHECK_EQUAL(found[key], 0);
        found[key] = row->live;
    }
    for (uint32_t key = 0; key < KEYS; key++)
        CHECK_EQUAL(found[key], model->counts[key]);
    CHECK_EQUAL(snapshot->bytes, model->bytes);
}

static hl_snapshot *new_snapshot(size_t room)
{
    hl_snapshot *snapshot;
    if (hl_snapshot_new(the.ledger.names, room, &snapshot) != HL_OK)
        abort();
    return snapshot;
}

/* The rows of the peak without a snapshot, which may be in an earlier stretch. */
static void compare_rows(const hl_snapshot *peak)
{
    hl_rows rows = hl_rows_of_ledger(&the.ledger, HL_PEAK);
    size_t at = 0, count = 0;
    for (hl_row row; hl_rows_next(&rows, &at, &row); count++)
        CHECK(count < peak->row_count && memcmp(&row, &peak->rows[count], sizeof row) == 0);
    CHECK_EQUAL(count, peak->row_count);
}

static void compare_program(void)
{
    static sums model;
    size_t room = hl_ledger_rows(&the.ledger);
    hl_snapshot *peak = new_snapshot(room);
    peak_since(the.reset, &model);
    CHECK_EQUAL(hl_ledger_peak(&the.ledger), model.bytes);
    CHECK_OR_RETURN(hl_ledger_fill(&the.ledger, HL_PEAK, peak, room) == HL_OK);
    compare(peak, &model);
    compare_rows(peak);
    hl_snapshot_drop(peak);
    CHECK(hl_ledger_validate(&the.ledger) == NULL);
}

/* The events, in the ledger and in the model. */

static uintptr_t address_of(uint32_t block)
{
    return 0x7f0000000000 + (uintptr_t)block * 64;
}

static void note(int sign, uint32_t key)
{
    if (CHECK(the.event_count < MOST_EVENTS))
        the.events[the.event_count++] = (event){sign, key};
}

static void leave(uint32_t block)
{
    if (the.keys[block] == NOT_ENTERED)
        return;
    CHECK(block_leaves(&the.ledger, address_of(block), 0));
    note(-1, the.keys[block]);
    the.keys[block] = NOT_ENTERED;
}

static void enter(uint32_t block)
{
    uint32_t key = check_below(&the.seed, KEYS);
    leave(block);
    hl_site_id site = site_of(&the.ledger, key / SIZES, size_in(key), 0);
    CHECK_OR_RETURN(site != 0);
    block_enters(&the.ledger, address_of(block), size_in(key), 0, site);
    note(1, key);
    the.keys[block] = key;
}

static void forget_blocks(void)
{
    for (uint32_t block = 0; block < BLOCKS; block++)
        the.keys[block] = NOT_ENTERED;
    the.cleared = the.reset = the.event_count;
    for (int i = 0; i < WINDOWS; i++)
        the.windows[i].from = the.event_count;
}

static void clear(void)
{
    hl_ledger fresh;
    CHECK_OR_RETURN(hl_ledger_open(&fresh, NFRAME, 1) == HL_OK);
    hl_window_move_all(&the.ledger, &fresh);
    hl_ledger_close(&the.ledger);
    the.ledger = fresh;
    forget_blocks();
}

static void reset(void)
{
    size_t room = hl_ledger_rows(&the.ledger);
    hl_snapshot *stretch = hl_window_keeps_stretch(&the.ledger, true) ? new_snapshot(room) : NULL;
    CHECK(hl_window_reset_peak(&the.ledger, stretch, room) == HL_OK);
    if (stretch != NULL)
        hl_snapshot_drop(stretch);
    the.reset = the.event_count;
}

static void open_window(opened *at)
{
    static sums model;
    size_t room = hl_ledger_rows(&the.ledger);
    hl_snapshot *stretch = hl_window_keeps_stretch(&the.ledger, false) ? new_snapshot(room) : NULL;
    hl_snapshot *start = new_snapshot(room);
    CHECK_OR_RETURN(hl_window_new(the.ledger.sites.table.used + 1, &at->window) == HL_OK);
    CHECK_OR_RETURN(hl_window_open(&the.ledger, at->window, stretch, start, room) == HL_OK);
    at->from = the.event_count;
    alive_at(the.event_count, &model);
    compare(start, &model);
    hl_snapshot_drop(start);
    if (stretch != NULL)
        hl_snapshot_drop(stretch);
}

static void close_window(opened *at)
{
    static sums model;
    size_t room = hl_window_rows(&the.ledger, at->window);
    hl_window_answers answers = {new_snapshot(room), new_snapshot(room), new_snapshot(room)};
    CHECK_OR_RETURN(hl_window_close(&the.ledger, at->window, &answers, room) == HL_OK);
    peak_since(at->from, &model);
    compare(answers.peak, &model);
    allocated_since(at->from, &model);
    compare(answers.allocated, &model);
    growth_since(at->from, &model);
    compare(answers.growth, &model);
    hl_snapshot_drop(answers.peak);
    hl_snapshot_drop(answers.allocated);
    hl_snapshot_drop(answers.growth);
    hl_window_free(at->window);
    at->window = NULL;
}

static void step(void)
{
    uint32_t block = check_below(&the.seed, BLOCKS), what = check_below(&the.seed, 1000);
    if (check_below(&the.seed, 40) == 0)
        the.shrinking = !the.shrinking;
    if (what < 40) {
        opened *at = &the.windows[check_below(&the.seed, WINDOWS)];
        at->window == NULL ? open_window(at) : close_window(at);
    } else if (what < 50) {
        reset();
    } else if (what < 52) {
        clear();
    } else if (what < 70) {
        compare_program();
    } else if (check_below(&the.seed, 10) < (the.shrinking ? 3 : 7)) {
        enter(block);
    } else {
        leave(block);
    }
}

static bool begin(uint64_t seed)
{
    memset(&the, 0, sizeof the);
    the.seed = seed;
    forget_blocks();
    return hl_ledger_open(&the.ledger, NFRAME, 1) == HL_OK;
}

static void any_order(void)
{
    for (uint64_t seed = 1; seed <= 12 && check_failures == 0; seed++) {
        CHECK_OR_RETURN(begin(seed));
        for (int i = 0; i < 4000 && check_failures == 0; i++)
            step();
        for (int i = 0; i < WINDOWS; i++)
            if (the.windows[i].window != NULL)
                close_window(&the.windows[i]);
        compare_program();
        CHECK_EQUAL(the.ledger.sites.few, HL_FEW_SITES);
        hl_ledger_close(&the.ledger);
    }
    CHECK_EQUAL(hl_snapshot_memory(), 0);
}

/* Room for less than there is: nothing has happened, and later it works. */
static void too_little_room(void)
{
    CHECK_OR_RETURN(begin(1));
    for (uint32_t block = 0; block < BLOCKS; block++)
        enter(block);
    hl_ledger *ledger = &the.ledger;
    size_t room = hl_ledger_rows(ledger);
    hl_site_id ids = ledger->sites.table.used;
    uint64_t peak = ledger->peak, peak_epoch = ledger->peak_epoch;
    hl_window *window;
    CHECK_OR_RETURN(hl_window_new(ids, &window) == HL_OK);
    hl_snapshot *stretch = new_snapshot(room), *start = new_snapshot(room);
    CHECK(hl_window_open(ledger, window, stretch, start, room) == HL_FULL);
    hl_window_free(window);
    CHECK_OR_RETURN(hl_window_new(ids + 1, &window) == HL_OK);
    CHECK(hl_window_open(ledger, window, stretch, start, room - 1) == HL_FULL);
    CHECK(hl_window_open(ledger, window, NULL, start, room) == HL_FULL); /* the program's peak is to be kept */
    CHECK(ledger->windows == NULL && ledger->earlier_peak == NULL && ledger->peak_epoch == peak_epoch &&
          ledger->peak == peak);
    CHECK(hl_window_open(ledger, window, stretch, start, room) == HL_OK);
    CHECK(hl_window_reset_peak(ledger, NULL, 0) == HL_FULL); /* the window's is */
    hl_window_answers answers = {new_snapshot(room), new_snapshot(room), new_snapshot(room)};
    CHECK(hl_window_close(ledger, window, &answers, room - 1) == HL_FULL);
    CHECK(window->open);
    CHECK(hl_window_close(ledger, window, &answers, room) == HL_OK);
    CHECK(hl_window_close(ledger, window, &answers, room) == HL_STOPPED);
    CHECK_EQUAL(answers.peak->bytes, peak);
    CHECK_EQUAL(answers.allocated->blocks + answers.growth->blocks, 0);
    hl_snapshot *all[] = {stretch, start, answers.peak, answers.allocated, answers.growth};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        hl_snapshot_drop(all[i]);
    hl_window_free(window);
    hl_ledger_close(ledger);
}

static void pass_by(uint64_t size, int times)
{
    for (int i = 0; i < times; i++) {
        block_enters(&the.ledger, address_of(0), size, 0, site_of(&the.ledger, 0, size, 0));
        CHECK(block_leaves(&the.ledger, address_of(0), 0));
    }
}

/* More sites than are left alone without a window: nothing that was allocated is missing. And a ledger that ends. */
static void many_sites(void)
{
    enum { SITES = 3 * HL_FEW_SITES };
    CHECK_OR_RETURN(begin(1));
    open_window(&the.windows[0]);
    for (uint64_t size = 1; size <= SITES; size++)
        pass_by(size, 1);
    hl_window *window = the.windows[0].window;
    size_t room = hl_window_rows(&the.ledger, window);
    hl_window_answers answers = {new_snapshot(room), new_snapshot(room), new_snapshot(room)};
    CHECK(hl_window_close(&the.ledger, window, &answers, room) == HL_OK);
    CHECK_EQUAL(answers.allocated->blocks, SITES);
    CHECK_EQUAL(answers.allocated->bytes, (uint64_t)SITES * (SITES + 1) / 2);
    CHECK_EQUAL(answers.growth->blocks, 0);
    CHECK_EQUAL(answers.peak->bytes, SITES);
    hl_snapshot_drop(answers.peak);
    hl_snapshot_drop(answers.allocated);
    hl_snapshot_drop(answers.growth);
    hl_window_free(window);
    open_window(&the.windows[1]);
    open_window(&the.windows[2]);
    hl_window_discard_all(&the.ledger);
    hl_ledger_close(&the.ledger);
    CHECK(!the.windows[1].window->open && !the.windows[2].window->open);
    hl_window_free(the.windows[1].window);
    hl_window_free(the.windows[2].window);
}

/* Beyond what is left alone with a window, sites are reclaimed; one that takes the id of another starts from
 * nothing. */
static void reclaimed_sites(void)
{
    enum { OLD = HL_FEW_SITES + 100, NEW = 4 * OLD };
    CHECK_OR_RETURN(begin(1));
    for (uint64_t size = 1; size <= OLD; size++)
        pass_by(size, 3);
    hl_window *window;
    size_t room = hl_ledger_rows(&the.ledger);
    hl_snapshot *stretch = new_snapshot(room), *start = new_snapshot(room);
    CHECK_OR_RETURN(hl_window_new(the.ledger.sites.table.used + 1, &window) == HL_OK);
    CHECK_OR_RETURN(hl_window_open(&the.ledger, window, stretch, start, room) == HL_OK);
    the.ledger.sites.few = 0;
    for (uint64_t size = OLD + 1; size <= NEW; size++)
        pass_by(size, 1);
    uint64_t there = 0;
    for (hl_site_id id = 1; id <= the.ledger.sites.table.used; id++) {
        const hl_site *site = hl_sites_at(&the.ledger.sites, id);
        there += hl_site_is_shown(site) && site->size > OLD;
    }
    CHECK(there > 0 && there < NEW - OLD); /* some were reclaimed */
    room = hl_window_rows(&the.ledger, window);
    hl_window_answers answers = {new_snapshot(room), new_snapshot(room), new_snapshot(room)};
    CHECK(hl_window_close(&the.ledger, window, &answers, room) == HL_OK);
    CHECK_EQUAL(answers.allocated->row_count, there);
    CHECK_EQUAL(answers.allocated->blocks, there);
    hl_snapshot *all[] = {stretch, start, answers.peak, answers.allocated, answers.growth};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        hl_snapshot_drop(all[i]);
    hl_window_free(window);
    hl_ledger_close(&the.ledger);
}

CHECK_MAIN(TEST(any_order), TEST(too_little_room), TEST(many_sites), TEST(reclaimed_sites))
