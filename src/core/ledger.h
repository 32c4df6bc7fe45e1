/* ledger.h: address -> site, the sites, the totals: everything behind one lock.
 *
 * Invariants, checked by hl_ledger_validate:
 *   - the live counts of all sites add up to the occupied slots of the map, plus the entries of the side table, plus
 *     the blocks in transit (being reallocated at this moment);
 *   - live x size over all sites that are not hidden = traced;
 *   - the counts saved for the peak x size = peak.
 *
 * The peak of the fields below is that of the running stretch: since start, clear, reset_peak or the opening of the
 * last window. What was higher before is kept as a snapshot, for the program and for each window (window.h).
 *
 * Threading: every function needs the ledger's lock unless it says otherwise, and none calls out of the core while
 * holding it. The lock protects all fields; `clear_count` counts how often all entries were forgotten, so that whoever
 * gave the lock up in between (a reallocation) can tell that what it remembers is void.
 */
#ifndef HL_LEDGER_H
#define HL_LEDGER_H

#include "cache.h"
#include "codes.h"
#include "map.h"
#include "snapshot.h"
#include "spots.h"

typedef struct hl_window hl_window;

/* Sites that died when memory was freed are reclaimed also if no new ones are made: see hl_ledger_leave. */
typedef struct {
    uint64_t traced; /* the most since the hand was last sent round, as far as was looked */
    uint64_t peak;   /* when it was last sent round */
    uint32_t steps;  /* that are left */
    uint32_t reclaimed;
    bool idly; /* it found next to nothing */
    bool anew; /* it has to go round in any case */
} hl_tidying;

typedef struct {
    hl_names *names;
    hl_map map;
    hl_table side; /* what the map does not take: other domains, odd addresses */
    hl_sites sites;
    hl_codes codes;
    hl_cache cache;
    hl_spots spots;
    hl_site_id old_code; /* the hidden site of code objects older than the ledger */
    uint32_t nframe;
    uint32_t clear_count;
    hl_origins origins; /* whose blocks these are; sites.origin is the last of them */
    uint64_t peak;
    int64_t below_peak;  /* how far traced memory is below it now: see hl_ledger_traced */
    uint64_t peak_epoch; /* grows with every new peak: see sites.h */
    uint64_t in_transit;
    uint64_t lost;             /* allocations that could not be entered */
    hl_snapshot *earlier_peak; /* the program's peak in stretches before this one; NULL: there is none */
    hl_window *windows;        /* those that are open */
    hl_snapshot *dropped;      /* snapshots to be freed by whoever gives the lock back, afterwards */
    hl_tidying tidying;
} hl_ledger;

/* A ledger that is closed: no block is found in it. */
#define HL_LEDGER_CLOSED .map = HL_MAP_CLOSED

/* No lock needed: nobody else has the ledger yet, or any more. `clear_count`: how often entries were forgotten before;
 * a closed ledger may be closed again. */
hl_status hl_ledger_open(hl_ledger *ledger, uint32_t nframe, uint32_t clear_count) HL_MUST_USE;
void hl_ledger_close(hl_ledger *ledger);
/* Forget all entries and count one more clear, in place, if nobody else holds the name table and there is little to
 * forget. False: the caller has to put another ledger in its place. Windows stay as they are (see
 * hl_window_restart_all). */
bool hl_ledger_clear(hl_ledger *ledger) HL_MUST_USE;

/* The site for a key, if it is cached; else 0. */
HL_INLINE hl_site_id hl_ledger_cached(hl_ledger *ledger, const hl_key *key);
/* The site of a key by search, made if need be, and cached from then on. 0: no memory. A new stack has a total of 0
 * until the caller sets it. */
hl_site_id hl_ledger_site(hl_ledger *ledger, const hl_key *key);

/* Blocks like those of `site` are allocated at `instruction` of the frame that the program is in, and no spot has known
 * it. */
void hl_ledger_remember(hl_ledger *ledger, uintptr_t instruction, hl_site_id site);

/* Something has no room left. Reclaim some dead sites, with what only they name; false: none was found. The caller must
 * not go on using the id of a site that has no block. */
bool hl_ledger_make_room(hl_ledger *ledger);

/* The hidden site of the tracer's own blocks of `size` bytes. They are in the ledger, because a freelist may hand them
 * to the program later, but in no total and no snapshot. 0: no memory. */
hl_site_id hl_ledger_own_site(hl_ledger *ledger, uint64_t size);

