/* ledger.h: the map from addresses to sites, the sites and the totals, all behind one lock.
 *
 * Invariants, checked by hl_ledger_validate:
 *   - The live counts of all sites add up to the occupied slots of the map, plus the entries of the side table, plus
 *     the blocks in transit (those that are being reallocated now).
 *   - The sum of live x size over all sites that are not hidden is the traced memory.
 *   - The sum of the counts saved for the peak x size is the peak.
 *
 * The field `peak` is the peak of the running stretch. A stretch begins at start, clear, reset_peak or the opening of a
 * window. A higher peak from before is kept as a snapshot, for the program and for each window (window.h).
 *
 * Threading: every function needs the ledger's lock unless it says otherwise. None of them calls code outside the core
 * while it holds the lock. The lock protects all fields. `clear_count` counts how often all entries were forgotten.
 * Code that releases the lock in between (a reallocation) compares it to find out whether what it remembers is still
 * valid.
 */
#ifndef HL_LEDGER_H
#define HL_LEDGER_H

#include "cache.h"
#include "codes.h"
#include "map.h"
#include "snapshot.h"
#include "spots.h"

typedef struct hl_window hl_window;

/* When memory is freed, sites may die. They are reclaimed even if the program makes no new sites: see
 * hl_ledger_leave. */
typedef struct {
    uint64_t traced; /* the highest traced memory that was noticed since the hand's last round */
    uint64_t peak;   /* the peak at the hand's last round */
    uint32_t steps;  /* left in this round; 0: the hand rests */
    uint32_t reclaimed;
    bool idly; /* the last round reclaimed almost nothing */
    bool anew; /* a round is due in any case */
} hl_tidying;

typedef struct {
    hl_names *names;
    hl_map map;
    hl_table side; /* blocks that the map does not take: other domains, odd addresses */
    hl_sites sites;
    hl_codes codes;
    hl_cache cache;
    hl_spots spots;
    hl_site_id old_code; /* the hidden site of code objects older than the ledger */
    uint32_t nframe;
    uint32_t clear_count;
    hl_origins origins; /* which processes the blocks are from; sites.origin is the last of them */
    uint64_t peak;
    int64_t below_peak;  /* distance from the traced memory to the peak: see hl_ledger_traced */
    uint64_t peak_epoch; /* grows with every new peak: see sites.h */
    uint64_t in_transit;
    uint64_t lost;             /* allocations that could not be entered */
    hl_snapshot *earlier_peak; /* the program's highest peak in earlier stretches; NULL: none */
    hl_window *windows;        /* the open windows */
    hl_snapshot *dropped;      /* snapshots to free after the lock was released */
    hl_tidying tidying;
} hl_ledger;

/* A closed ledger. No block is found in it. */
#define HL_LEDGER_CLOSED .map = HL_MAP_CLOSED

/* These need no lock, because no other thread has the ledger yet, or any more. `clear_count`: how often entries were
 * forgotten before. You may close a closed ledger again. */
hl_status hl_ledger_open(hl_ledger *ledger, uint32_t nframe, uint32_t clear_count) HL_MUST_USE;
void hl_ledger_close(hl_ledger *ledger);
/* Forget all entries in place, and add one to `clear_count`. Works only if nothing else holds the name table and there
 * is little to forget. False: the caller has to replace the ledger with a new one. Windows stay as they are (see
 * hl_window_restart_all). */
bool hl_ledger_clear(hl_ledger *ledger) HL_MUST_USE;

/* The site for a key if it is cached, else 0. */
HL_INLINE hl_site_id hl_ledger_cached(hl_ledger *ledger, const hl_key *key);
/* Find the site of a key, or make it, and cache it. 0: no memory. A new stack has a total of 0 until the caller sets
 * it. */
hl_site_id hl_ledger_site(hl_ledger *ledger, const hl_key *key);

/* Remember that `instruction`, in the frame that the program is in, allocates blocks of `site`. Call this when no spot
 * knew it. */
void hl_ledger_remember(hl_ledger *ledger, uintptr_t instruction, hl_site_id site);

/* Call this when there is no room left for something. It reclaims some dead sites, and the names that only they use.
 * False: it found none. Afterwards, do not use the id of a site without blocks any more. */
bool hl_ledger_make_room(hl_ledger *ledger);

/* The hidden site of the tracer's own blocks of `size` bytes. They are in the ledger, because a freelist may hand them
 * to the program later. But no total and no snapshot includes them. 0: no memory. */
hl_site_id hl_ledger_own_site(hl_ledger *ledger, uint64_t size);

/* Enter a block under a site. If `site` is 0, the allocation counts as lost. An older block at the address leaves
 * first. */
void hl_ledger_enter(hl_ledger *ledger, uintptr_t address, uint64_t size, uint32_t domain, hl_site_id site);
/* Like hl_ledger_enter, in domain 0 and under a site of this size, if the map has a free slot that is ready. False:
 * nothing has changed. Always false for a hidden site. */
HL_INLINE bool hl_ledger_enter_quickly(hl_ledger *ledger, uintptr_t address, hl_site_id site, uint64_t size);
/* Remove a block. False: it is not in the ledger. This is the slow path. Among others, the last block of a page takes
 * it. So it also does a little clean-up work: after the traced memory has fallen by a quarter, or the peak has risen by
 * a quarter, each call moves the hand of the sites a few steps, until the round is complete. */
