/* hlsnap_same.h: are two snapshots the same, names and all, though their name tables differ? For tests of files. */
#ifndef HL_HLSNAP_SAME_H
#define HL_HLSNAP_SAME_H

#include <string.h>

#include "../../src/core/hlsnap.h"

static inline bool same_string(const hl_names *a_names, hl_string_id a_id, const hl_names *b_names, hl_string_id b_id)
{
    if (a_id == 0 || b_id == 0)
        return a_id == b_id;
    const hl_string *a = hl_names_get_string(a_names, a_id), *b = hl_names_get_string(b_names, b_id);
    return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

static inline bool same_stack(const hl_names *a_names, hl_stack_id a_id, const hl_names *b_names, hl_stack_id b_id)
{
    const hl_stack *a = hl_names_get_stack(a_names, a_id), *b = hl_names_get_stack(b_names, b_id);
    if (a->depth != b->depth || a->total != b->total)
        return false;
    for (uint32_t i = 0; i < a->depth; i++) {
        const hl_location *x = hl_names_get_location(a_names, a->locations[i]);
        const hl_location *y = hl_names_get_location(b_names, b->locations[i]);
        if (x->line != y->line || !same_string(a_names, x->file, b_names, y->file) ||
            !same_string(a_names, x->name, b_names, y->name))
            return false;
    }
    return true;
}

static inline bool same_snapshot(const hl_snapshot *a, const hl_snapshot *b)
{
    if (a->moment != b->moment || a->nframe != b->nframe || a->row_count != b->row_count || a->blocks != b->blocks ||
        a->bytes != b->bytes || a->origins.count != b->origins.count || a->origins.forks != b->origins.forks ||
        memcmp(a->origins.ids, b->origins.ids, a->origins.count * sizeof *a->origins.ids) != 0)
        return false;
    for (size_t i = 0; i < a->row_count; i++) {
        const hl_row *x = &a->rows[i], *y = &b->rows[i];
        if (x->size != y->size || x->live != y->live || x->allocated != y->allocated || x->origin != y->origin ||
            x->domain != y->domain || !same_stack(a->names, x->stack, b->names, y->stack))
            return false;
    }
    return true;
}

static inline void drop_content(hl_hlsnap_content *content)
{
    for (size_t i = 0; i < content->snapshot_count; i++)
        hl_snapshot_drop(content->snapshots[i]);
}

#endif