/* Enter a block under a site; `site` 0 counts a lost record. Whatever stood at the address is closed first. */
void hl_ledger_enter(hl_ledger *ledger, uintptr_t address, uint64_t size, uint32_t domain, hl_site_id site);
/* The same in domain 0, under a site of this size, where nothing need be made ready or closed for it. False: nothing
 * has changed. So it is for every hidden site. */
HL_INLINE bool hl_ledger_enter_quickly(hl_ledger *ledger, uintptr_t address, hl_site_id site, uint64_t size);
/* Remove a block. False when it is not entered. This is the rare way out (the last block of a page takes it, among
 * others), so it also tidies up a little: after traced memory has fallen by a quarter, or the peak has moved by as
 * much, it lets the hand of the sites go round, a few steps with each call. */
bool hl_ledger_leave(hl_ledger *ledger, uintptr_t address, uint32_t domain);
/* The same in domain 0 where there is nothing else to be done, or no block. False: nothing has changed, and there may
 * be something to be done. */
HL_INLINE bool hl_ledger_leave_quickly(hl_ledger *ledger, uintptr_t address);
/* The same for a block of domain 0 that should not have been entered: it counts neither as allocated nor as freed. */
void hl_ledger_disown(hl_ledger *ledger, uintptr_t address);
/* The site of a block, 0 when it is not entered; it may be hidden. */
hl_site_id hl_ledger_find(const hl_ledger *ledger, uintptr_t address, uint32_t domain);

/* Reallocation, in two steps, with the lock given up in between: take the block off its address but leave it in the
 * totals; then either put it back or let it go. The second step is void if ledger->clear_count has changed. */
hl_site_id hl_ledger_detach(hl_ledger *ledger, uintptr_t address);
void hl_ledger_reattach(hl_ledger *ledger, uintptr_t address, hl_site_id site);
void hl_ledger_let_go(hl_ledger *ledger, hl_site_id site);

/* The code object at `address` was seen running: make sure that we notice when its block is freed. */
hl_status hl_ledger_watch_code(hl_ledger *ledger, uintptr_t address) HL_MUST_USE;

/* The process has forked: the parent goes on, and the child, with a copy, under a name of its own. What the child
 * enters from now on has sites of its own, so that what it inherited can be told apart when their snapshots are
 * merged. */
void hl_ledger_forked(hl_ledger *ledger);
void hl_ledger_inherit(hl_ledger *ledger);

/* Begin a new stretch: its peak is what is traced now. Who is to keep the old one's is window.h's matter. */
void hl_ledger_reset_peak(hl_ledger *ledger);
/* The program's peak in bytes: of this stretch or an earlier one. */
uint64_t hl_ledger_peak(const hl_ledger *ledger);
/* The snapshot of it if it was in an earlier stretch; else NULL. */
const hl_snapshot *hl_ledger_kept_peak(const hl_ledger *ledger);
/* How many blocks snapshots show now. Costs a pass over the sites. */
uint64_t hl_ledger_live_blocks(const hl_ledger *ledger);
/* What was ever entered, reclaimed sites included. Costs a pass over the sites. */
void hl_ledger_allocated(const hl_ledger *ledger, uint64_t *bytes, uint64_t *blocks);
/* Copy the sites that have blocks at the moment asked for into a snapshot with room for all sites. HL_FULL if the room
 * does not suffice (hl_ledger_rows). The peak is the program's. */
size_t hl_ledger_rows(const hl_ledger *ledger);
hl_status hl_ledger_fill(hl_ledger *ledger, hl_moment moment, hl_snapshot *snapshot, size_t room) HL_MUST_USE;
/* The same for the peak of this stretch. */
hl_status hl_ledger_fill_stretch(hl_ledger *ledger, hl_snapshot *snapshot, size_t room) HL_MUST_USE;
/* The same with what the sites have, alive or allocated, in excess of what they had: `before` has the counts of the
 * ids below `known`. */
typedef struct {
    uint64_t live;
    uint64_t allocated;
    uint32_t reuse_count; /* another one now: the site was reclaimed, and this is a new one that starts from nothing */
} hl_site_counts;
hl_status hl_ledger_fill_growth(hl_ledger *ledger, hl_moment moment, const hl_site_counts *before, hl_site_id known,
                                hl_snapshot *snapshot, size_t room) HL_MUST_USE;
/* Copy a snapshot of this ledger into another with enough room. */
hl_status hl_ledger_fill_again(hl_ledger *ledger, const hl_snapshot *from, hl_snapshot *snapshot,
                               size_t room) HL_MUST_USE;
/* The rows of this stretch without a snapshot, one after the other: see rows.h. */
bool hl_ledger_next_row(const hl_ledger *ledger, hl_moment moment, size_t *at, hl_row *row);
hl_status hl_ledger_fill_one(hl_ledger *ledger, hl_site_id site, hl_snapshot *snapshot) HL_MUST_USE;

