/* test_missed.c: what hooks could not do during a fork is made good afterwards. */

#include "../../src/core/missed.h"

#include <pthread.h>

#include "check.h"
#include "stacks.h"

static hl_missed missed;
static hl_ledger ledger;

enum { BLOCKS = 100, SIZE = 64 };

static uintptr_t address_of(uint32_t number)
{
    return 0x10000 + (uintptr_t)number * SIZE;
}

static hl_site_id some_site(void)
{
    return site_of(&ledger, 1, SIZE, 0);
}

static void forget_all(void)
{
    hl_departure_place *places = atomic_load(&missed.places);
    missed = (hl_missed){.places = places};
}

static void open_with_blocks(void)
{
    forget_all();
    CHECK(hl_ledger_open(&ledger, 25, 1) == HL_OK);
    for (uint32_t i = 0; i < BLOCKS; i++)
        hl_ledger_enter(&ledger, address_of(i), SIZE, 0, some_site());
    hl_missed_forks(&missed);
}

static void check_and_close(uint64_t blocks, uint64_t lost)
{
    CHECK(hl_ledger_validate(&ledger) == NULL);
    CHECK_EQUAL(hl_ledger_live_blocks(&ledger), blocks);
    CHECK_EQUAL(hl_ledger_traced(&ledger), blocks * SIZE);
    CHECK_EQUAL(ledger.lost, lost);
    CHECK(!hl_missed_any(&missed));
    hl_ledger_close(&ledger);
}

static void departures_are_applied(void)
{
    open_with_blocks();
    CHECK(!hl_missed_any(&missed));
    for (uint32_t i = 0; i < 10; i++)
        hl_missed_departure(&missed, (hl_departure){.address = address_of(i)});
    hl_missed_departure(&missed, (hl_departure){.address = address_of(5)}); /* its address was used once more */
    hl_site_id site = hl_ledger_detach(&ledger, address_of(20));
    hl_missed_departure(&missed, (hl_departure){.site = site, .clear_count = ledger.clear_count});
    hl_missed_departure(&missed,
                        (hl_departure){.site = site, .clear_count = ledger.clear_count - 1}); /* cleared since */
    CHECK(hl_missed_any(&missed));
    hl_missed_apply(&missed, &ledger);
    check_and_close(BLOCKS - 11, 0);
}

static void blocks_of_the_fork_itself_need_no_place(void)
{
    open_with_blocks();
    for (uint32_t i = 0; i < 3 * HL_MOST_DEPARTURES; i++) {
        hl_missed_allocation(&missed, address_of(1000));
        hl_missed_departure(&missed, (hl_departure){.address = address_of(1000)});
    }
    hl_missed_departure(&missed, (hl_departure){.address = address_of(1)});
    hl_missed_apply(&missed, &ledger);
    check_and_close(BLOCKS - 1, 3 * HL_MOST_DEPARTURES);
}

/* The same address is in the ledger when the next fork comes. */
static void what_was_unseen_in_one_fork_is_not_in_the_next(void)
{
    open_with_blocks();
    hl_missed_allocation(&missed, address_of(1000));
    hl_missed_apply(&missed, &ledger);
    hl_ledger_enter(&ledger, address_of(1000), SIZE, 0, some_site());
    hl_missed_forks(&missed);
    hl_missed_departure(&missed, (hl_departure){.address = address_of(1000)});
    hl_missed_apply(&missed, &ledger);
    check_and_close(BLOCKS, 1);
}

static void too_many_departures_are_lost_and_counted(void)
{
    open_with_blocks();
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < HL_MOST_DEPARTURES + 7; i++)
            hl_missed_departure(&missed, (hl_departure){.address = address_of(5000 + i)});
        hl_missed_apply(&missed, &ledger);
        CHECK(!hl_missed_any(&missed));
    }
    check_and_close(BLOCKS, 3 * 7);
}

static void without_memory_departures_are_lost_and_counted(void)
{
    open_with_blocks();
    hl_departure_place *places = atomic_exchange(&missed.places, NULL);
    (void)hl_os_fail_every(1);
    hl_missed_departure(&missed, (hl_departure){.address = address_of(1)});
    (void)hl_os_fail_every(0);
    atomic_store(&missed.places, places);
    hl_missed_apply(&missed, &ledger);
    check_and_close(BLOCKS, 1);
}

static void a_closed_ledger_takes_nothing(void)
{
    forget_all();
    ledger = (hl_ledger){0};
    hl_missed_departure(&missed, (hl_departure){.address = address_of(1)});
    hl_missed_departure(&missed, (hl_departure){.site = 1});
    hl_missed_apply(&missed, &ledger);
    CHECK(!hl_missed_any(&missed));
}

/* Many threads note while one applies: each departure is applied, once. */

enum { THREADS = 4, EACH = 20000 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint32_t running;

static void *note_many(void *argument)
{
    uint32_t first = *(uint32_t *)argument;
    for (uint32_t i = first; i < first + EACH; i++) {
        while (atomic_load(&missed.taken) >= HL_MOST_DEPARTURES / 2)
            sched_yield();
        hl_missed_departure(&missed, (hl_departure){.address = address_of(i)});
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static void nothing_is_lost_between_threads(void)
{
    pthread_t threads[THREADS];
    uint32_t firsts[THREADS];
    open_with_blocks();
    for (uint32_t i = BLOCKS; i < THREADS * EACH; i++)
        hl_ledger_enter(&ledger, address_of(i), SIZE, 0, some_site());
    atomic_store(&running, THREADS);
    for (uint32_t i = 0; i < THREADS; i++) {
        firsts[i] = i * EACH;
        CHECK_OR_RETURN(pthread_create(&threads[i], NULL, note_many, &firsts[i]) == 0);
    }
    while (atomic_load(&running) > 0) {
        pthread_mutex_lock(&lock);
        hl_missed_apply(&missed, &ledger);
        pthread_mutex_unlock(&lock);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    hl_missed_apply(&missed, &ledger);
    check_and_close(0, 0);
}

CHECK_MAIN(TEST(departures_are_applied), TEST(blocks_of_the_fork_itself_need_no_place),
           TEST(what_was_unseen_in_one_fork_is_not_in_the_next), TEST(too_many_departures_are_lost_and_counted),
           TEST(without_memory_departures_are_lost_and_counted), TEST(a_closed_ledger_takes_nothing),
           TEST(nothing_is_lost_between_threads))
