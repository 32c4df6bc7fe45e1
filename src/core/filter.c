/* filter.c: see filter.h.
 *
 * Filters are applied one after the other, each to the rows that are still open: an inclusive one to those that none
 * has let in yet, an exclusive one to those that none has thrown out. What a pattern says of a file is kept in a table
 * indexed by the file's string id; filters with the same pattern are applied in a row, so that one table serves all.
 */

#include "filter.h"

#include <string.h>

typedef enum { NOT_TRIED = 0, MATCHES, DIFFERS } verdict;

typedef struct {
    const hl_snapshot *snapshot;
    uint8_t *verdicts; /* of the current pattern, by string id */
    size_t verdict_count;
    bool *let_in; /* by row: some inclusive filter passes it */
    bool *thrown; /* by row: some exclusive filter does not */
} sieve;

static bool file_matches(const sieve *work, const hl_filter *filter, hl_string_id id)
{
    uint8_t *known = &work->verdicts[id];
    if (*known == NOT_TRIED) {
        const hl_string *file = hl_book_get_string(work->snapshot->book, id);
        size_t length = file->length;
        if (length >= 4 && memcmp(file->bytes + length - 4, ".pyc", 4) == 0)
            length--;
        *known = hl_glob_match(filter->pattern, filter->pattern_length, file->bytes, length) ? MATCHES : DIFFERS;
    }
    return *known == MATCHES;
}

static bool row_matches(const sieve *work, const hl_filter *filter, const hl_row *row)
{
    if (!filter->any_domain && filter->domain != row->domain)
        return false;
    if (filter->any_file)
        return true;
    const hl_stack *stack = hl_book_get_stack(work->snapshot->book, row->stack);
    uint32_t frames = filter->all_frames || stack->depth == 0 ? stack->depth : 1;
    for (uint32_t i = 0; i < frames; i++) {
        const hl_location *location = hl_book_get_location(work->snapshot->book, stack->locations[i]);
        if ((filter->any_line || filter->line == location->line) && file_matches(work, filter, location->file))
            return true;
    }
    return false;
}

static void apply(const sieve *work, const hl_filter *filter)
{
    bool *done = filter->inclusive ? work->let_in : work->thrown;
    for (size_t i = 0; i < work->snapshot->row_count; i++)
        if (!done[i] && row_matches(work, filter, &work->snapshot->rows[i]))
            done[i] = true;
}

static bool same_pattern(const hl_filter *a, const hl_filter *b)
{
    return !a->any_file && !b->any_file && a->pattern_length == b->pattern_length &&
           memcmp(a->pattern, b->pattern, a->pattern_length) == 0;
}

static bool first_of_its_pattern(const hl_filter *filters, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (same_pattern(&filters[i], &filters[at]))
            return false;
    return true;
}

static void apply_all(const sieve *work, const hl_filter *filters, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!first_of_its_pattern(filters, i))
            continue;
        memset(work->verdicts, NOT_TRIED, work->verdict_count);
        apply(work, &filters[i]);
        for (size_t j = i + 1; j < count; j++)
            if (same_pattern(&filters[i], &filters[j]))
                apply(work, &filters[j]);
    }
}

/* Move the rows that pass to a snapshot of their own. */
static hl_status copy_passed(const sieve *work, bool any_inclusive, hl_snapshot **filtered)
{
    const hl_snapshot *snapshot = work->snapshot;
    size_t passed = 0;
    for (size_t i = 0; i < snapshot->row_count; i++) {
        work->let_in[i] = (work->let_in[i] || !any_inclusive) && !work->thrown[i];
        passed += work->let_in[i];
    }
    hl_snapshot *made;
    hl_status status = hl_snapshot_derive(snapshot, passed, &made);
    if (status != HL_OK)
        return status;
    size_t to = 0;
    for (size_t i = 0; i < snapshot->row_count; i++)
        if (work->let_in[i])
            made->rows[to++] = snapshot->rows[i];
    hl_snapshot_seal(made, passed);
    *filtered = made;
    return HL_OK;
}

hl_status hl_filter_snapshot(const hl_snapshot *snapshot, const hl_filter *filters, size_t count,
                             hl_snapshot **filtered)
{
    /* The ledger may add strings meanwhile: what the snapshot names is below any value seen. */
    size_t strings = (size_t)__atomic_load_n(&snapshot->book->strings.used, __ATOMIC_RELAXED) + 1;
    sieve work = {
        .snapshot = snapshot,
        .verdicts = hl_os_alloc(strings, sizeof *work.verdicts),
        .verdict_count = strings,
        .let_in = hl_os_alloc(snapshot->row_count, sizeof *work.let_in),
        .thrown = hl_os_alloc(snapshot->row_count, sizeof *work.thrown),
    };
    hl_status status = HL_NO_MEMORY;
    if (work.verdicts != NULL && work.let_in != NULL && work.thrown != NULL) {
        bool any_inclusive = false;
        for (size_t i = 0; i < count; i++)
            any_inclusive = any_inclusive || filters[i].inclusive;
        apply_all(&work, filters, count);
        status = copy_passed(&work, any_inclusive, filtered);
    }
    hl_os_free(work.verdicts);
    hl_os_free(work.let_in);
    hl_os_free(work.thrown);
    return status;
}