bool hl_ledger_leave(hl_ledger *ledger, uintptr_t address, uint32_t domain);
/* Like hl_ledger_leave, in domain 0, if counting is enough or there is no block. False: nothing has changed, and there
 * may be more to do. */
HL_INLINE bool hl_ledger_leave_quickly(hl_ledger *ledger, uintptr_t address);
/* Like hl_ledger_leave, for a block of domain 0 that should not have been entered. It counts neither as allocated nor
 * as freed. */
void hl_ledger_disown(hl_ledger *ledger, uintptr_t address);
/* The site of a block, which may be hidden. 0: the block is not in the ledger. */
hl_site_id hl_ledger_find(const hl_ledger *ledger, uintptr_t address, uint32_t domain);

/* Reallocation has two steps, and releases the lock in between. First, take the block off its address, but leave it in
 * the totals. Then put it back or let it go. Skip the second step if ledger->clear_count has changed. */
hl_site_id hl_ledger_detach(hl_ledger *ledger, uintptr_t address);
void hl_ledger_reattach(hl_ledger *ledger, uintptr_t address, hl_site_id site);
void hl_ledger_let_go(hl_ledger *ledger, hl_site_id site);

/* We saw the code object at `address` running. Make sure that we notice when its block is freed. */
hl_status hl_ledger_watch_code(hl_ledger *ledger, uintptr_t address) HL_MUST_USE;

/* The process has forked. The parent continues. The child has a copy of the ledger, and gets its own name. What the
 * child enters from now on has separate sites. So when snapshots of both are merged, we can tell apart what the child
 * inherited. */
void hl_ledger_forked(hl_ledger *ledger);
void hl_ledger_inherit(hl_ledger *ledger);

/* Begin a new stretch. Its peak is what is traced now. window.h decides who keeps the peak of the old stretch. */
void hl_ledger_reset_peak(hl_ledger *ledger);
/* The program's peak in bytes, in this stretch or an earlier one. */
uint64_t hl_ledger_peak(const hl_ledger *ledger);
/* The snapshot of the program's peak if it was in an earlier stretch, else NULL. */
const hl_snapshot *hl_ledger_kept_peak(const hl_ledger *ledger);
/* The number of blocks that snapshots show now. Costs a pass over the sites. */
uint64_t hl_ledger_live_blocks(const hl_ledger *ledger);
/* Everything that was ever entered, including reclaimed sites. Costs a pass over the sites. */
void hl_ledger_allocated(const hl_ledger *ledger, uint64_t *bytes, uint64_t *blocks);
/* Copy the sites that have blocks at `moment` into a snapshot with room for all sites. HL_FULL: the room is less than
 * hl_ledger_rows. The peak is the program's. */
size_t hl_ledger_rows(const hl_ledger *ledger);
hl_status hl_ledger_fill(hl_ledger *ledger, hl_moment moment, hl_snapshot *snapshot, size_t room) HL_MUST_USE;
/* Like hl_ledger_fill, for the peak of this stretch. */
hl_status hl_ledger_fill_stretch(hl_ledger *ledger, hl_snapshot *snapshot, size_t room) HL_MUST_USE;
/* Like hl_ledger_fill, but only what the sites have more than before, live or allocated. `before` has the earlier
 * counts of the ids below `known`. */
typedef struct {
    uint64_t live;
    uint64_t allocated;
    uint32_t reuse_count; /* if it differs now, the site was reclaimed, and the new one starts from zero */
} hl_site_counts;
hl_status hl_ledger_fill_growth(hl_ledger *ledger, hl_moment moment, const hl_site_counts *before, hl_site_id known,
                                hl_snapshot *snapshot, size_t room) HL_MUST_USE;
/* Copy a snapshot of this ledger into another one with enough room. */
hl_status hl_ledger_fill_again(hl_ledger *ledger, const hl_snapshot *from, hl_snapshot *snapshot,
                               size_t room) HL_MUST_USE;
/* Read the rows of this stretch one by one, without a snapshot: see rows.h. */
bool hl_ledger_next_row(const hl_ledger *ledger, hl_moment moment, size_t *at, hl_row *row);
hl_status hl_ledger_fill_one(hl_ledger *ledger, hl_site_id site, hl_snapshot *snapshot) HL_MUST_USE;

/* Returns NULL, or which invariant does not hold. Costs a pass over all blocks. */
const char *hl_ledger_validate(const hl_ledger *ledger);

/* The rest is the path of every allocation. It is in this header so that the hooks have it inline. */

/* A program that repeats its work looks for the same sites in the same order. Sites that were made one after the other
 * are neighbours in memory. So if the cache is too large for the processor's caches, following that order is faster
 * than a lookup. 0: the guess was wrong. */
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

/* Remember what was found, for the next guess. */
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

/* The bytes in all blocks that count. We keep the distance to the peak instead of this sum. So one subtraction adds a
 * block, compares with the peak, and detects a new peak. */
static inline uint64_t hl_ledger_traced(const hl_ledger *ledger)
{
    return ledger->peak - (uint64_t)ledger->below_peak;
}

/* Count one more block of `size` bytes, under a site that is not hidden. */
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

/* Count one block less. */
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
        if (!(site->is & HL_SITE_IN_USE)) /* site 0: there is no block */
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
