/* merge.c: see merge.h.
 *
 *   1. Names are translated into our name table (translation.h) during one add. The merge holds each of our stacks
 *      once. Locations and strings are held by what names them.
 *   2. Sums: one for each (stack, size, domain), in the order in which they came up. They are the rows of the result.
 *   3. Claims: what is held of one ledger's blocks in one sum. The sum always contains max(own, inherited) of each of
 *      its claims: when a claim grows, the sum grows by the difference.
 */

#include "merge.h"

#include "translation.h"

typedef struct {
    uint64_t live;
    uint64_t allocated;
} counts;

typedef struct {
    uint64_t size;
    hl_stack_id stack;
    uint32_t domain;
    counts counted;
} sum;

typedef struct {
    uint32_t ledger; /* its number among those that are kept apart */
    uint32_t sum;
    uint32_t heir; /* the number of the snapshot that inherited it last */
    counts own;
    counts inherits;  /* what the heir holds: several of its rows may have become one row */
    counts inherited; /* the most that any heir holds */
} claim;

struct hl_merge {
    hl_names *names;
    hl_table sums;
    hl_table claims;
    hl_table apart; /* ids of the ledgers that are kept apart */
    uint64_t seed;  /* of all hashes: snapshots may come from files whose authors must not know it */
    bool announced;
    uint32_t added; /* snapshots */
    uint32_t nframe;
    hl_moment moment;
};

enum { MOST_IDS = (1 << 30) - 1 };
#define MOST_ALLOCATED ((UINT64_C(1) << 56) - 1)

hl_status hl_merge_open(hl_merge *beside, hl_merge **merge)
{
    hl_merge *made = hl_os_alloc(1, sizeof *made);
    if (made == NULL)
        return HL_NO_MEMORY;
    made->seed = hl_os_random();
    hl_status status = HL_OK;
    if (beside != NULL)
        made->names = hl_names_hold(beside->names);
    else
        status = hl_names_new(false, &made->names);
    hl_table_open(&made->sums, sizeof(sum), MOST_IDS, false);
    hl_table_open(&made->claims, sizeof(claim), MOST_IDS, false);
    hl_table_open(&made->apart, sizeof(uint64_t), MOST_IDS, false);
    if (status == HL_OK)
        *merge = made;
    else
        hl_merge_close(made);
    return status;
}

void hl_merge_close(hl_merge *merge)
{
    hl_table_close(&merge->sums);
    hl_table_close(&merge->claims);
    hl_table_close(&merge->apart);
    if (merge->names != NULL)
        hl_names_drop(merge->names);
    hl_os_free(merge);
}

hl_names *hl_merge_names(const hl_merge *merge)
{
    return merge->names;
}

/* 1. Names. */

typedef struct {
    hl_translation translated;
    hl_location_id *frames; /* of the current stack, in our name table */
    hl_location_id *fresh;  /* those of them that were entered for it, held until the stack is there */
} translation;

static hl_status translation_open(translation *work, hl_names *to, const hl_snapshot *snapshot)
{
    *work = (translation){.frames = NULL};
    hl_status status = hl_translation_open(&work->translated, to, snapshot);
    if (status == HL_OK)
        work->frames = hl_os_resize(NULL, 2 * (size_t)work->translated.deepest, sizeof *work->frames);
    if (work->frames == NULL)
        return HL_NO_MEMORY;
    work->fresh = work->frames + work->translated.deepest;
    return HL_OK;
}

static void translation_close(translation *work)
{
    hl_translation_close(&work->translated);
    hl_os_free(work->frames);
}

/* A stack that is not known yet. */
static hl_status enter_stack(translation *work, const hl_stack *stack, hl_stack_id *to)
{
    hl_status status = HL_OK;
    uint32_t fresh = 0;
    for (uint32_t i = 0; i < stack->depth && status == HL_OK; i++) {
        bool is_fresh;
        status = hl_translation_location(&work->translated, stack->locations[i], &work->frames[i], &is_fresh);
        if (status == HL_OK && is_fresh)
            work->fresh[fresh++] = work->frames[i];
    }
    /* The ledger that the snapshot is from may set the total of a cut stack in the meantime. */
    uint32_t total = __atomic_load_n(&stack->total, __ATOMIC_RELAXED);
    if (status == HL_OK)
        status = hl_names_stack(work->translated.to, work->frames, stack->depth, total, to);
    for (uint32_t i = 0; i < fresh; i++)
        hl_names_release_location(work->translated.to, work->fresh[i]);
    if (status != HL_OK)
        return status;
    const hl_stack *entered = hl_names_get_stack(work->translated.to, *to);
    if (entered->total == 0)
        hl_names_set_total(work->translated.to, *to, total);
    if (entered->refs > 1)
        hl_names_release_stack(work->translated.to, *to);
    return HL_OK;
}

