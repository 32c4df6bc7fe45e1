/* sites.c: see sites.h. */

#include "sites.h"

void hl_sites_open(hl_sites *sites, uint32_t most, uint32_t steps)
{
    *sites = (hl_sites){.few = HL_FEW_SITES, .steps = steps};
    hl_table_open(&sites->table, sizeof(hl_site), most, false);
    sites->table.lives_at = offsetof(hl_site, life);
}

void hl_sites_close(hl_sites *sites)
{
    hl_table_close(&sites->table);
}

static bool is_dead(hl_site *site, uint64_t epoch)
{
    if (!(site->is & HL_SITE_IN_USE) || hl_site_live(site) != 0 || hl_site_at_peak(site, epoch) != 0 ||
        ((site->is & HL_SITE_HIDDEN) && (site->is & HL_SITE_HOLDS_CODE)) || site->life == HL_MOST_LIVES)
        return false;
    uint32_t allocated = (uint32_t)site->allocated;
    if (site->seen == allocated)
        return true;
    site->seen = allocated;
    return false;
}

static void reclaim(hl_sites *sites, hl_book *book, hl_site_id id)
{
    hl_site *site = hl_sites_at(sites, id);
    if (!(site->is & HL_SITE_HIDDEN)) {
        sites->retired_blocks += site->allocated;
        sites->retired_bytes += site->allocated * site->size;
        hl_book_release_stack(book, site->stack);
    }
    *site = (hl_site){.life = site->life};
    hl_table_remove(&sites->table, id);
}

static void move_hand(hl_sites *sites, hl_book *book, uint64_t epoch)
{
    if (sites->table.used < sites->few)
        return;
    for (uint32_t step = 0; step < sites->steps; step++) {
        sites->hand = sites->hand >= sites->table.used ? 1 : sites->hand + 1;
        if (is_dead(hl_sites_at(sites, sites->hand), epoch))
            reclaim(sites, book, sites->hand);
    }
    hl_book_sweep(book, sites->steps);
}

hl_status hl_sites_intern(hl_sites *sites, hl_book *book, hl_stack_id stack, uint64_t size, uint32_t domain,
                          uint64_t epoch, hl_site_id *id)
{
    hl_table *table = &sites->table;
    uint32_t hash = (uint32_t)hl_mix(size * 0x9e3779b97f4a7c15u ^ ((uint64_t)domain << 32 | stack));
    for (hl_site_id at = hl_table_first(table, hash); at != 0; at = hl_table_link(table, at)->next) {
        hl_site *site = hl_sites_at(sites, at);
        if (site->stack == stack && site->size == size && site->domain == domain && site->origin == sites->origin) {
            if (stack != 0)
                hl_book_release_stack(book, stack);
            *id = at;
            return HL_OK;
        }
    }
    move_hand(sites, book, epoch);
    hl_status status = hl_table_add(table, hash, id);
    if (status != HL_OK) {
        if (stack != 0)
            hl_book_release_stack(book, stack);
        return status;
    }
    hl_site *site = hl_sites_at(sites, *id);
    *site = (hl_site){.size = size,
                      .stack = stack,
                      .domain = domain,
                      .life = site->life,
                      .origin = sites->origin,
                      .cut = hl_map_cut(size),
                      .is = HL_SITE_IN_USE | (stack == 0 ? HL_SITE_HIDDEN : 0)};
    return HL_OK;
}
