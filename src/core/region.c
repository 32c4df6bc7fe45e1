/* region.c: see region.h. */

#include "region.h"

/* Memory is obtained in steps of an eighth of what there is, at least 16 KB and at most 1 MB: few system calls, little
 * waste, and no long pause in a hook. */
enum { SMALLEST_STEP = 16 << 10, LARGEST_STEP = 1 << 20 };

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

hl_status hl_region_open(hl_region *region, size_t most, size_t least, bool stable)
{
    *region = (hl_region){.stable = stable};
    if (!stable)
        return HL_OK;
    /* Where addresses are rationed, the host needs them more, and a ledger has some twenty regions. */
    size_t share = hl_os_address_limit() / 128;
    if (most > share)
        most = share > least ? share : least;
    for (size_t bytes = round_up(most, hl_os_page()); bytes >= least; bytes /= 2) {
        region->base = hl_os_reserve(round_up(bytes, hl_os_page()));
        if (region->base != NULL) {
            region->reserved = round_up(bytes, hl_os_page());
            return HL_OK;
        }
    }
    return HL_NO_MEMORY;
}

void hl_region_close(hl_region *region)
{
    if (region->base != NULL)
        hl_os_unmap(region->base, region->reserved);
    *region = (hl_region){0};
}

static hl_status move(hl_region *region, size_t bytes)
{
    void *pages = region->base == NULL ? hl_os_map(bytes) : hl_os_remap(region->base, region->reserved, bytes);
    if (pages == NULL)
        return HL_NO_MEMORY;
    region->base = pages;
    region->reserved = region->committed = bytes;
    return HL_OK;
}

hl_status hl_region_grow(hl_region *region, size_t bytes)
{
    if (bytes <= region->committed)
        return HL_OK;
    if (!region->stable)
        /* Doubling: a remap may have to copy page tables. */
        return move(region, round_up(bytes > 2 * region->committed ? bytes : 2 * region->committed, hl_os_page()));
    if (bytes > region->reserved)
        return HL_FULL;
    size_t step = region->committed / 8;
    step = step < SMALLEST_STEP ? SMALLEST_STEP : step > LARGEST_STEP ? LARGEST_STEP : step;
    size_t target = round_up(bytes > region->committed + step ? bytes : region->committed + step, hl_os_page());
    if (target > region->reserved)
        target = region->reserved;
    if (!hl_os_commit(region->base + region->committed, target - region->committed))
        return HL_NO_MEMORY;
    region->committed = target;
    return HL_OK;
}
