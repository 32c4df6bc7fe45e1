/* region.h: an array that grows, in pages of its own.
 *
 * A stable region reserves its addresses up front and obtains memory as it grows, so its elements never move: readers
 * need no lock. Where the system refuses the reservation (ulimit -v, strict overcommit) a smaller one is made and the
 * region is full earlier. A movable region reserves nothing and is remapped when it grows.
 *
 * Threading: none of its own; the owner's lock covers growth.
 */
#ifndef HL_REGION_H
#define HL_REGION_H

#include "os.h"

typedef struct {
    char *base;
    size_t reserved;  /* bytes of addresses; equal to `committed` in a movable region */
    size_t committed; /* bytes of memory, zeroed when new */
    bool stable;
} hl_region;

/* `most` bytes at the most, `least` at the least (stable only). */
hl_status hl_region_open(hl_region *region, size_t most, size_t least, bool stable) HL_MUST_USE;
void hl_region_close(hl_region *region);
/* Make the first `bytes` bytes usable. HL_FULL past the reservation. */
hl_status hl_region_grow(hl_region *region, size_t bytes) HL_MUST_USE;

static inline hl_status hl_region_ensure(hl_region *region, size_t bytes)
{
    return HL_LIKELY(bytes <= region->committed) ? HL_OK : hl_region_grow(region, bytes);
}

#endif
