/* ledger.c: see ledger.h. */

#include "ledger.h"

enum { MOST_SIDE = (1 << 24) - 1 };

typedef struct {
    uintptr_t address;
    uint32_t domain;
    hl_site_id site;
} side_entry;

/* Smaller than any code object. The map only needs a lower bound of a block's size. */
enum { CODE_BLOCK_SIZE = 64 };

/* STEPS_FOR_ROOM: how far the hand goes when there is no room left. The others are for the rounds of the hand after
 * memory was freed. Each call moves it over 1/TIDIED_IN of the sites, but over at least FEWEST_STEPS and at most
 * MOST_STEPS. So it takes about TIDIED_IN calls to pass every site once. A round that reclaims less than
 * 1/TIDIED_FOR_NOTHING of the sites was useless. */
enum { STEPS_FOR_ROOM = 64, FEWEST_STEPS = 64, MOST_STEPS = 1024, TIDIED_IN = 1024, TIDIED_FOR_NOTHING = 16 };

/* Hidden sites have no stack. Their domain field tells them apart. */
enum { OLD_CODE = 1, OWN_WORK = 2 };

/* The fields that are not tables. */
static void reset_fields(hl_ledger *ledger, uint32_t clear_count)
{
    ledger->clear_count = clear_count;
    ledger->peak_epoch = HL_EPOCH_STEP;
    ledger->peak = ledger->in_transit = 0;
    ledger->below_peak = 0;
    ledger->origins = (hl_origins){.count = 1, .ids = {hl_os_random()}};
    ledger->tidying = (hl_tidying){0};
}

static hl_status make_old_code_site(hl_ledger *ledger)
{
    hl_status status =
        hl_sites_intern(&ledger->sites, ledger->names, 0, 0, OLD_CODE, ledger->peak_epoch, &ledger->old_code);
    if (status == HL_OK)
        hl_site_set(hl_sites_at(&ledger->sites, ledger->old_code), HL_SITE_HOLDS_CODE);
    return status;
}

hl_status hl_ledger_open(hl_ledger *ledger, uint32_t nframe, uint32_t clear_count)
{
    *ledger = (hl_ledger){HL_LEDGER_CLOSED, .nframe = nframe};
    reset_fields(ledger, clear_count);
    hl_table_open(&ledger->side, sizeof(side_entry), MOST_SIDE, false);
    hl_sites_open(&ledger->sites, HL_MAP_MOST_SITES, nframe == 1 ? HL_HAND_STEPS_AT_ONE_FRAME : HL_HAND_STEPS);
    hl_status status = hl_names_new(true, &ledger->names);
    if (status == HL_OK)
        status = hl_map_open(&ledger->map);
    if (status == HL_OK)
        status = hl_codes_open(&ledger->codes);
    if (status == HL_OK)
        status = hl_cache_open(&ledger->cache, nframe == 1);
    if (status == HL_OK)
        status = hl_spots_open(&ledger->spots, nframe == 1);
    if (status == HL_OK)
        status = make_old_code_site(ledger);
    if (status != HL_OK)
        hl_ledger_close(ledger);
    return status;
}

bool hl_ledger_clear(hl_ledger *ledger)
{
    bool small = hl_table_is_small(&ledger->side) && hl_table_is_small(&ledger->sites.table) &&
                 hl_table_is_small(&ledger->codes.codes) && hl_table_is_small(&ledger->codes.instructions);
    if (!small || !hl_names_clear(ledger->names))
        return false;
    hl_map_clear(&ledger->map);
    hl_table_clear(&ledger->side);
    hl_sites_clear(&ledger->sites);
    hl_codes_clear(&ledger->codes);
    hl_cache_clear(&ledger->cache);
    hl_spots_clear(&ledger->spots);
    reset_fields(ledger, ledger->clear_count + 1);
    return make_old_code_site(ledger) == HL_OK; /* the memory is already there */
}

void hl_ledger_close(hl_ledger *ledger)
{
    if (ledger->earlier_peak != NULL)
        hl_snapshot_drop(ledger->earlier_peak);
    hl_snapshot_free_all(ledger->dropped);
    if (ledger->names != NULL)
        hl_names_drop(ledger->names);
    hl_map_close(&ledger->map);
    hl_table_close(&ledger->side);
    hl_sites_close(&ledger->sites);
    hl_codes_close(&ledger->codes);
    hl_cache_close(&ledger->cache);
    hl_spots_close(&ledger->spots);
    *ledger = (hl_ledger){HL_LEDGER_CLOSED, .clear_count = ledger->clear_count, .lost = ledger->lost};
}

