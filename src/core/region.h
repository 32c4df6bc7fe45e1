/* region.h: an array that grows, in pages of its own, and moves when it grows.
 *
 * A region of zeros is empty. It reserves addresses for what it holds and a quarter more, so that a program that
 * limits its address space (RLIMIT_AS) keeps the rest. Memory is used from the first touch of a page. Growing moves
 * page tables, not bytes.
 *
 * Nobody may keep an address in a region across a call that lets it grow. What must not move is in segments
 * (index.h).
 *
 * Threading: none of its own; the owner's lock.
 */
#ifndef HL_REGION_H
#define HL_REGION_H

#include "os.h"

typedef struct {
    char *base;
    size_t bytes; /* of addresses, zeroed when new */
} hl_region;

void hl_region_close(hl_region *region);
/* Make the first `bytes` bytes usable. */
hl_status hl_region_grow(hl_region *region, size_t bytes) HL_MUST_USE;
/* Give back the memory beyond the first `bytes` bytes, if that is much. */
void hl_region_shrink(hl_region *region, size_t bytes);

static inline hl_status hl_region_ensure(hl_region *region, size_t bytes)
{
    return HL_LIKELY(bytes <= region->bytes) ? HL_OK : hl_region_grow(region, bytes);
}

#endif
