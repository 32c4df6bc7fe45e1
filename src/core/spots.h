/* spots.h: find the site by the program's place and a size, in one lookup.
 *
 * A spot knows the site of blocks of one size that one instruction allocates in one context. A context is a number for
 * the callers of a frame, each at its instruction. Equal numbers mean equal callers. So if such blocks were allocated
 * at a place before, we need neither the callers' locations nor a hash of them.
 *
 *     context of a frame + its instruction                   ->  context of the frame that it calls there   (calls)
 *     context of a frame + its instruction + size of a block ->  site                                       (spots)
 *
 * In both tables, a new entry replaces the old one in its place. If a call was replaced and comes again, it gets a new
 * number. Numbers are not reused, so the old number finds nothing any more. The context `root` belongs to frames
 * without a caller. With a frame limit of 1, it belongs to every frame.
 *
 * When a code object dies, its instructions may come back with another meaning. Then `root` becomes another number, and
 * code that keeps contexts (shadow.h) must find them again. A spot is also void when its site was reclaimed
 * (`reuse_count`).
 *
 * The tables grow under two conditions: there are more sites than places, and the program often looks for sites that a
 * larger table would have known. Most programs make most of their sites during imports, and never look for them again.
 * Larger tables begin empty, because moving all entries at once would cause a pause. When most sites are gone, smaller
 * tables replace them, which also begin empty.
 *
 * Threading: needs the ledger's lock.
 */
#ifndef HL_SPOTS_H
#define HL_SPOTS_H

#include "sites.h"

typedef uint32_t hl_context; /* 0: none */

typedef struct {
    uintptr_t instruction;
    hl_context from; /* the context of the calling frame */
    hl_context to;   /* the context of the called frame; 0: an empty place */
} hl_call;

typedef struct {
    _Alignas(32) uint64_t key; /* instruction and size: see hl_spots_key. A spot is half a cache line */
    uint64_t stamp;            /* the context in the upper half, the site's reuse count in the lower half */
    hl_site_id site;           /* 0: an empty place */
} hl_spot;

typedef struct {
    hl_spot *spots;
    hl_call *calls;   /* the same number of places; NULL: the frame limit is 1 */
    uint64_t callers; /* upper half: the context of the frame that the program is in */
    uint64_t mask;    /* a hash (hl_spots_hash) & mask is the offset of a spot, in bytes */
    uint32_t missed;  /* how often no spot knew an old site, minus new sites, at this table size */
    hl_context root;
    hl_context last_context; /* the last number that was assigned */
} hl_spots;

/* `alone`: the frame limit is 1. */
hl_status hl_spots_open(hl_spots *spots, bool alone) HL_MUST_USE;
void hl_spots_close(hl_spots *spots);
/* Forget all spots and calls. Contexts stay valid. */
void hl_spots_clear(hl_spots *spots);
size_t hl_spots_memory(const hl_spots *spots);

/* Call this when no spot knew one of `sites` sites. Grows the tables if it is time and there is memory. A new site
 * counts against growth, because more places would not help. */
void hl_spots_miss(hl_spots *spots, size_t sites, bool is_new);
/* Only `sites` sites are left. Give back memory that they do not need. */
void hl_spots_shrink(hl_spots *spots, size_t sites);

/* Call this when a code object has died. */
void hl_spots_void(hl_spots *spots);

/* Begin with the first number again if numbers are about to run out. Call this before you look up contexts. True:
 * contexts that you keep are void. */
bool hl_spots_begin_again(hl_spots *spots);

/* The upper bits of a product are the place of a spot. */
enum { HL_SPOTS_HASH_SHIFT = 45 };
static inline uint64_t hl_spots_hash(uint64_t key)
{
    return key * 0x9e3779b97f4a7c15u >> HL_SPOTS_HASH_SHIFT;
}

/* Tell the spots the context of the frame that the program is in now. */
static inline void hl_spots_set_callers(hl_spots *spots, hl_context context)
{
    spots->callers = (uint64_t)context << 32;
}

/* The context of the frame that a frame calls at `instruction`. `from` is the context of the calling frame. */
static inline hl_context hl_spots_call(hl_spots *spots, hl_context from, uintptr_t instruction)
{
    uint64_t hash = hl_spots_hash(instruction + ((uint64_t)from << 32));
    hl_call *call = spots->calls + (hash & spots->mask) / sizeof(hl_spot);
    if (HL_UNLIKELY(call->instruction != instruction || call->from != from))
        *call = (hl_call){.instruction = instruction, .from = from, .to = ++spots->last_context};
    return call->to;
}

/* For blocks of one size, no two instructions have the same key, because an address has 48 bits. */
static inline uint64_t hl_spots_key(uintptr_t instruction, uint64_t size)
{
    return instruction + (size << 48);
}

static inline hl_spot *hl_spots_place(const hl_spots *spots, uint64_t key)
{
    return (hl_spot *)(void *)((char *)spots->spots + (hl_spots_hash(key + spots->callers) & spots->mask));
}

/* The site of a block of `size` bytes that is allocated at `instruction` of the frame that the program is in. 0: not
 * known. */
HL_INLINE hl_site_id hl_spots_find(const hl_spots *spots, const hl_sites *sites, uintptr_t instruction, uint64_t size)
{
    uint64_t key = hl_spots_key(instruction, size);
    const hl_spot *spot = hl_spots_place(spots, key);
    if (HL_UNLIKELY(spot->key != key))
        return 0;
    const hl_site *site = hl_sites_at(sites, spot->site);
    if (HL_UNLIKELY(site->size != size || spot->stamp != (spots->callers | site->reuse_count)))
        return 0;
    if (spot->site == 0)
        __builtin_unreachable(); /* so that the compiler drops later checks for 0 */
    return spot->site;
}

static inline void hl_spots_put(hl_spots *spots, const hl_sites *sites, uintptr_t instruction, uint64_t size,
                                hl_site_id site)
{
    uint64_t key = hl_spots_key(instruction, size);
    *hl_spots_place(spots, key) =
        (hl_spot){.key = key, .stamp = spots->callers | hl_sites_at(sites, site)->reuse_count, .site = site};
}

#endif
