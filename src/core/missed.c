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

/* Returns NULL if there is no memory. */
static hl_departure_place *get_places(hl_missed *missed)
{
    enum { BYTES = HL_MOST_DEPARTURES * sizeof(hl_departure_place) };
    hl_departure_place *places = atomic_load(&missed->places);
    if (places != NULL)
        return places;
    hl_departure_place *made = hl_os_map(BYTES);
    if (made != NULL && atomic_compare_exchange_strong(&missed->places, &places, made))
        return made;
    if (made != NULL)
        hl_os_unmap(made, BYTES); /* another thread was first */
    return places;
}

void hl_missed_departure(hl_missed *missed, hl_departure departure)
{
    uintptr_t address = departure.address;
    if (departure.site == 0 && departure.domain == 0 &&
        atomic_compare_exchange_strong(unseen(missed, address), &address, 0))
        return;
    hl_departure_place *places = get_places(missed);
    uint32_t place = places == NULL ? HL_MOST_DEPARTURES : atomic_fetch_add(&missed->taken, 1);
    if (place < HL_MOST_DEPARTURES) {
        places[place].departure = departure;
        atomic_store(&places[place].noted, true);
        return;
    }
    if (places != NULL)
        atomic_store(&missed->taken, HL_MOST_DEPARTURES + 1); /* far from wrapping */
    atomic_fetch_add(&missed->lost, 1);
}

static void apply_one(hl_ledger *ledger, const hl_departure *departure)
{
    if (ledger->names == NULL)
        return; /* the ledger is closed */
    if (departure->site == 0)
        (void)hl_ledger_leave(ledger, departure->address, departure->domain);
    else if (departure->clear_count == ledger->clear_count)
        hl_ledger_let_go(ledger, departure->site);
}

void hl_missed_apply(hl_missed *missed, hl_ledger *ledger)
{
    uint32_t taken = atomic_load(&missed->taken);
    uint32_t count = taken < HL_MOST_DEPARTURES ? taken : HL_MOST_DEPARTURES;
    hl_departure_place *places = atomic_load(&missed->places);
    for (uint32_t i = 0; i < count; i++) {
        if (!atomic_load(&places[i].noted))
            continue; /* applied already, or not filled yet: then its block is not freed yet either */
        apply_one(ledger, &places[i].departure);
        atomic_store(&places[i].noted, false);
        missed->applied++;
    }
    ledger->lost += atomic_exchange(&missed->lost, 0);
    if (missed->applied == count && atomic_compare_exchange_strong(&missed->taken, &taken, 0))
        missed->applied = 0;
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
    hl_missed_apply(missed, ledger);
    atomic_store(&missed->taken, 0);
    missed->applied = 0;
}
