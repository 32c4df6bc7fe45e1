/* filter.c: see filter.h.
 *
 *   1. Collect the locations that count: the newest of every stack, or all if some filter looks at all frames.
 *   2. Try each filter on these locations, not on the rows, and leave a mark where it matches. A table indexed by the
 *      string id of the file keeps the result of a pattern for each file. Filters with the same pattern are tried one
 *      after the other, so that one table serves all of them.
 *   3. A stack has the marks of its locations, and a row has those of its stack.
 *
 * Filters with a domain do not concern the rows of other domains. So 2 and 3 run once for the filters without a
 * domain, and once for each domain that a filter has.
 */

#include "filter.h"

#include <string.h>

typedef enum { NOT_TRIED = 0, MATCHES, DIFFERS } verdict;

/* Marks of rows: some inclusive filter matches, some exclusive one does. Locations have both pairs: for filters of
 * the newest frame, and, shifted, for filters of all frames. */
enum { LET_IN = 1, THROWN = 2, BOTH = 3, ALL_FRAMES_SHIFT = 2, SEEN = 0x80 };

typedef struct {
    const hl_snapshot *snapshot;
    bool all_frames;   /* some filter looks at them */
    uint8_t *verdicts; /* of the current pattern, by string id */
    size_t verdict_count;
    uint8_t *of_location; /* marks, by id */
    uint8_t *of_stack;    /* marks, by id; SEEN: they are known */
    size_t stack_count;
    uint8_t *of_row;
    hl_location_id *locations; /* those that count */
    size_t location_count;
} sieve;

/* How many ids a table has, including 0. The ledger may add some in the meantime. What the snapshot names is among
 * them. */
static size_t ids_of(const hl_table *table)
{
    return (size_t)__atomic_load_n(&table->used, __ATOMIC_RELAXED) + 1;
}

static hl_status sieve_open(sieve *work, const hl_snapshot *snapshot)
{
    const hl_names *names = snapshot->names;
    size_t locations = ids_of(&names->locations);
    *work =
        (sieve){.snapshot = snapshot, .verdict_count = ids_of(&names->strings), .stack_count = ids_of(&names->stacks)};
    work->verdicts = hl_os_alloc(work->verdict_count, 1);
    work->of_location = hl_os_alloc(locations, 1);
    work->of_stack = hl_os_alloc(work->stack_count, 1);
    work->of_row = hl_os_alloc(snapshot->row_count, 1);
    work->locations = hl_os_resize(NULL, locations, sizeof *work->locations);
    bool complete = work->verdicts != NULL && work->of_location != NULL && work->of_stack != NULL &&
                    work->of_row != NULL && work->locations != NULL;
    return complete ? HL_OK : HL_NO_MEMORY;
}

static void sieve_close(sieve *work)
{
    hl_os_free(work->verdicts);
    hl_os_free(work->of_location);
    hl_os_free(work->of_stack);
    hl_os_free(work->of_row);
    hl_os_free(work->locations);
}

/* How many frames of a stack count. */
static uint32_t frames_of(const sieve *work, const hl_stack *stack)
{
    return work->all_frames || stack->depth == 0 ? stack->depth : 1;
}

/* 1. */
static void collect_locations(sieve *work)
{
    const hl_snapshot *snapshot = work->snapshot;
    for (size_t i = 0; i < snapshot->row_count; i++) {
        hl_stack_id id = snapshot->rows[i].stack;
        if (work->of_stack[id] != 0)
            continue;
        work->of_stack[id] = SEEN;
        const hl_stack *stack = hl_names_get_stack(snapshot->names, id);
        for (uint32_t frame = 0; frame < frames_of(work, stack); frame++) {
            hl_location_id location = stack->locations[frame];
            if (work->of_location[location] == 0) {
                work->of_location[location] = SEEN;
                work->locations[work->location_count++] = location;
            }
        }
    }
}

/* 2. */

static bool file_matches(const sieve *work, const hl_filter *filter, hl_string_id id)
{
    uint8_t *known = &work->verdicts[id];
    if (*known == NOT_TRIED) {
        const hl_string *file = hl_names_get_string(work->snapshot->names, id);
        size_t length = file->length;
        if (length >= 4 && memcmp(file->bytes + length - 4, ".pyc", 4) == 0)
            length--;
        *known = hl_glob_match(filter->pattern, filter->pattern_length, file->bytes, length) ? MATCHES : DIFFERS;
    }
    return *known == MATCHES;
}

static uint8_t mark_of(const hl_filter *filter)
{
    uint8_t mark = filter->inclusive ? LET_IN : THROWN;
    return filter->all_frames ? (uint8_t)(mark << ALL_FRAMES_SHIFT) : mark;
}