static hl_status translate_stack(translation *work, hl_stack_id from, hl_stack_id *to)
{
    uint32_t *known = hl_id_map_at(&work->translated.stacks, from);
    hl_status status = HL_OK;
    if (*known == 0)
        status = enter_stack(work, hl_names_get_stack(work->translated.from, from), known);
    *to = *known;
    return status;
}

/* 2. Sums. */

static hl_status find_sum(hl_merge *merge, hl_stack_id stack, uint64_t size, uint32_t domain, uint32_t *id)
{
    uint32_t hash = (uint32_t)hl_mix(hl_mix(merge->seed ^ size) ^ ((uint64_t)stack << 32 | domain));
    for (uint32_t at = hl_table_first(&merge->sums, hash); at != 0; at = hl_table_link(&merge->sums, at)->next) {
        const sum *found = hl_table_at(&merge->sums, at);
        if (found->stack == stack && found->size == size && found->domain == domain) {
            *id = at;
            return HL_OK;
        }
    }
    hl_status status = hl_table_add(&merge->sums, hash, id);
    if (status == HL_OK)
        *(sum *)hl_table_at(&merge->sums, *id) = (sum){.size = size, .stack = stack, .domain = domain};
    return status;
}

static bool add_counts(counts *to, const counts *more)
{
    return !__builtin_add_overflow(to->live, more->live, &to->live) &&
           !__builtin_add_overflow(to->allocated, more->allocated, &to->allocated);
}

static counts larger_counts(const counts *a, const counts *b)
{
    return (counts){.live = a->live > b->live ? a->live : b->live,
                    .allocated = a->allocated > b->allocated ? a->allocated : b->allocated};
}

/* 3. Claims. */

/* The number of a ledger that is kept apart, 0 if it is not. */
static uint32_t find_apart(const hl_merge *merge, uint64_t id)
{
    uint32_t at = hl_table_first(&merge->apart, (uint32_t)hl_mix(merge->seed ^ id));
    while (at != 0 && *(const uint64_t *)hl_table_at(&merge->apart, at) != id)
        at = hl_table_link(&merge->apart, at)->next;
    return at;
}

static hl_status keep_apart(hl_merge *merge, uint64_t id, uint32_t *number)
{
    *number = find_apart(merge, id);
    if (*number != 0)
        return HL_OK;
    hl_status status = hl_table_add(&merge->apart, (uint32_t)hl_mix(merge->seed ^ id), number);
    if (status == HL_OK)
        *(uint64_t *)hl_table_at(&merge->apart, *number) = id;
    return status;
}

hl_status hl_merge_announce(hl_merge *merge, const hl_snapshot *snapshot)
{
    hl_status status = HL_OK;
    merge->announced = true;
    for (uint32_t i = 0; i + 1 < snapshot->origins.count && status == HL_OK; i++) {
        uint32_t number;
        status = keep_apart(merge, snapshot->origins.ids[i], &number);
    }
    return status;
}

/* The numbers of a snapshot's ledgers. 0 for its own if there is no reason to keep it apart. */
static hl_status number_ledgers(hl_merge *merge, const hl_origins *origins, uint32_t numbers[HL_MOST_ORIGINS])
{
    hl_status status = HL_OK;
    for (uint32_t i = 0; i < origins->count && status == HL_OK; i++) {
        bool inherited = i + 1 < origins->count, may_have_heirs = !merge->announced && origins->forks > 0;
        if (inherited || may_have_heirs)
            status = keep_apart(merge, origins->ids[i], &numbers[i]);
        else
            numbers[i] = find_apart(merge, origins->ids[i]);
    }
    return status;
}