/* NULL, or which invariant does not hold. Costs a pass over all blocks. */
const char *hl_ledger_validate(const hl_ledger *ledger);

/* What follows is the path of every allocation, here so that the hooks can have it inline. */

/* A program that does the same again looks for the same sites in the same order. Sites that were made one after the
 * other lie side by side, so following that order is faster than the cache once its places are far away. 0: it does not
 * hold. */
static inline hl_site_id hl_ledger_guess(hl_ledger *ledger, const hl_key *key)
{
    hl_cache *cache = &ledger->cache;
    hl_site_id id = hl_sites_at(&ledger->sites, cache->last)->next;
    const hl_site *site = hl_sites_at(&ledger->sites, id);
    if (site->size != key->size || site->domain != key->domain || site->origin != ledger->sites.origin)
        return 0;
    if (cache->stack_version != key->stack_version) {
        const hl_stack *stack = hl_names_get_stack(ledger->names, site->stack);
        if (stack->depth != key->depth ||
            memcmp(stack->locations, key->locations, key->depth * sizeof *key->locations) != 0)
            return 0;
        cache->stack_version = key->stack_version;
        cache->stack = site->stack;
    } else if (cache->stack != site->stack) {
        return 0;
    }
    cache->last = id;
    return id;
}

/* What was found, for the next guess. */
static inline void hl_ledger_note(hl_ledger *ledger, const hl_key *key, hl_site_id id)
{
    hl_cache *cache = &ledger->cache;
    hl_sites_at(&ledger->sites, cache->last)->next = id;
    cache->last = id;
    cache->stack_version = key->stack_version;
    cache->stack = hl_sites_at(&ledger->sites, id)->stack;
}

HL_INLINE hl_site_id hl_ledger_cached(hl_ledger *ledger, const hl_key *key)
{
    if (HL_UNLIKELY(ledger->cache.far)) {
        hl_site_id guess = hl_ledger_guess(ledger, key);
        if (guess != 0)
            return guess;
    }
    const hl_cache_entry *entry = hl_cache_find(&ledger->cache, &ledger->sites, key);
    if (HL_UNLIKELY(entry == NULL))
        return 0;
    if (HL_UNLIKELY(ledger->cache.far))
        hl_ledger_note(ledger, key, entry->site);
    return entry->site;
}

/* Bytes in blocks that count. Keeping the distance to the peak instead makes one subtraction of adding a block,
 * comparing with the peak and seeing a new one. */
static inline uint64_t hl_ledger_traced(const hl_ledger *ledger)
{
    return ledger->peak - (uint64_t)ledger->below_peak;
}

/* A block more, of `size` bytes, under a site that is not hidden. */
static inline void hl_ledger_count_in(hl_ledger *ledger, hl_site *site, uint64_t size)
{
    hl_site_save(site, ledger->peak_epoch);
    site->allocated++;
    ledger->below_peak -= (int64_t)size;
    if (HL_UNLIKELY(ledger->below_peak < 0)) {
        HL_APART;
        ledger->peak -= (uint64_t)ledger->below_peak;
        ledger->below_peak = 0;
        ledger->peak_epoch += HL_EPOCH_STEP;
    }
}

/* A block less. */
static inline void hl_ledger_count_out(hl_ledger *ledger, hl_site *site)
{
    site->freed++;
    ledger->below_peak += (int64_t)site->size;
}

HL_INLINE bool hl_ledger_enter_quickly(hl_ledger *ledger, uintptr_t address, hl_site_id id, uint64_t size)
{
    hl_site *site = hl_sites_at(&ledger->sites, id);
    if (HL_UNLIKELY(!hl_map_put_quickly(&ledger->map, address, site->cut, id)))
        return false;
    hl_ledger_count_in(ledger, site, size);
    return true;
}

HL_INLINE bool hl_ledger_leave_quickly(hl_ledger *ledger, uintptr_t address)
{
    hl_map_place place;
    if (HL_UNLIKELY(!hl_map_look(&ledger->map, address, &place)))
        return false;
    hl_site *site = hl_sites_at(&ledger->sites, place.site);
    if (HL_UNLIKELY(site->peak_epoch != ledger->peak_epoch)) {
        HL_APART;
        if (!(site->is & HL_SITE_IN_USE)) /* that of no block */
            return true;
        if (hl_site_is_apart(site))
            return false;
        hl_site_save(site, ledger->peak_epoch);
    }
    hl_map_take_from(&place);
    hl_ledger_count_out(ledger, site);
    return true;
}

#endif
