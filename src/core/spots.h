/* spots.h: from where the program is and a size to the site, at one look.
 *
 * A spot knows the site of blocks of one size that one instruction allocates in one context. A context is a number for
 * the callers of a frame, each at its instruction. Equal numbers mean equal callers. So blocks that are allocated where
 * such blocks were allocated before need neither the callers' locations nor a hash of them.
 *
 *     context of a frame + its instruction                   ->  context of the frame that it calls there   (calls)
 *     context of a frame + its instruction + size of a block ->  site                                       (spots)
 *
 * Both are tables in which a newcomer drives out what was in its place. A call that was driven out gets a new number
 * when it comes again. Numbers are not reused, so nothing is found by the old one any more. A frame without a caller,
 * and every frame with a frame limit of 1, has the context `root`.
 *
 * When a code object dies, its instructions may come back with another meaning. Then `root` becomes another number, and
 * whoever keeps contexts (shadow.h) must find them again. A spot is also void when its site was reclaimed
 * (`reuse_count`).
 *
 * The tables grow if there are more sites than places and sites are often looked for by other ways that a spot could
 * have known. Most programs have their sites from imports, and never ask again. Larger tables begin empty: moving
 * everything at once would be a pause. Smaller ones, when most sites are gone, begin empty too.
 *
 * Threading: the ledger's lock.
 */
#ifndef HL_SPOTS_H
#define HL_SPOTS_H

#include "sites.h"

typedef uint32_t hl_context; /* 0: none */

typedef struct {
    uintptr_t instruction;
    hl_context from; /* the callers of the frame that calls */
    hl_context to;   /* the callers of the frame that is called; 0: an empty place */
} hl_call;

typedef struct {
    _Alignas(32) uint64_t key; /* of instruction and size: see hl_spots_key. A spot is half a cache line */
    uint64_t stamp;            /* the context in the upper half, the site's reuse count in the lower */
    hl_site_id site;           /* 0: an empty place */
} hl_spot;

typedef struct {
    hl_spot *spots;
    hl_call *calls;   /* as many; NULL: the frame limit is 1 */
    uint64_t callers; /* the context of the frame that the program is in, in the upper half */
    uint64_t mask;    /* what it leaves of a hash (hl_spots_hash) is where a spot is, in bytes */
    uint32_t missed;  /* how often a site was there and no spot knew it, less the new ones, in tables of this size */
    hl_context root;
    hl_context last_context; /* the last number that was given */
} hl_spots;

/* `alone`: the frame limit is 1. */
hl_status hl_spots_open(hl_spots *spots, bool alone) HL_MUST_USE;
void hl_spots_close(hl_spots *spots);
/* Forget all spots and calls. Contexts stay what they are. */
void hl_spots_clear(hl_spots *spots);
size_t hl_spots_memory(const hl_spots *spots);

/* No spot knew one of `sites` sites: grow if it is time, as far as memory can be had. A new site counts against it:
 * more places would not help. */
void hl_spots_miss(hl_spots *spots, size_t sites, bool is_new);
/* There are only `sites` sites any more: give memory back that is too much for them. */
void hl_spots_shrink(hl_spots *spots, size_t sites);

/* A code object has died. */
void hl_spots_void(hl_spots *spots);

/* Numbers are about to run out: then begin with the first again. To be asked before contexts are found; true: those
 * that somebody keeps are void. */
bool hl_spots_begin_again(hl_spots *spots);

/* The upper bits of a product say where a spot is. */
enum { HL_SPOTS_HASH_SHIFT = 45 };
static inline uint64_t hl_spots_hash(uint64_t key)
{
    return key * 0x9e3779b97f4a7c15u >> HL_SPOTS_HASH_SHIFT;
}

/* The program is in a frame with this context now. */
static inline void hl_spots_set_callers(hl_spots *spots, hl_context context)
{
    spots->callers = (uint64_t)context << 32;
}

/* The context of what a frame calls at `instruction`; `from` is its own. */
static inline hl_context hl_spots_call(hl_spots *spots, hl_context from, uintptr_t instruction)
{
    uint64_t hash = hl_spots_hash(instruction + ((uint64_t)from << 32));
    hl_call *call = spots->calls + (hash & spots->mask) / sizeof(hl_spot);
    if (HL_UNLIKELY(call->instruction != instruction || call->from != from))
        *call = (hl_call){.instruction = instruction, .from = from, .to = ++spots->last_context};
    return call->to;
}

/* Of blocks of one size, no two instructions have the same key: an address has 48 bits. */
static inline uint64_t hl_spots_key(uintptr_t instruction, uint64_t size)
{
    return instruction + (size << 48);
}

static inline hl_spot *hl_spots_place(const hl_spots *spots, uint64_t key)
{
    return (hl_spot *)(void *)((char *)spots->spots + (hl_spots_hash(key + spots->callers) & spots->mask));
}

/* The site of a block of `size` bytes allocated at `instruction` of the frame that the program is in. 0: not known. */
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
        __builtin_unreachable(); /* so that nobody asks again */
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
