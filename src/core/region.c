/* region.c: see region.h. */

#include "region.h"

enum { SMALLEST = 16 << 10 };

static size_t whole_pages(size_t bytes)
{
    return (bytes + hl_os_page() - 1) / hl_os_page() * hl_os_page();
}

void hl_region_close(hl_region *region)
{
    if (region->base != NULL)
        hl_os_unmap(region->base, region->bytes);
    *region = (hl_region){0};
}

static bool resize(hl_region *region, size_t bytes)
{
    bytes = whole_pages(bytes);
    void *pages = region->base == NULL ? hl_os_map(bytes) : hl_os_remap(region->base, region->bytes, bytes);
    if (pages == NULL)
        return false;
    *region = (hl_region){.base = pages, .bytes = bytes};
    return true;
}

hl_status hl_region_grow(hl_region *region, size_t bytes)
{
    if (bytes <= region->bytes)
        return HL_OK;
    size_t ample = region->bytes + region->bytes / 4;
    ample = ample < SMALLEST ? SMALLEST : ample;
    if (bytes < ample && resize(region, ample))
        return HL_OK;
    return resize(region, bytes) ? HL_OK : HL_NO_MEMORY;
}

void hl_region_shrink(hl_region *region, size_t bytes)
{
    if (region->bytes > SMALLEST && bytes < region->bytes / 4)
        (void)resize(region, bytes < SMALLEST / 2 ? SMALLEST : 2 * bytes);
}
