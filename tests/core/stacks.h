/* stacks.h: a few dozen stacks for tests of the ledger, told apart by the line of their newest frame. */
#ifndef HL_STACKS_H
#define HL_STACKS_H

#include "../../src/core/ledger.h"
#include "check.h"

enum { STACKS = 40, NFRAME = 4, PLACES = 16 };

static inline hl_key key_of(const hl_location_id *locations, uint32_t depth, uint64_t size, uint32_t domain)
{
    static uint64_t stack_version;
    hl_key key = {
        .locations = locations, .depth = depth, .domain = domain, .size = size, .stack_version = ++stack_version};
    for (uint32_t i = depth; i > 0; i--)
        key.stack_hash = key.stack_hash * HL_STACK_BASE + locations[i - 1];
    return key;
}

/* The site of one of the stacks. 0: no memory. */
static inline hl_site_id site_of(hl_ledger *ledger, uint32_t stack, uint64_t size, uint32_t domain)
{
    hl_location_id locations[NFRAME];
    uint32_t depth = 1 + stack % NFRAME, made = 0;
    hl_site_id site = 0;
    for (; made < depth; made++) {
        char file[16];
        hl_string_id file_id;
        int length = snprintf(file, sizeof file, "file%u.py", (stack + made) % PLACES);
        if (hl_names_string(ledger->names, file, (size_t)length, &file_id) != HL_OK)
            break;
        hl_status status = hl_names_location(ledger->names, file_id, stack + 1, 0, &locations[made]);
        hl_names_release_string(ledger->names, file_id);
        if (status != HL_OK)
            break;
    }
    if (made == depth) {
        hl_key key = key_of(locations, depth, size, domain);
        site = hl_ledger_cached(ledger, &key);
        if (site == 0)
            site = hl_ledger_site(ledger, &key);
    }
    while (made > 0)
        hl_names_release_location(ledger->names, locations[--made]);
    return site;
}

/* Which of the stacks it is. */
static inline uint32_t stack_of(const hl_names *names, hl_stack_id id)
{
    const hl_stack *stack = hl_names_get_stack(names, id);
    return hl_names_get_location(names, stack->locations[0])->line - 1;
}

/* A block comes and goes by the short way wherever that is open, as in the hooks. */
static inline void block_enters(hl_ledger *ledger, uintptr_t address, uint64_t size, uint32_t domain, hl_site_id site)
{
    if (domain != 0 || site == 0 || (hl_sites_at(&ledger->sites, site)->is & HL_SITE_HIDDEN) ||
        !hl_ledger_enter_quickly(ledger, address, site, hl_sites_at(&ledger->sites, site)->size))
        hl_ledger_enter(ledger, address, size, domain, site);
}

static inline bool block_leaves(hl_ledger *ledger, uintptr_t address, uint32_t domain)
{
    bool entered = hl_ledger_find(ledger, address, domain) != 0;
    if (domain == 0 && hl_ledger_leave_quickly(ledger, address))
        return entered;
    return hl_ledger_leave(ledger, address, domain);
}

#endif
