/* test_spots.c: spots and contexts are found again, and never mean anything else. */

#include "stacks.h"

/* A spot is void once a code object has died, or its site was reclaimed; and it is of one context. */
static void a_spot_is_void_when_it_may_mean_another_site(void)
{
    hl_ledger ledger;
    CHECK_OR_RETURN(hl_ledger_open(&ledger, 25, 1) == HL_OK);
    hl_spots *spots = &ledger.spots;
    const hl_sites *sites = &ledger.sites;
    enum { AT = 0x7f001230, SIZE = 48, CODE = 0x7f001000 };
    hl_site_id site = site_of(&ledger, 1, SIZE, 0);
    CHECK_OR_RETURN(site != 0);
    CHECK_EQUAL(hl_spots_find(spots, sites, AT, SIZE), 0);
    hl_spots_put(spots, sites, AT, SIZE, site);
    CHECK_EQUAL(hl_spots_find(spots, sites, AT, SIZE), site);
    CHECK_EQUAL(hl_spots_find(spots, sites, AT + 2, SIZE), 0);
    CHECK_EQUAL(hl_spots_find(spots, sites, AT, SIZE + 1), 0);
    CHECK_EQUAL(hl_spots_find(spots, sites, AT, SIZE + (1 << 16)), 0); /* the same key */
    hl_sites_at(sites, site)->reuse_count++;
    CHECK_EQUAL(hl_spots_find(spots, sites, AT, SIZE), 0);
    hl_sites_at(sites, site)->reuse_count--;
    hl_context called = hl_spots_call(spots, spots->root, AT);
    hl_spots_set_callers(spots, called);
    CHECK_EQUAL(hl_spots_find(spots, sites, AT, SIZE), 0);
    hl_spots_set_callers(spots, spots->root);
    CHECK_EQUAL(hl_spots_find(spots, sites, AT, SIZE), site);

    hl_code_id code;
    hl_string_id file = 0, name = 0;
    CHECK_OR_RETURN(hl_names_string(ledger.names, "f", 1, &file) == HL_OK &&
                    hl_names_string(ledger.names, "n", 1, &name) == HL_OK &&
                    hl_ledger_watch_code(&ledger, CODE) == HL_OK &&
                    hl_codes_add(&ledger.codes, ledger.names, CODE, file, name, &code) == HL_OK);
    hl_context root = spots->root;
    CHECK(hl_ledger_leave(&ledger, CODE, 0));
    CHECK(spots->root != root && spots->root != called);
    hl_spots_set_callers(spots, spots->root);
    CHECK_EQUAL(hl_spots_find(spots, sites, AT, SIZE), 0);
    hl_ledger_close(&ledger);

    /* With a frame limit of 1 there is one context at a time. */
    CHECK_OR_RETURN(hl_ledger_open(&ledger, 1, 1) == HL_OK);
    site = site_of(&ledger, 1, SIZE, 0);
    CHECK_OR_RETURN(site != 0);
    hl_spots_put(spots, sites, AT, SIZE, site);
    CHECK_EQUAL(hl_spots_find(spots, sites, AT, SIZE), site);
    hl_spots_void(spots);
    CHECK_EQUAL(hl_spots_find(spots, sites, AT, SIZE), 0);
    hl_ledger_close(&ledger);
}

/* Equal numbers, equal callers: a call that comes again has its number, or one that nothing had before. */
static void contexts_are_told_apart(void)
{
    enum { CALLS = 1 << 14, AGAIN = 100 };
    hl_spots spots;
    CHECK_OR_RETURN(hl_spots_open(&spots, false) == HL_OK);
    hl_context first = hl_spots_call(&spots, spots.root, AGAIN), from = first, last = spots.last_context;
    CHECK(first != 0 && first != spots.root);
    CHECK_EQUAL(hl_spots_call(&spots, spots.root, AGAIN), first);
    for (uintptr_t instruction = AGAIN + 1; instruction < AGAIN + CALLS; instruction++) {
        hl_context to = hl_spots_call(&spots, from, instruction);
        CHECK_OR_RETURN(to == ++last);
        from = instruction % 3 == 0 ? to : from;
    }
    CHECK(hl_spots_call(&spots, first, AGAIN) > last);
    CHECK(!hl_spots_begin_again(&spots));
    hl_spots_set_callers(&spots, from);
    spots.last_context = UINT32_MAX - 1; /* most of them are gone */
    CHECK(hl_spots_begin_again(&spots));
    CHECK_EQUAL(spots.callers >> 32, spots.root);
    first = hl_spots_call(&spots, spots.root, AGAIN);
    CHECK(first < AGAIN && first != spots.root);
    CHECK(!hl_spots_begin_again(&spots));
    hl_spots_close(&spots);
}

/* Spots and calls grow when sites that are there are not found by them, and become few again with the sites. */
static void spots_follow_the_sites(void)
{
    hl_spots spots;
    for (int alone = 0; alone < 2; alone++) {
        CHECK_OR_RETURN(hl_spots_open(&spots, alone) == HL_OK);
        uint64_t mask = spots.mask;
        uint32_t places = (uint32_t)(mask / sizeof(hl_spot) + 1);
        for (uint32_t i = 0; i < places; i++)
            hl_spots_miss(&spots, places - 1, false); /* more places would not help */
        CHECK_EQUAL(spots.mask, mask);
        for (uint32_t i = 0; i < 4 * places; i++)
            hl_spots_miss(&spots, 100 * places, i % 2 == 0); /* nor here, where most sites are new */
        CHECK_EQUAL(spots.mask, mask);
        hl_os_fail_every(1);
        for (uint32_t i = 0; i < places; i++)
            hl_spots_miss(&spots, places, false);
        hl_os_fail_every(0);
        CHECK_EQUAL(spots.mask, mask);
        hl_context context = alone ? spots.root : hl_spots_call(&spots, spots.root, 1);
        for (uint32_t i = 0; i < 20 * places; i++)
            hl_spots_miss(&spots, 100 * places, false);
        CHECK(spots.mask > mask);
        CHECK(alone || hl_spots_call(&spots, spots.root, 1) > context);
        hl_spots_shrink(&spots, places);
        CHECK(spots.mask > mask);
        hl_spots_shrink(&spots, places / 2);
        CHECK_EQUAL(spots.mask, mask);
        hl_spots_close(&spots);
    }
}

CHECK_MAIN(TEST(a_spot_is_void_when_it_may_mean_another_site), TEST(contexts_are_told_apart),
           TEST(spots_follow_the_sites))