static void mark_locations(const sieve *work, const hl_filter *filter)
{
    uint8_t mark = mark_of(filter);
    for (size_t i = 0; i < work->location_count; i++) {
        const hl_location *location = hl_names_get_location(work->snapshot->names, work->locations[i]);
        if ((filter->any_line || filter->line == location->line) && file_matches(work, filter, location->file))
            work->of_location[work->locations[i]] |= mark;
    }
}

static bool same_domain(const hl_filter *a, const hl_filter *b)
{
    return a->any_domain == b->any_domain && (a->any_domain || a->domain == b->domain);
}

static bool same_pattern(const hl_filter *a, const hl_filter *b)
{
    return !a->any_file && !b->any_file && a->pattern_length == b->pattern_length &&
           memcmp(a->pattern, b->pattern, a->pattern_length) == 0;
}

static bool same_both(const hl_filter *a, const hl_filter *b)
{
    return same_domain(a, b) && same_pattern(a, b);
}

static bool first_of_its_kind(const hl_filter *filters, size_t at, bool (*same)(const hl_filter *, const hl_filter *))
{
    for (size_t i = 0; i < at; i++)
        if (same(&filters[i], &filters[at]))
            return false;
    return true;
}

/* Try the filters from `first` on that have the same domain. Returns the marks of those that match any file. */
static uint8_t mark_all_locations(const sieve *work, const hl_filter *filters, size_t first, size_t count)
{
    uint8_t whatever = 0;
    for (size_t i = 0; i < work->location_count; i++)
        work->of_location[work->locations[i]] = SEEN;
    for (size_t i = first; i < count; i++) {
        if (!same_domain(&filters[i], &filters[first]))
            continue;
        if (filters[i].any_file) {
            whatever |= filters[i].inclusive ? LET_IN : THROWN;
            continue;
        }
        if (!first_of_its_kind(filters, i, same_both))
            continue;
        memset(work->verdicts, NOT_TRIED, work->verdict_count);
        for (size_t j = i; j < count; j++)
            if (same_both(&filters[i], &filters[j]))
                mark_locations(work, &filters[j]);
    }
    return whatever;
}

/* 3. */

static uint8_t marks_of_stack(const sieve *work, hl_stack_id id)
{
    const hl_stack *stack = hl_names_get_stack(work->snapshot->names, id);
    if (stack->depth == 0)
        return 0;
    uint8_t newest = work->of_location[stack->locations[0]], all = 0;
    for (uint32_t frame = 0; frame < frames_of(work, stack); frame++)
        all |= work->of_location[stack->locations[frame]];
    return (newest | all >> ALL_FRAMES_SHIFT) & BOTH;
}

static void mark_rows(const sieve *work, const hl_filter *of, uint8_t whatever)
{
    const hl_snapshot *snapshot = work->snapshot;
    memset(work->of_stack, 0, work->stack_count);
    for (size_t i = 0; i < snapshot->row_count; i++) {
        const hl_row *row = &snapshot->rows[i];
        if (!of->any_domain && of->domain != row->domain)
            continue;
        uint8_t *known = &work->of_stack[row->stack];
        if (*known == 0)
            *known = SEEN | marks_of_stack(work, row->stack);
        work->of_row[i] |= (*known | whatever) & BOTH;
    }
}

/* Copy the rows that pass to a new snapshot. */
static hl_status copy_passed(const sieve *work, bool any_inclusive, hl_snapshot **filtered)
{
    const hl_snapshot *snapshot = work->snapshot;
    uint8_t wanted = any_inclusive ? LET_IN : 0, seen = any_inclusive ? BOTH : THROWN;
    size_t passed = 0;
    for (size_t i = 0; i < snapshot->row_count; i++)
        passed += (work->of_row[i] & seen) == wanted;
    hl_snapshot *made;
    hl_status status = hl_snapshot_derive(snapshot, passed, &made);
    if (status != HL_OK)
        return status;
    size_t to = 0;
    for (size_t i = 0; i < snapshot->row_count; i++)
        if ((work->of_row[i] & seen) == wanted)
            made->rows[to++] = snapshot->rows[i];
    hl_snapshot_seal(made, passed);
    *filtered = made;
    return HL_OK;
}

hl_status hl_filter_snapshot(const hl_snapshot *snapshot, const hl_filter *filters, size_t count,
                             hl_snapshot **filtered)
{
    sieve work;
    hl_status status = sieve_open(&work, snapshot);
    if (status == HL_OK) {
        bool any_inclusive = false;
        for (size_t i = 0; i < count; i++) {
            any_inclusive = any_inclusive || filters[i].inclusive;
            work.all_frames = work.all_frames || filters[i].all_frames;
        }
        collect_locations(&work);
        for (size_t i = 0; i < count; i++)
            if (first_of_its_kind(filters, i, same_domain))
                mark_rows(&work, &filters[i], mark_all_locations(&work, filters, i, count));
        status = copy_passed(&work, any_inclusive, filtered);
    }
    sieve_close(&work);
    return status;
}
