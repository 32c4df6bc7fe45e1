/* sites.c: see sites.h. */

#include "sites.h"

enum { MARKS_LOG2 = 17, MARKS_BYTES = 1 << MARKS_LOG2 };

/* A round of the hand has many rebirths if more than 1 in MANY_REBORN new sites is one, and hardly any if at most 1 in
 * HARDLY_ANY_REBORN is. If a program cycles through more stacks than there is room for, all its new sites are rebirths.
 * Every program has some. If a bound was useless, it is not tried again for IDLE_ROUNDS rounds. */
enum { MANY_REBORN = 2, HARDLY_ANY_REBORN = 64, IDLE_ROUNDS = 1024 };

void hl_sites_open(hl_sites *sites, uint32_t most, uint32_t steps)
{
    *sites = (hl_sites){.few = HL_FEW_SITES, .bound = HL_FEW_SITES, .steps = steps};
    hl_table_open(&sites->table, sizeof(hl_site), most, false);
    sites->table.reuse_count_at = offsetof(hl_site, reuse_count);
}

void hl_sites_close(hl_sites *sites)
{
    hl_table_close(&sites->table);
    if (sites->marks != NULL)
        hl_os_unmap(sites->marks, MARKS_BYTES);
    sites->marks = NULL;
}

void hl_sites_clear(hl_sites *sites)
{
    hl_table_clear(&sites->table);
    if (sites->marks != NULL)
        hl_os_discard(sites->marks, MARKS_BYTES);
    *sites = (hl_sites){.table = sites->table,
                        .bound = HL_FEW_SITES,
                        .few = sites->counted ? HL_FEW_COUNTED_SITES : HL_FEW_SITES,
                        .steps = sites->steps,
                        .marks = sites->marks,
                        .counted = sites->counted};
}

size_t hl_sites_memory(const hl_sites *sites)
{
    return hl_table_memory(&sites->table) + (sites->marks == NULL ? 0 : hl_os_resident(sites->marks, MARKS_BYTES));
}

void hl_sites_count(hl_sites *sites, bool counted)
{
    sites->counted = counted;
    sites->few = counted ? HL_FEW_COUNTED_SITES : sites->bound;
}

/* Rebirths. */

/* A hash of what a reclaimed site and its successor have in common. Ids are not part of it: the successor may have
 * other ids, and another stack may have got the id of the reclaimed one. */
static uint32_t hash_of(const hl_names *names, hl_stack_id stack, uint64_t size, uint32_t domain)
{
    uint64_t content = hl_names_get_stack(names, stack)->content;
    return (uint32_t)((content + (size ^ (uint64_t)domain << 40) * 0xd6e8feb86659fd93u) * 0x9e3779b97f4a7c15u >> 32);
}

static uint8_t *mark_of(const hl_sites *sites, uint32_t hash)
{
    return sites->marks + (hash >> (32 - MARKS_LOG2));
}

static uint8_t mark_for(uint32_t hash)
{
    return (uint8_t)(hash | 1); /* 0: no mark */
}

static void note_end(hl_sites *sites, const hl_names *names, const hl_site *site)
{
    if (sites->marks == NULL)
        sites->marks = hl_os_map(MARKS_BYTES);
    if (sites->marks == NULL)
        return;
    uint32_t hash = hash_of(names, site->stack, site->size, site->domain);
    *mark_of(sites, hash) = mark_for(hash);
}

static void note_birth(hl_sites *sites, const hl_names *names, const hl_site *site)
{
    sites->made++;
    if (sites->marks == NULL)
        return;
    uint32_t hash = hash_of(names, site->stack, site->size, site->domain);
    if (*mark_of(sites, hash) != mark_for(hash))
        return;
    *mark_of(sites, hash) = 0;
    sites->reborn++;
}

static void follow(hl_sites *sites)
{
    bool many = sites->reborn > sites->made / MANY_REBORN;
    if (sites->idle_rounds > 0) {
        sites->idle_rounds--;
    } else if (many && sites->bound == HL_MOST_FEW_SITES) {
        sites->bound = HL_FEW_SITES; /* even the largest bound is not enough, so it is useless */
        sites->idle_rounds = IDLE_ROUNDS;
    } else if (many) {
        sites->bound *= 2;
    } else if (sites->reborn <= sites->made / HARDLY_ANY_REBORN && sites->bound > HL_FEW_SITES) {
        sites->bound /= 2;
    }
}