hl_site_id hl_ledger_site(hl_ledger *ledger, const hl_key *key)
{
    hl_stack_id stack;
    hl_site_id site;
    if (hl_names_stack_hashed(ledger->names, key->stack_hash, key->locations, key->depth, 0, &stack) != HL_OK ||
        hl_sites_intern(&ledger->sites, ledger->names, stack, key->size, key->domain, ledger->peak_epoch, &site) !=
            HL_OK) {
        ledger->cache.stack_version = 0;
        return 0;
    }
    hl_ledger_note(ledger, key, site);
    const hl_site *found = hl_sites_at(&ledger->sites, site);
    if (found->allocated != 0 && key->stack_version != 0)
        hl_cache_miss(&ledger->cache, ledger->sites.table.count);
    hl_cache_put(&ledger->cache, key, site, found->reuse_count,
                 hl_names_get_stack(ledger->names, found->stack)->locations);
    return site;
}

void hl_ledger_remember(hl_ledger *ledger, uintptr_t instruction, hl_site_id id)
{
    const hl_site *site = hl_sites_at(&ledger->sites, id);
    hl_spots_miss(&ledger->spots, ledger->sites.table.count, site->allocated == 0);
    hl_spots_put(&ledger->spots, &ledger->sites, instruction, site->size, id);
}

bool hl_ledger_make_room(hl_ledger *ledger)
{
    ledger->cache.stack_version = 0; /* the stack that it names may be reclaimed */
    return hl_sites_sweep(&ledger->sites, ledger->names, ledger->peak_epoch, STEPS_FOR_ROOM, true) != 0;
}

hl_site_id hl_ledger_own_site(hl_ledger *ledger, uint64_t size)
{
    hl_site_id site;
    ledger->cache.stack_version = 0; /* the stack that it names may be reclaimed */
    if (hl_sites_intern(&ledger->sites, ledger->names, 0, size, OWN_WORK, ledger->peak_epoch, &site) != HL_OK)
        return 0;
    return site;
}

/* After memory was freed. */

static inline void note_traced(hl_ledger *ledger)
{
    hl_tidying *tidying = &ledger->tidying;
    uint64_t traced = hl_ledger_traced(ledger);
    if (HL_LIKELY(traced <= tidying->traced))
        return;
    /* If the memory of a program goes up and down all the time, do not send the hand round in vain more than once. */
    if (!tidying->idly || traced > 2 * tidying->traced)
        tidying->traced = traced;
}

static bool is_time_to_tidy(const hl_ledger *ledger)
{
    const hl_tidying *tidying = &ledger->tidying;
    return hl_ledger_traced(ledger) < tidying->traced - tidying->traced / 4 ||
           ledger->peak > tidying->peak + tidying->peak / 4 || tidying->anew;
}

/* Move the hand a few steps, until it has passed every site twice. The second time, it reclaims the dead ones. */
static void tidy_sites(hl_ledger *ledger)
{
    hl_tidying *tidying = &ledger->tidying;
    const hl_table *table = &ledger->sites.table;
    note_traced(ledger);
    if (tidying->steps == 0) {
        if (!is_time_to_tidy(ledger))
            return;
        tidying->steps = 2 * table->used;
        tidying->reclaimed = 0;
    }
    uint32_t steps = table->used / TIDIED_IN;
    steps = steps < FEWEST_STEPS ? FEWEST_STEPS : steps > MOST_STEPS ? MOST_STEPS : steps;
    steps = steps < tidying->steps ? steps : tidying->steps;
    tidying->reclaimed += hl_sites_sweep(&ledger->sites, ledger->names, ledger->peak_epoch, steps, false);
    tidying->steps -= steps;
    ledger->cache.stack_version = 0; /* the stack that it names may be reclaimed */
    if (tidying->steps != 0 && table->count > ledger->sites.few)
        return;
    *tidying = (hl_tidying){.traced = hl_ledger_traced(ledger),
                            .peak = ledger->peak,
                            .idly = tidying->reclaimed < table->count / TIDIED_FOR_NOTHING};
    hl_cache_shrink(&ledger->cache, table->count);
    hl_spots_shrink(&ledger->spots, table->count);
}

/* Reclaim stacks that waited until a snapshot was freed. While the snapshot lives, the first step reclaims nothing, and
 * we stop there. */
static void tidy_limbo(hl_names *names)
{
    if (hl_names_sweep(names, 1) != 0)
        (void)hl_names_sweep(names, FEWEST_STEPS);
}

/* The side table. */

static uint32_t side_hash(uintptr_t address, uint32_t domain)
{
    return (uint32_t)hl_mix(address ^ (uint64_t)domain << 48 ^ domain);
}

static uint32_t side_find(const hl_ledger *ledger, uintptr_t address, uint32_t domain)
{
    const hl_table *side = &ledger->side;
    for (uint32_t at = hl_table_first(side, side_hash(address, domain)); at != 0; at = hl_table_link(side, at)->next) {
        const side_entry *entry = hl_table_at(side, at);
        if (entry->address == address && entry->domain == domain)
            return at;
    }
    return 0;
}

