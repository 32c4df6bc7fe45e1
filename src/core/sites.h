/* sites.h: the sites that blocks are entered under. A site is (stack, size, domain, origin), with its counters.
 *
 * A site is one cache line. It keeps its count for the peak without a log. The ledger's peak epoch grows with every new
 * peak. At that instant, the live count of every site is its count at the peak. The first change of a site in a peak
 * epoch saves the count from before the change. So the count at the peak is `saved` if the site has changed in this
 * peak epoch, else the live count. Epochs are even numbers. For some sites, counting is not enough when a block leaves
 * (hl_site_is_apart). They keep the odd number that follows the epoch. So one comparison tells whether counting is
 * enough.
 *
 * A site is dead if it has no live block and the peak does not need it. A hand goes round the table and reclaims dead
 * sites. It moves a few steps whenever a site is made, and when the ledger says so. So there is no pause, and a program
 * that makes no new sites pays nothing. A dead site that was used since the hand last passed gets a second chance, so
 * that temporary objects keep their sites.
 *
 * While there are few sites, nothing is reclaimed. The bound for "few" adapts to the program. A site that is made again
 * soon after it was reclaimed should have stayed. A round of the hand with many such sites doubles the bound. A round
 * with hardly any halves it. If even the largest bound does not help, we use the smallest one for a while. To recognise
 * such sites, we keep a mark of one byte for each reclaimed site, at an index that its hash gives.
 *
 * Threading: needs the ledger's lock.
 */
#ifndef HL_SITES_H
#define HL_SITES_H

#include "map.h"
#include "names.h"

typedef uint32_t hl_site_id;

/* The smallest and the largest bound for "few" sites. The third one is used while a window is open (window.h), because
 * the window misses the counts of a reclaimed site. */
enum { HL_FEW_SITES = 1 << 12, HL_MOST_FEW_SITES = 1 << 16, HL_FEW_COUNTED_SITES = 1 << 18 };

/* How far the hand goes for each new site. It passes a dead site twice before it reclaims the site. So with few steps,
 * more than a third of the sites are dead. This leaves room for temporary objects that a program allocates on many
 * stacks again and again. Otherwise they would lose their sites before the program comes back to them. With a frame
 * limit of 1, such objects have few sites, so the hand may be faster. */
enum { HL_HAND_STEPS = 4, HL_HAND_STEPS_AT_ONE_FRAME = 16 };

enum { HL_EPOCH_STEP = 2 };

/* What a site is. These are bits, so that one check can test several. */
enum {
    HL_SITE_IN_USE = 1,
    HL_SITE_HIDDEN = 2,     /* its blocks do not count: the tracer's own work, code objects older than the ledger */
    HL_SITE_HOLDS_CODE = 4, /* a block may be a code object that hl_codes knows */
};

typedef struct {
    uint64_t size;       /* bytes of each block */
    uint64_t allocated;  /* blocks entered since start */
    uint64_t freed;      /* how many of them have left: see hl_site_live */
    uint64_t saved;      /* live blocks before the first change in the peak epoch */
    uint64_t peak_epoch; /* of `saved`; odd: the site is apart */
    uint32_t seen;       /* the lower half of `allocated` when the hand last passed */
    uint32_t next;       /* the site that was looked up after this one, the last time; 0: not known */
    hl_stack_id stack;   /* 0: a hidden site, in no snapshot */
    uint32_t domain;
    uint32_t reuse_count; /* how often this id was reclaimed: see index.h. Caches remember it with the id */
    hl_map_cut cut;       /* the minimum cut that its blocks' pages need; HL_MAP_TOO_FINE: the site is hidden */
    uint8_t origin;       /* which process made it: an index into the ledger's origins */
    uint8_t is;           /* bits: HL_SITE_IN_USE and others */
} hl_site;

_Static_assert(sizeof(hl_site) == 64, "a site is one cache line");

typedef struct {
    hl_table table;
    hl_site_id hand;
    uint32_t few;            /* the hand rests up to this number: the bound, or HL_FEW_COUNTED_SITES */
    uint32_t bound;          /* adapts to the program */
    uint32_t steps;          /* how far the hand goes for each new site */
    uint32_t made;           /* sites made in this round of the hand */
    uint32_t reborn;         /* how many of them were reclaimed recently */
    uint32_t idle_rounds;    /* the bound does not adapt for this many rounds */
    uint8_t *marks;          /* marks of recently reclaimed sites; NULL: there are none */
    bool counted;            /* a window is open */
    uint8_t origin;          /* the origin of new sites; sites of another origin are not found any more */
    uint64_t retired_blocks; /* sum of `allocated` over reclaimed sites */
    uint64_t retired_bytes;
} hl_sites;

void hl_sites_open(hl_sites *sites, uint32_t most, uint32_t steps);
void hl_sites_close(hl_sites *sites);
/* Forget all sites. `counted` stays. */
void hl_sites_clear(hl_sites *sites);
size_t hl_sites_memory(const hl_sites *sites);
/* Call this with true when a window opens, and with false when the last window is gone. */
void hl_sites_count(hl_sites *sites, bool counted);

static inline hl_site *hl_sites_at(const hl_sites *sites, hl_site_id id)
{
    return (hl_site *)(void *)sites->table.items.base + id; /* like hl_table_at, with a size known at compile time */
}

/* The site of (stack, size, domain), made if there is none. Takes over the caller's reference to the stack, also on
 * failure. `peak_epoch` is the ledger's. */
hl_status hl_sites_intern(hl_sites *sites, hl_names *names, hl_stack_id stack, uint64_t size, uint32_t domain,
                          uint64_t peak_epoch, hl_site_id *id) HL_MUST_USE;

/* Move the hand. Returns how many sites, and stacks of such sites, it reclaimed. `pressed`: there is no room left for
 * something. Then the hand also reclaims when there are few sites, and takes dead sites that were used recently. */
uint32_t hl_sites_sweep(hl_sites *sites, hl_names *names, uint64_t peak_epoch, uint32_t steps, bool pressed);

/* Does a snapshot show the site if it has blocks? */
static inline bool hl_site_is_shown(const hl_site *site)
{
    return (site->is & (HL_SITE_IN_USE | HL_SITE_HIDDEN)) == HL_SITE_IN_USE;
}

/* The number of live blocks. */
static inline uint64_t hl_site_live(const hl_site *site)
{
    return site->allocated - site->freed;
}

/* The number of blocks that were alive at the peak. */
static inline uint64_t hl_site_at_peak(const hl_site *site, uint64_t peak_epoch)
{
    return (site->peak_epoch & ~UINT64_C(1)) == peak_epoch ? site->saved : hl_site_live(site);
}

/* Call this before a block comes or goes. */
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

/* Add `what` to what the site is. */
static inline void hl_site_set(hl_site *site, uint8_t what)
{
    site->is |= what;
    if (site->is & (HL_SITE_HIDDEN | HL_SITE_HOLDS_CODE))
        site->peak_epoch |= 1;
}

#endif