static hl_status find_claim(hl_merge *merge, uint32_t ledger, uint32_t sum_id, claim **found)
{
    uint32_t hash = (uint32_t)hl_mix(merge->seed ^ ((uint64_t)ledger << 32 | sum_id)), id;
    for (uint32_t at = hl_table_first(&merge->claims, hash); at != 0; at = hl_table_link(&merge->claims, at)->next) {
        *found = hl_table_at(&merge->claims, at);
        if ((*found)->ledger == ledger && (*found)->sum == sum_id)
            return HL_OK;
    }
    hl_status status = hl_table_add(&merge->claims, hash, &id);
    if (status == HL_OK) {
        *found = hl_table_at(&merge->claims, id);
        **found = (claim){.ledger = ledger, .sum = sum_id};
    }
    return status;
}

/* Let the claim grow by `more`. Afterwards *more is the amount by which its sum grows. */
static bool grow_claim(claim *grown, bool inherited, uint32_t heir, counts *more)
{
    counts before = larger_counts(&grown->own, &grown->inherited);
    if (inherited) {
        if (grown->heir != heir) {
            grown->heir = heir;
            grown->inherits = (counts){0};
        }
        if (!add_counts(&grown->inherits, more))
            return false;
        grown->inherited = larger_counts(&grown->inherited, &grown->inherits);
    } else if (!add_counts(&grown->own, more)) {
        return false;
    }
    counts after = larger_counts(&grown->own, &grown->inherited);
    *more = (counts){.live = after.live - before.live, .allocated = after.allocated - before.allocated};
    return true;
}

/* All three steps. */

static hl_status add_row(hl_merge *merge, translation *translated, const hl_row *row, uint32_t ledger, bool inherited)
{
    counts more = {.live = row->live, .allocated = row->allocated};
    hl_stack_id stack;
    uint32_t id;
    hl_status status = translate_stack(translated, row->stack, &stack);
    if (status == HL_OK)
        status = find_sum(merge, stack, row->size, row->domain, &id);
    if (status == HL_OK && ledger != 0) {
        claim *grown;
        status = find_claim(merge, ledger, id, &grown);
        if (status == HL_OK && !grow_claim(grown, inherited, merge->added, &more))
            status = HL_TOO_LARGE;
    }
    if (status == HL_OK && !add_counts(&((sum *)hl_table_at(&merge->sums, id))->counted, &more))
        status = HL_TOO_LARGE;
    return status;
}

hl_status hl_merge_add(hl_merge *merge, const hl_snapshot *snapshot)
{
    uint32_t ledgers[HL_MOST_ORIGINS] = {0}, own = snapshot->origins.count > 0 ? snapshot->origins.count - 1 : 0;
    translation translated;
    hl_status status = number_ledgers(merge, &snapshot->origins, ledgers);
    if (status != HL_OK)
        return status;
    status = translation_open(&translated, merge->names, snapshot);
    merge->added++;
    for (size_t i = 0; i < snapshot->row_count && status == HL_OK; i++) {
        const hl_row *row = &snapshot->rows[i];
        status = add_row(merge, &translated, row, ledgers[row->origin], row->origin < own);
    }
    translation_close(&translated);
    merge->moment = snapshot->moment;
    if (snapshot->nframe > merge->nframe)
        merge->nframe = snapshot->nframe;
    return status;
}

hl_status hl_merge_finish(hl_merge *merge, hl_snapshot **snapshot)
{
    hl_snapshot *made;
    hl_status status = hl_snapshot_new(merge->names, merge->sums.used, &made);
    if (status != HL_OK)
        return status;
    unsigned __int128 weight = 0;
    for (uint32_t i = 0; i < merge->sums.used && status == HL_OK; i++) {
        const sum *from = hl_table_at(&merge->sums, i + 1);
        made->rows[i] = (hl_row){.size = from->size,
                                 .live = from->counted.live,
                                 .allocated = from->counted.allocated & MOST_ALLOCATED,
                                 .stack = from->stack,
                                 .domain = from->domain};
        weight += hl_row_weight(&made->rows[i], hl_names_get_stack(merge->names, from->stack)->depth);
        if (from->counted.allocated > MOST_ALLOCATED)
            status = HL_TOO_LARGE;
    }
    if (weight > HL_MOST_WEIGHT)
        status = HL_TOO_LARGE;
    hl_snapshot_seal(made, merge->sums.used);
    made->moment = merge->moment;
    made->nframe = merge->nframe;
    if (status == HL_OK)
        *snapshot = made;
    else
        hl_snapshot_drop(made);
    return status;
}

size_t hl_merge_memory(const hl_merge *merge)
{
    return hl_names_memory(merge->names) + hl_table_memory(&merge->sums) + hl_table_memory(&merge->claims) +
           hl_table_memory(&merge->apart);
}
