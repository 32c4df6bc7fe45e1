/* missed.c: see missed.h. */

#include "missed.h"

static _Atomic uintptr_t *unseen(hl_missed *missed, uintptr_t address)
{
    return &missed->unseen[hl_mix(address) >> (64 - HL_UNSEEN_LOG2)];
}

void hl_missed_allocation(hl_missed *missed, uintptr_t address)
{
    atomic_fetch_add(&missed->lost, 1);
    atomic_store(&missed->any_unseen, true);
    atomic_store(unseen(missed, address), address);
}

void hl_missed_departure(hl_missed *missed, hl_departure departure)
{
    uintptr_t address = departure.address;
    if (departure.site == 0 && departure.domain == 0 &&
        atomic_compare_exchange_strong(unseen(missed, address), &address, 0))
        return;
    uint32_t place = atomic_fetch_add(&missed->taken, 1);
    if (place >= HL_MOST_DEPARTURES) {
        atomic_store(&missed->taken, HL_MOST_DEPARTURES + 1); /* far from wrapping */
        atomic_fetch_add(&missed->lost, 1);
        return;
    }
    missed->places[place].departure = departure;
    atomic_store(&missed->places[place].noted, true);
}

static void settle_one(hl_ledger *ledger, const hl_departure *departure)
{
    if (ledger->book == NULL)
        return; /* closed */
    if (departure->site == 0)
        (void)hl_ledger_leave(ledger, departure->address, departure->domain);
    else if (departure->era == ledger->era)
        hl_ledger_let_go(ledger, departure->site);
}

void hl_missed_settle(hl_missed *missed, hl_ledger *ledger)
{
    uint32_t taken = atomic_load(&missed->taken);
    uint32_t places = taken < HL_MOST_DEPARTURES ? taken : HL_MOST_DEPARTURES;
    for (uint32_t i = 0; i < places; i++) {
        if (!atomic_load(&missed->places[i].noted))
            continue; /* done, or not filled yet: then its block is not freed yet either */
        settle_one(ledger, &missed->places[i].departure);
        atomic_store(&missed->places[i].noted, false);
        missed->settled++;
    }
    ledger->lost += atomic_exchange(&missed->lost, 0);
    if (missed->settled == places && atomic_compare_exchange_strong(&missed->taken, &taken, 0))
        missed->settled = 0;
}

void hl_missed_forks(hl_missed *missed)
{
    if (!atomic_exchange(&missed->any_unseen, false))
        return;
    for (size_t i = 0; i < sizeof missed->unseen / sizeof *missed->unseen; i++)
        atomic_store_explicit(&missed->unseen[i], 0, memory_order_relaxed);
}

void hl_missed_forked(hl_missed *missed, hl_ledger *ledger)
{
    hl_missed_settle(missed, ledger);
    atomic_store(&missed->taken, 0);
    missed->settled = 0;
}