static hl_site_id side_take(hl_ledger *ledger, uintptr_t address, uint32_t domain)
{
    uint32_t at = side_find(ledger, address, domain);
    if (at == 0)
        return 0;
    hl_site_id site = ((side_entry *)hl_table_at(&ledger->side, at))->site;
    hl_table_remove(&ledger->side, at);
    return site;
}

static hl_status side_put(hl_ledger *ledger, uintptr_t address, uint32_t domain, hl_site_id site, hl_map_stale *stale)
{
    uint32_t at = side_find(ledger, address, domain);
    if (at == 0) {
        hl_status status = hl_table_add(&ledger->side, side_hash(address, domain), &at);
        if (status != HL_OK)
            return status;
        *(side_entry *)hl_table_at(&ledger->side, at) = (side_entry){.address = address, .domain = domain};
    }
    side_entry *entry = hl_table_at(&ledger->side, at);
    *stale = (hl_map_stale){.address = address, .site = entry->site};
    entry->site = site;
    return HL_OK;
}

/* Blocks. */

static void count_new(hl_ledger *ledger, hl_site_id id)
{
    hl_site *site = hl_sites_at(&ledger->sites, id);
    if (!(site->is & HL_SITE_HIDDEN)) {
        hl_ledger_count_in(ledger, site, site->size);
        return;
    }
    hl_site_save(site, ledger->peak_epoch);
    site->allocated++;
}

static void count_out(hl_ledger *ledger, uintptr_t address, hl_site_id id)
{
    hl_site *site = hl_sites_at(&ledger->sites, id);
    hl_site_save(site, ledger->peak_epoch);
    if (HL_LIKELY(!(site->is & HL_SITE_HIDDEN)))
        hl_ledger_count_out(ledger, site);
    else
        site->freed++;
    if (HL_UNLIKELY(site->is & HL_SITE_HOLDS_CODE) && hl_codes_forget(&ledger->codes, ledger->names, address))
        hl_spots_void(&ledger->spots);
}

static bool in_map(uintptr_t address, uint32_t domain)
{
    return domain == 0 && hl_map_takes(address);
}

static hl_status put(hl_ledger *ledger, uintptr_t address, uint64_t size, uint32_t domain, hl_site_id site)
{
    hl_map_stale stale = {0};
    hl_status status = in_map(address, domain) ? hl_map_put(&ledger->map, address, size, site, &stale)
                                               : side_put(ledger, address, domain, site, &stale);
    if (HL_UNLIKELY(stale.site != 0))
        count_out(ledger, stale.address, stale.site);
    return status;
}

static hl_site_id take(hl_ledger *ledger, uintptr_t address, uint32_t domain)
{
    return in_map(address, domain) ? hl_map_take(&ledger->map, address) : side_take(ledger, address, domain);
}

void hl_ledger_enter(hl_ledger *ledger, uintptr_t address, uint64_t size, uint32_t domain, hl_site_id site)
{
    if (site == 0 || put(ledger, address, size, domain, site) != HL_OK) {
        ledger->lost++;
        hl_ledger_leave(ledger, address, domain); /* the old block at this address is gone in any case */
        return;
    }
    count_new(ledger, site);
    note_traced(ledger);
}

bool hl_ledger_leave(hl_ledger *ledger, uintptr_t address, uint32_t domain)
{
    hl_site_id site = take(ledger, address, domain);
    if (site == 0)
        return false;
    count_out(ledger, address, site);
    if (HL_UNLIKELY(ledger->sites.table.count > ledger->sites.few))
        tidy_sites(ledger);
    if (HL_UNLIKELY(ledger->names->limbo_first != 0))
        tidy_limbo(ledger->names);
    return true;
}

void hl_ledger_disown(hl_ledger *ledger, uintptr_t address)
{
    hl_site_id id = hl_ledger_find(ledger, address, 0);
    if (id == 0)
        return;
    hl_site *site = hl_sites_at(&ledger->sites, id);
    site->allocated--;
    site->freed--; /* hl_ledger_leave counts it as freed */
    (void)hl_ledger_leave(ledger, address, 0);
}

hl_site_id hl_ledger_find(const hl_ledger *ledger, uintptr_t address, uint32_t domain)
{
    if (!in_map(address, domain)) {
        uint32_t at = side_find(ledger, address, domain);
        return at == 0 ? 0 : ((const side_entry *)hl_table_at(&ledger->side, at))->site;
    }
    const uint32_t *slot = hl_map_find(&ledger->map, address);
    return slot == NULL ? 0 : *slot & HL_MAP_MOST_SITES;
}

