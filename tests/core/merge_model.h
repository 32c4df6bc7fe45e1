/* merge_model.h: what merge.h promises, computed in the most simple-minded way. */
#ifndef HL_MERGE_MODEL_H
#define HL_MERGE_MODEL_H

#include <stdlib.h>
#include <string.h>

#include "../../src/core/snapshot.h"

/* The model: every row of every snapshot as it came, its key written out. */
typedef struct {
    char *key;
    size_t length;
    uint64_t ledger; /* 0: added straight */
    size_t snapshot;
    bool inherited;
    uint64_t live, allocated;
} record;

typedef struct {
    record *records;
    size_t count;
} model;

typedef struct {
    char *bytes;
    size_t length;
} text;

static inline void append(text *to, const void *bytes, size_t length)
{
    to->bytes = realloc(to->bytes, to->length + length + 1);
    memcpy(to->bytes + to->length, bytes, length);
    to->length += length;
}

static inline void append_string(text *to, const hl_names *names, hl_string_id id)
{
    static const hl_string none = {.length = UINT32_MAX};
    const hl_string *string = id != 0 ? hl_names_get_string(names, id) : &none;
    append(to, &string->length, sizeof string->length);
    if (id != 0)
        append(to, string->bytes, string->length);
}

/* Domain, size and stack, independent of the name table. */
static inline text key_of(const hl_names *names, const hl_row *row)
{
    text key = {0};
    const hl_stack *stack = hl_names_get_stack(names, row->stack);
    append(&key, &row->domain, sizeof row->domain);
    append(&key, &row->size, sizeof row->size);
    for (uint32_t i = 0; i < stack->depth; i++) {
        const hl_location *location = hl_names_get_location(names, stack->locations[i]);
        append_string(&key, names, location->file);
        append_string(&key, names, location->name);
        append(&key, &location->line, sizeof location->line);
    }
    return key;
}

static inline bool same_key(const record *a, const char *key, size_t length)
{
    return a->length == length && memcmp(a->key, key, length) == 0;
}

static inline bool is_inherited(const hl_snapshot *snapshot, uint64_t ledger)
{
    for (uint32_t i = 0; i + 1 < snapshot->origins.count; i++)
        if (snapshot->origins.ids[i] == ledger)
            return true;
    return false;
}

/* Is the ledger of snapshots[at] itself kept apart when it is added? */
static inline bool is_apart(hl_snapshot *const *snapshots, size_t count, size_t at, bool announced)
{
    const hl_origins *origins = &snapshots[at]->origins;
    uint64_t ledger = origins->ids[origins->count - 1];
    for (size_t i = 0; i < (announced ? count : at); i++) {
        const hl_origins *others = &snapshots[i]->origins;
        bool said = !announced && others->count > 0 && others->ids[others->count - 1] == ledger && others->forks > 0;
        if (said || is_inherited(snapshots[i], ledger))
            return true;
    }
    return !announced && origins->forks > 0;
}

static inline model model_of(hl_snapshot *const *snapshots, size_t count, bool announced)
{
    model made = {0};
    for (size_t i = 0; i < count; i++) {
        const hl_snapshot *from = snapshots[i];
        bool apart = from->origins.count > 0 && is_apart(snapshots, count, i, announced);
        made.records = realloc(made.records, (made.count + from->row_count + 1) * sizeof *made.records);
        for (size_t j = 0; j < from->row_count; j++) {
            const hl_row *row = &from->rows[j];
            text key = key_of(from->names, row);
            bool inherited = row->origin + 1u < from->origins.count;
            made.records[made.count++] = (record){
                .key = key.bytes,
                .length = key.length,
                .ledger = inherited || apart ? from->origins.ids[row->origin] : 0,
                .snapshot = i,
                .inherited = inherited,
                .live = row->live,
                .allocated = row->allocated,
            };
        }
    }
    return made;
}

static inline void model_free(model *gone)
{
    for (size_t i = 0; i < gone->count; i++)
        free(gone->records[i].key);
    free(gone->records);
}

static inline uint64_t count_in(const record *one, bool allocated)
{
    return allocated ? one->allocated : one->live;
}

/* What the ledger's blocks of one key count for. */
static inline uint64_t model_claim(const model *all, const record *like, bool allocated)
{
    uint64_t own = 0, inherited = 0;
    for (size_t i = 0; i < all->count; i++) {
        const record *one = &all->records[i];
        if (one->ledger != like->ledger || !same_key(one, like->key, like->length))
            continue;
        if (!one->inherited) {
            own += count_in(one, allocated);
            continue;
        }
        uint64_t held = 0;
        for (size_t j = 0; j < all->count; j++) {
            const record *other = &all->records[j];
            if (other->ledger == like->ledger && other->inherited && other->snapshot == one->snapshot &&
                same_key(other, like->key, like->length))
                held += count_in(other, allocated);
        }
        inherited = held > inherited ? held : inherited;
    }
    return own > inherited ? own : inherited;
}

static inline uint64_t model_sum(const model *all, const text *key, bool allocated)
{
    uint64_t total = 0;
    for (size_t i = 0; i < all->count; i++) {
        const record *one = &all->records[i];
        if (!same_key(one, key->bytes, key->length))
            continue;
        if (one->ledger == 0) {
            total += count_in(one, allocated);
            continue;
        }
        bool first = true;
        for (size_t j = 0; j < i && first; j++)
            first = all->records[j].ledger != one->ledger || !same_key(&all->records[j], key->bytes, key->length);
        if (first)
            total += model_claim(all, one, allocated);
    }
    return total;
}

static inline size_t model_keys(const model *all)
{
    size_t keys = 0;
    for (size_t i = 0; i < all->count; i++) {
        bool first = true;
        for (size_t j = 0; j < i && first; j++)
            first = !same_key(&all->records[j], all->records[i].key, all->records[i].length);
        keys += first;
    }
    return keys;
}

#endif
