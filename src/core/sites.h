/* sites.h: what blocks are entered under: (stack, size, domain, origin), with its counters.
 *
 * A site is one cache line. Its counts for the peak are kept without a log: the ledger's peak epoch grows whenever a
 * new peak is reached (at that instant the count of every site's blocks alive is the peak's); the first change of a
 * site in a peak epoch saves the count it had. So the peak's count is `saved` if the site changed in this peak epoch,
 * else that of now. Epochs are even numbers. A site whose blocks take more than counting when they leave
 * (hl_site_is_apart) keeps the odd one that follows. So one comparison tells whether there is nothing to do but to
 * count.
 *
 * A site with no live block that the peak does not need either is dead. Dead sites are reclaimed by a hand that goes
 * round the table a few steps whenever a site is made (and when the ledger says so): no pause, and a program that makes
 * no new sites pays nothing. A dead site that was used since the hand last came by gets a second chance, so temporaries
 * keep theirs.
 *
 * As long as there are few sites nothing is reclaimed. How many are few follows the program: a site that is made anew
 * soon after it was reclaimed should have stayed, and a round of the hand with many such sites doubles the bound, one
 * with hardly any halves it. Where the greatest bound does not help either, the smallest holds for a while. Reclaimed
 * sites are remembered by a mark of a byte each, in the one place their hash gives them.
 *
 * Threading: the ledger's lock.
 */
#ifndef HL_SITES_H
#define HL_SITES_H

#include "map.h"
#include "names.h"

typedef uint32_t hl_site_id;

/* How many sites are few, at least and at most; and while somebody counts what is allocated from one moment to another
 * (window.h), for whom the counts of a reclaimed site are missing. */
enum { HL_FEW_SITES = 1 << 12, HL_MOST_FEW_SITES = 1 << 16, HL_FEW_COUNTED_SITES = 1 << 18 };

/* How far the hand goes for each new site. It comes by a dead site twice before it takes it, so with few steps more
 * than a third of the sites are dead ones: room for temporaries that a program makes on many stacks again and again,
 * and that would lose their sites before they come back to them. With a frame limit of 1 they are at few places. */
enum { HL_HAND_STEPS = 4, HL_HAND_STEPS_AT_ONE_FRAME = 16 };

enum { HL_EPOCH_STEP = 2 };

/* What a site is; bits, so that several are asked at once. */
enum {
    HL_SITE_IN_USE = 1,
    HL_SITE_HIDDEN = 2,     /* its blocks do not count: the tracer's own work, code objects older than the ledger */
    HL_SITE_HOLDS_CODE = 4, /* some block may be a code object that hl_codes knows */
};

typedef struct {
    uint64_t size;       /* bytes of each block */
    uint64_t allocated;  /* blocks entered since start */
    uint64_t freed;      /* how many of them have left: see hl_site_live */
    uint64_t saved;      /* blocks alive when the peak epoch's first change came */
    uint64_t peak_epoch; /* of `saved`; odd: the site is apart */
    uint32_t seen;       /* `allocated` when the hand last came by, in its lower half */
    uint32_t next;       /* the site that was looked for after this one, the last time; 0: not known */
    hl_stack_id stack;   /* 0: a hidden site, in no snapshot */
    uint32_t domain;
    uint32_t reuse_count; /* how often this id was reclaimed: see index.h. A cache remembers it with the id */
    hl_map_cut cut;       /* that its blocks' pages need at least; HL_MAP_TOO_FINE: the site is hidden */
    uint8_t origin;       /* whose ledger made it: an index into the ledger's origins */
    uint8_t is;           /* HL_SITE_IN_USE and others */
} hl_site;

_Static_assert(sizeof(hl_site) == 64, "a site is one cache line");

typedef struct {
    hl_table table;
    hl_site_id hand;
    uint32_t few;            /* up to this number the hand rests: the bound, or HL_FEW_COUNTED_SITES */
    uint32_t bound;          /* follows the program */
    uint32_t steps;          /* of the hand for each new site */
    uint32_t made;           /* sites, in this round of the hand */
    uint32_t reborn;         /* those of them that were reclaimed lately */
    uint32_t idle_rounds;    /* rounds for which the bound does not follow */
    uint8_t *marks;          /* of sites that were reclaimed lately; NULL: none was */
    bool counted;            /* somebody counts */
    uint8_t origin;          /* of the sites that are made now: those of another origin are not found any more */
    uint64_t retired_blocks; /* allocated, over reclaimed sites */
    uint64_t retired_bytes;
} hl_sites;

void hl_sites_open(hl_sites *sites, uint32_t most, uint32_t steps);
void hl_sites_close(hl_sites *sites);
/* Forget them all; whether somebody counts stays. */
void hl_sites_clear(hl_sites *sites);
size_t hl_sites_memory(const hl_sites *sites);
/* From now on somebody counts, or nobody does any more. */
void hl_sites_count(hl_sites *sites, bool counted);

static inline hl_site *hl_sites_at(const hl_sites *sites, hl_site_id id)
{
    return (hl_site *)(void *)sites->table.items.base + id; /* the same as hl_table_at, with a size known here */
}

/* The site of (stack, size, domain), made if there is none. Takes over the caller's reference to the stack, whatever
 * the answer. `peak_epoch` is the ledger's. */
hl_status hl_sites_intern(hl_sites *sites, hl_names *names, hl_stack_id stack, uint64_t size, uint32_t domain,
                          uint64_t peak_epoch, hl_site_id *id) HL_MUST_USE;

/* Move the hand, and return how many sites, or stacks of such, were reclaimed. `pressed`: there is no room left for
 * something, so neither do few sites stay nor those that were used lately. */
uint32_t hl_sites_sweep(hl_sites *sites, hl_names *names, uint64_t peak_epoch, uint32_t steps, bool pressed);

/* In a snapshot, if it has blocks. */
static inline bool hl_site_is_shown(const hl_site *site)
{
    return (site->is & (HL_SITE_IN_USE | HL_SITE_HIDDEN)) == HL_SITE_IN_USE;
}

/* Blocks alive. */
static inline uint64_t hl_site_live(const hl_site *site)
{
    return site->allocated - site->freed;
}

/* What the site held at the peak. */
static inline uint64_t hl_site_at_peak(const hl_site *site, uint64_t peak_epoch)
{
    return (site->peak_epoch & ~UINT64_C(1)) == peak_epoch ? site->saved : hl_site_live(site);
}

/* To be called before a block comes or goes. */
static inline void hl_site_save(hl_site *site, uint64_t peak_epoch)
{
    if (HL_LIKELY(site->peak_epoch == peak_epoch))
        return;
    HL_APART;
    uint64_t own = peak_epoch | (site->peak_epoch & 1);
    if (site->peak_epoch != own) {
        site->peak_epoch = own;
        site->saved = hl_site_live(site);
    }
    HL_APART;
}

static inline bool hl_site_is_apart(const hl_site *site)
{
    return (site->peak_epoch & 1) != 0;
}

/* It is this as well now. */
static inline void hl_site_set(hl_site *site, uint8_t what)
{
    site->is |= what;
    if (site->is & (HL_SITE_HIDDEN | HL_SITE_HOLDS_CODE))
        site->peak_epoch |= 1;
}

#endif
