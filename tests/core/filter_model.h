/* filter_model.h: the stdlib's rules for filters, spelled out row by row, and the check of a filtered snapshot by
 * them. */
#ifndef HL_FILTER_MODEL_H
#define HL_FILTER_MODEL_H

#include "../../src/core/filter.h"
#include "sample.h"

/* The model: what one filter answers for one frame, one trace. */

static inline bool frame_fits(const hl_names *names, const hl_filter *filter, hl_location_id id)
{
    const hl_location *location = hl_names_get_location(names, id);
    const hl_string *file = hl_names_get_string(names, location->file);
    bool compiled = file->length >= 4 && memcmp(file->bytes + file->length - 4, ".pyc", 4) == 0;
    return hl_glob_match(filter->pattern, filter->pattern_length, file->bytes, file->length - compiled) &&
           (filter->any_line || filter->line == location->line);
}

static inline bool lets_pass(const hl_names *names, const hl_filter *filter, const hl_row *row)
{
    if (filter->any_file)
        return (filter->domain == row->domain) == filter->inclusive;
    const hl_stack *stack = hl_names_get_stack(names, row->stack);
    bool fits = false;
    for (uint32_t i = 0; i < stack->depth && (i == 0 || filter->all_frames); i++)
        fits = fits || frame_fits(names, filter, stack->locations[i]);
    bool passes = fits == filter->inclusive;
    if (filter->any_domain)
        return passes;
    return filter->inclusive ? passes && row->domain == filter->domain : passes || row->domain != filter->domain;
}

static inline bool all_let_pass(const hl_names *names, const hl_filter *filters, size_t count, const hl_row *row)
{
    bool any_inclusive = false, let_in = false;
    for (size_t i = 0; i < count; i++) {
        if (filters[i].inclusive) {
            any_inclusive = true;
            let_in = let_in || lets_pass(names, &filters[i], row);
        } else if (!lets_pass(names, &filters[i], row)) {
            return false;
        }
    }
    return let_in || !any_inclusive;
}

static inline void check_filtered(const hl_snapshot *snapshot, const hl_filter *filters, size_t count)
{
    hl_snapshot *filtered;
    CHECK_OR_RETURN(hl_filter_snapshot(snapshot, filters, count, &filtered) == HL_OK);
    size_t at = 0;
    uint64_t blocks = 0, bytes = 0;
    for (size_t i = 0; i < snapshot->row_count; i++) {
        const hl_row *row = &snapshot->rows[i];
        if (!all_let_pass(snapshot->names, filters, count, row))
            continue;
        blocks += row->live;
        bytes += row->live * row->size;
        if (!CHECK(at < filtered->row_count))
            break;
        CHECK(memcmp(&filtered->rows[at++], row, sizeof *row) == 0);
    }
    CHECK_EQUAL(filtered->row_count, at);
    CHECK_EQUAL(filtered->blocks, blocks);
    CHECK_EQUAL(filtered->bytes, bytes);
    CHECK(filtered->names == snapshot->names && filtered->nframe == snapshot->nframe && filtered->pin == snapshot->pin);
    hl_snapshot_drop(filtered);
}

#endif