static void end_hand_round(hl_sites *sites)
{
    follow(sites);
    sites->made = sites->reborn = 0;
    if (!sites->counted)
        sites->few = sites->bound;
}

/* The hand. */

static bool is_dead(hl_site *site, uint64_t peak_epoch, bool pressed)
{
    if (!(site->is & HL_SITE_IN_USE) || hl_site_live(site) != 0 || hl_site_at_peak(site, peak_epoch) != 0 ||
        ((site->is & HL_SITE_HIDDEN) && (site->is & HL_SITE_HOLDS_CODE)) || site->reuse_count == HL_MOST_REUSES)
        return false;
    uint32_t allocated = (uint32_t)site->allocated;
    if (site->seen == allocated || pressed)
        return true;
    site->seen = allocated;
    return false;
}

static void reclaim(hl_sites *sites, hl_names *names, hl_site_id id)
{
    hl_site *site = hl_sites_at(sites, id);
    if (!(site->is & HL_SITE_HIDDEN)) {
        sites->retired_blocks += site->allocated;
        sites->retired_bytes += site->allocated * site->size;
        note_end(sites, names, site);
        hl_names_release_stack(names, site->stack);
    }
    *site = (hl_site){.reuse_count = site->reuse_count};
    hl_table_remove(&sites->table, id);
}

static bool is_at_rest(const hl_sites *sites, bool pressed)
{
    return sites->table.count <= sites->few && !pressed;
}

uint32_t hl_sites_sweep(hl_sites *sites, hl_names *names, uint64_t peak_epoch, uint32_t steps, bool pressed)
{
    uint32_t reclaimed = 0;
    for (uint32_t step = 0; step < steps && !is_at_rest(sites, pressed); step++) {
        hl_site_id id = hl_table_seek(&sites->table, sites->hand + 1);
        sites->hand = id;
        if (HL_UNLIKELY(id == 0)) {
            end_hand_round(sites);
        } else if (is_dead(hl_sites_at(sites, id), peak_epoch, pressed)) {
            reclaim(sites, names, id);
            reclaimed++;
        }
    }
    return reclaimed + hl_names_sweep(names, steps);
}

hl_status hl_sites_intern(hl_sites *sites, hl_names *names, hl_stack_id stack, uint64_t size, uint32_t domain,
                          uint64_t peak_epoch, hl_site_id *id)
{
    hl_table *table = &sites->table;
    uint32_t hash = (uint32_t)hl_mix(size * 0x9e3779b97f4a7c15u ^ ((uint64_t)domain << 32 | stack));
    for (hl_site_id at = hl_table_first(table, hash); at != 0; at = hl_table_link(table, at)->next) {
        hl_site *site = hl_sites_at(sites, at);
        if (site->stack == stack && site->size == size && site->domain == domain && site->origin == sites->origin) {
            if (stack != 0)
                hl_names_release_stack(names, stack);
            *id = at;
            return HL_OK;
        }
    }
    if (!is_at_rest(sites, false) || names->limbo_first != 0)
        (void)hl_sites_sweep(sites, names, peak_epoch, sites->steps, false);
    hl_status status = hl_table_add(table, hash, id);
    if (status != HL_OK) {
        if (stack != 0)
            hl_names_release_stack(names, stack);
        return status;
    }
    hl_site *site = hl_sites_at(sites, *id);
    *site = (hl_site){.size = size,
                      .stack = stack,
                      .domain = domain,
                      .reuse_count = site->reuse_count,
                      .origin = sites->origin,
                      .cut = stack == 0 ? HL_MAP_TOO_FINE : hl_map_cut_for(size)};
    hl_site_set(site, HL_SITE_IN_USE | (stack == 0 ? HL_SITE_HIDDEN : 0));
    if (stack != 0)
        note_birth(sites, names, site);
    return HL_OK;
}
