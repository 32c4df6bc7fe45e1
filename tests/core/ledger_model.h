/* ledger_model.h: histories of a ledger beside a model that keeps every block. Each step does the same to both, and
 * checks that totals, peak and snapshots agree. For test_ledger.c, whose choices are random, and for the fuzzer's,
 * which are not.
 */
#ifndef HL_LEDGER_MODEL_H
#define HL_LEDGER_MODEL_H

#include "stacks.h"

#ifndef BLOCKS
#define BLOCKS 3000
#endif

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
    const uint8_t *bytes, *end; /* a fuzzer's choices; NULL: the seed's */
} history;

static inline uint32_t draw(history *h, uint32_t bound)
{
    if (h->bytes == NULL)
        return check_below(&h->seed, bound);
    uint32_t drawn = 0;
    for (uint32_t most = bound; most > 0 && h->bytes < h->end; most >>= 8)
        drawn = drawn << 8 | *h->bytes++;
    return drawn % bound;
}

/* Each block has its own 8 KB of addresses, so that any size below fits; a few are misaligned or out of the map's
 * range, and one in eight belongs to another domain. */
static inline uintptr_t address_of(uint32_t at)
{
    uintptr_t address = 0x7f0000000000 + (uintptr_t)at * 8192 + (at % 5) * 16;
    return at % 50 == 7    ? address + 3
           : at % 50 == 9  ? address | (uintptr_t)1 << 60
           : at % 50 == 11 ? address + 8
                           : address;
}

static inline uint32_t domain_of(uint32_t at)
{
    return at % 8 == 3 ? 389047 : 0;
}

static inline void model_changed(history *h)
{
    if (h->traced > h->peak) {
        h->peak = h->traced;
        memcpy(h->peak_blocks, h->blocks, sizeof h->blocks);
    }
}

static inline void model_forget(history *h, uint32_t at)
{
    if (h->blocks[at].entered)
        h->traced -= h->blocks[at].size;
    h->blocks[at].entered = false;
}

static inline void enter(history *h, uint32_t at, uint64_t size)
{
    uint32_t stack = draw(h, STACKS), domain = domain_of(at);
    hl_site_id site = site_of(&h->ledger, stack, size, domain);
    uint64_t lost = h->ledger.lost;
    block_enters(&h->ledger, address_of(at), size, domain, site);
    model_forget(h, at); /* entered again without having left: released behind our back */
    if (h->ledger.lost != lost)
        return;
    h->blocks[at] = (model_block){.entered = true, .size = size, .domain = domain, .stack = stack};
    h->traced += size;
    model_changed(h);
}

static inline void reallocate(history *h, uint32_t at)
{
    if (domain_of(at) != 0)
        return;
    hl_site_id old = hl_ledger_detach(&h->ledger, address_of(at));
    CHECK_EQUAL(old != 0, h->blocks[at].entered);
    CHECK(hl_ledger_find(&h->ledger, address_of(at), 0) == 0);
    CHECK_EQUAL(hl_ledger_traced(&h->ledger), h->traced); /* still in the totals */
    if (old == 0)
        return;
    if (draw(h, 3) == 0) {
        uint64_t lost = h->ledger.lost;
        hl_ledger_reattach(&h->ledger, address_of(at), old);
        if (h->ledger.lost != lost)
            model_forget(h, at);
        return;
    }
    hl_ledger_let_go(&h->ledger, old);
    model_forget(h, at);
    enter(h, at, draw(h, 5000));
}

/* The snapshot must hold what the model's blocks add up to, stack by stack and size by size. */
static inline void compare_snapshot(history *h, bool peak)
{
    const model_block *blocks = peak ? h->peak_blocks : h->blocks;
    hl_snapshot *snapshot;
    size_t room = hl_ledger_rows(&h->ledger);
    if (hl_snapshot_new(h->ledger.names, room, &snapshot) != HL_OK)
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
        per_line[stack_of(snapshot->names, row->stack)] += row->live * (row->size * 3 + 1);
    }
    for (int i = 0; i < STACKS; i++)
        CHECK_EQUAL(per_line[i], per_stack[i]);
    hl_snapshot_drop(snapshot);
}

static inline void step(history *h)
{
    uint32_t at = draw(h, BLOCKS), what = draw(h, 1000);
    if (what < 450) {
        enter(h, at, draw(h, what % 4 == 0 ? 5000 : 64));
    } else if (what < 850) {
        CHECK_EQUAL(block_leaves(&h->ledger, address_of(at), domain_of(at)), h->blocks[at].entered);
        model_forget(h, at);
    } else if (what < 990) {
        reallocate(h, at);
    } else if (what < 994) {
        hl_ledger_reset_peak(&h->ledger);
        h->peak = h->traced;
        memcpy(h->peak_blocks, h->blocks, sizeof h->blocks);
    } else {
        compare_snapshot(h, what % 2);
    }
}

static inline void run(history *h, int steps, int validate_every, size_t fail_every)
{
    for (int i = 0; i < steps && check_failures == 0; i++) {
        hl_os_fail_every(fail_every);
        step(h);
        hl_os_fail_every(0);
        CHECK_EQUAL(hl_ledger_traced(&h->ledger), h->traced);
        CHECK_EQUAL(h->ledger.peak, h->peak);
        if ((i + 1) % validate_every == 0) {
            const char *wrong = hl_ledger_validate(&h->ledger);
            if (!CHECK(wrong == NULL))
                printf("step %d: %s\n", i, wrong);
        }
    }
}

static history the_history;

static inline bool begin(uint64_t seed)
{
    memset(&the_history, 0, sizeof the_history);
    the_history.seed = seed;
    if (hl_ledger_open(&the_history.ledger, NFRAME, 1) != HL_OK)
        return false;
    the_history.ledger.cache.far = seed % 2 == 0; /* as with very many sites: guess first */
    return true;
}

#endif
