/* resolve.h: from the frames of the calling thread to a site: the slow way, taken when the cache does not know.
 *
 * Threading: the ledger's lock is held; the frames are the calling thread's own (frames.h).
 */
#ifndef HL_RESOLVE_H
#define HL_RESOLVE_H

#include "../core/ledger.h"
#include "shadow.h"

/* The site of a block of `size` bytes allocated in the shadow's newest frame; without one it is "<unknown>", line 0, as in
 * the stdlib. 0 when there is no memory. */
hl_site_id hl_resolve_site(hl_ledger *ledger, hl_shadow *shadow, uint64_t size, uint32_t domain);

#endif
