/* resolve.h: find the location of a frame and the site of a stack. This is the slow path, for what we see for the first
 * time.
 *
 * Threading: hold the ledger's lock. The frames must be the calling thread's own (frames.h).
 */
#ifndef HL_RESOLVE_H
#define HL_RESOLVE_H

#include "../core/ledger.h"
#include "shadow.h"

/* The location (borrowed) of a complete frame whose instruction is not known yet. Afterwards it is known. */
hl_status hl_resolve_location(hl_ledger *ledger, const void *frame, hl_location_id *location) HL_MUST_USE;
/* The site of a key that was made from the shadow's window. 0: no memory. */
hl_site_id hl_resolve_site(hl_ledger *ledger, hl_shadow *shadow, const hl_key *key);
/* The site of an allocation by a thread without a Python frame: "<unknown>", line 0, as in the standard library. 0: no
 * memory. */
hl_site_id hl_resolve_unknown(hl_ledger *ledger, uint64_t size, uint32_t domain);

#endif