hl_site_id hl_ledger_detach(hl_ledger *ledger, uintptr_t address)
{
    hl_map_place place;
    if (HL_UNLIKELY(!hl_map_look(&ledger->map, address, &place)))
        place.site = take(ledger, address, 0);
    else if (HL_LIKELY(place.site != 0))
        hl_map_take_from(&place);
    if (place.site != 0)
        ledger->in_transit++;
    return place.site;
}

void hl_ledger_reattach(hl_ledger *ledger, uintptr_t address, hl_site_id site)
{
    ledger->in_transit--;
    if (put(ledger, address, hl_sites_at(&ledger->sites, site)->size, 0, site) == HL_OK)
        return;
    ledger->lost++;
    count_out(ledger, address, site);
}

void hl_ledger_let_go(hl_ledger *ledger, hl_site_id site)
{
    ledger->in_transit--;
    count_out(ledger, 0, site);
}

hl_status hl_ledger_watch_code(hl_ledger *ledger, uintptr_t address)
{
    hl_site_id site = hl_ledger_find(ledger, address, 0);
    if (site != 0) {
        hl_site_set(hl_sites_at(&ledger->sites, site), HL_SITE_HOLDS_CODE);
        return HL_OK;
    }
    hl_status status = put(ledger, address, CODE_BLOCK_SIZE, 0, ledger->old_code);
    if (status == HL_OK)
        count_new(ledger, ledger->old_code);
    return status;
}

void hl_ledger_forked(hl_ledger *ledger)
{
    ledger->origins.forks++;
}

void hl_ledger_inherit(hl_ledger *ledger)
{
    hl_origins *origins = &ledger->origins;
    if (origins->count < HL_MOST_ORIGINS)
        origins->count++;
    origins->ids[origins->count - 1] = hl_os_random();
    origins->forks = 0;
    ledger->sites.origin = (uint8_t)(origins->count - 1);
    hl_cache_clear(&ledger->cache);
    hl_spots_clear(&ledger->spots);
}

void hl_ledger_reset_peak(hl_ledger *ledger)
{
    ledger->peak = hl_ledger_traced(ledger);
    ledger->below_peak = 0;
    ledger->peak_epoch += HL_EPOCH_STEP;
    ledger->tidying.steps = 0; /* sites that only the old peak needed may be dead now */
    ledger->tidying.anew = true;
}

/* The validator. */

static void count_block(void *context, uintptr_t address, uint32_t site)
{
    (void)address;
    ((uint64_t *)context)[site]++;
}

const char *hl_ledger_validate(const hl_ledger *ledger)
{
    const hl_table *table = &ledger->sites.table;
    size_t page = hl_os_page(), bytes = (((size_t)table->used + 1) * sizeof(uint64_t) + page - 1) / page * page;
    uint64_t *blocks = hl_os_map(bytes);
    if (blocks == NULL)
        return "no memory to validate";
    hl_map_each(&ledger->map, count_block, blocks);
    uint64_t in_side = 0;
    for (uint32_t id = 1; (id = hl_table_seek(&ledger->side, id)) != 0; id++) {
        const side_entry *entry = hl_table_at(&ledger->side, id);
        if (entry->site != 0 && side_find(ledger, entry->address, entry->domain) == id) {
            blocks[entry->site]++;
            in_side++;
        }
    }
    uint64_t live = 0, traced = 0, peak = 0, missing = 0;
    const char *wrong = NULL;
    for (hl_site_id id = 1; id <= table->used; id++) {
        const hl_site *site = hl_sites_at(&ledger->sites, id);
        if (!(site->is & HL_SITE_IN_USE)) {
            if (blocks[id] != 0)
                wrong = "a block is entered under a reclaimed site";
            continue;
        }
        uint64_t alive = hl_site_live(site);
        if (blocks[id] > alive)
            wrong = "a site has fewer live blocks than entries";
        missing += alive - blocks[id];
        live += alive;
        if (site->is & HL_SITE_HIDDEN)
            continue;
        traced += alive * site->size;
        peak += hl_site_at_peak(site, ledger->peak_epoch) * site->size;
        if (site->freed > site->allocated)
            wrong = "more blocks have left a site than were entered";
    }
    hl_os_unmap(blocks, bytes);
    if (wrong != NULL)
        return wrong;
    if (missing != ledger->in_transit)
        return "live blocks have no entry";
    if (live != hl_map_blocks(&ledger->map) + in_side + ledger->in_transit)
        return "live counts do not add up to the entries";
    if (traced != hl_ledger_traced(ledger))
        return "live counts times sizes are not the traced memory";
    if (peak != ledger->peak)
        return "the counts saved for the peak are not the peak";
    return NULL;
}
