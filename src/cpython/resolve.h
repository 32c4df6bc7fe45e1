/* resolve.h: from a frame to its location, and from a stack to its site: the slow ways, for what is met the first time.
 *
 * Threading: the ledger's lock is held; the frames are the calling thread's own (frames.h).
 */
#ifndef HL_RESOLVE_H
#define HL_RESOLVE_H

#include "../core/ledger.h"
#include "shadow.h"

/* The location of a complete frame whose instruction is not known yet; it is from then on. Borrowed. */
hl_status hl_resolve_location(hl_ledger *ledger, const void *frame, hl_location_id *location) HL_MUST_USE;
/* The site of a key made of the shadow's window. 0 when there is no memory. */
hl_site_id hl_resolve_site(hl_ledger *ledger, hl_shadow *shadow, const hl_key *key);
/* The site of an allocation by a thread without a Python frame: "<unknown>", line 0, as in the stdlib. 0 when there is
 * no memory. */
hl_site_id hl_resolve_unknown(hl_ledger *ledger, uint64_t size, uint32_t domain);

#endif
