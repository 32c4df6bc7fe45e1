/* group.c: see group.h.
 *
 *   1. By stack, and where all frames count, the rows of each stack are first folded into one. There are many rows
 *      and far fewer stacks, so from here on a row costs nothing more. A comparison folds the rows of both snapshots,
 *      the new snapshot's first.
 *   2. Every named file or line has a number (dense.h), and its group is at this number. By stack, the folds are
 *      the groups, once those with the same lines are merged. A hash of the lines' numbers finds them. Sums are added
 *      to the groups, again the new snapshot's first. So a group that only the old rows create is gone in the new
 *      snapshot.
 *   3. The groups are sorted as sequences of symbols (order.h): the sums, then the traceback. For this, the files in
 *      use are ranked by their bytes. In UTF-8 this is the order of code points.
 *
 * A statistic is a difference from nothing: |size_diff| = size and |count_diff| = count. So one order serves both.
 */

#include "group.h"

#include <string.h>

#include "dense.h"
#include "order.h"

typedef struct {
    hl_key_type key_type;
    bool cumulative;
    bool changed_only;
    size_t wanted; /* how many must be in order */
    int sides[2];  /* for the new and the old snapshot: the index of its name table in the numbers */
    hl_dense dense;
    hl_difference *groups; /* group number n is at n - 1 */
    uint32_t group_count;
    /* By stack or cumulative only: */
    hl_id_map stacks[2];  /* from the stacks of a side's name table to folds, numbered like groups */
    hl_difference *folds; /* the key is a stack */
    uint32_t fold_count;
    /* By stack only: */
    hl_content_index stacks_by_content;
    uint32_t *hashes;  /* of the groups, like them at n - 1 */
    uint64_t *factors; /* for the hash, one for each frame of the deepest stack */
    uint32_t deepest;  /* its depth */
} grouper;

static inline void add_sums(hl_difference *group, bool old, uint64_t size, uint64_t count)
{
    *(old ? &group->old_size : &group->size) += size;
    *(old ? &group->old_count : &group->count) += count;
}

/* 1. Folds. `old` says whose rows or frames are being added, here and below. */

static void fold_rows(grouper *work, const hl_snapshot *snapshot, bool old)
{
    const hl_id_map *stacks = &work->stacks[work->sides[old]];
    for (size_t i = 0; i < snapshot->row_count; i++) {
        const hl_row *row = &snapshot->rows[i];
        if (row->live == 0)
            continue;
        uint32_t *number = hl_id_map_at(stacks, row->stack);
        if (HL_UNLIKELY(*number == 0)) {
            work->folds[work->fold_count++] = (hl_difference){.key = row->stack, .from_old = old};
            *number = work->fold_count;
        }
        add_sums(&work->folds[*number - 1], old, row->size * row->live, row->live);
    }
}

static const hl_stack *stack_of(const hl_names *const names[2], const grouper *work, const hl_difference *of)
{
    return hl_names_get_stack(names[work->sides[of->from_old]], of->key);
}

static hl_status fold(grouper *work, const hl_names *const names[2], const hl_snapshot *const snapshots[2],
                      size_t rows[2])
{
    for (int side = 0; side < 2 && names[side] != NULL; side++)
        if (!hl_id_map_open(&work->stacks[side], &names[side]->stacks, &rows[side]))
            return HL_NO_MEMORY;
    work->folds = hl_os_resize(NULL, rows[0] + rows[1], sizeof *work->folds);
    if (work->folds == NULL)
        return HL_NO_MEMORY;
    for (int old = 0; old < 2 && snapshots[old] != NULL; old++)
        fold_rows(work, snapshots[old], old);
    return HL_OK;
}

/* Fold if needed, and allocate the groups. */
static hl_status grouper_open(grouper *work, const hl_snapshot *const snapshots[2])
{
    const hl_names *names[2] = {snapshots[0]->names, NULL};
    size_t rows[2] = {snapshots[0]->row_count, 0}, folded_frames[2] = {0, 0}, *frames = rows;
    if (snapshots[1] != NULL) {
        int side = work->sides[1] = snapshots[1]->names == snapshots[0]->names ? 0 : 1;
        names[side] = snapshots[1]->names;
        rows[side] += snapshots[1]->row_count;
    }
    if (work->cumulative || work->key_type == HL_BY_STACK) {
        hl_status status = fold(work, names, snapshots, rows);
        if (status != HL_OK)
            return status;
        frames = folded_frames;
        for (uint32_t i = 0; i < work->fold_count; i++) {
            uint32_t depth = stack_of(names, work, &work->folds[i])->depth;
            frames[work->sides[work->folds[i].from_old]] += depth;
            work->deepest = depth > work->deepest ? depth : work->deepest;
        }
    }
    hl_status status = hl_dense_open(&work->dense, names, frames, work->key_type != HL_BY_FILE);
    if (status != HL_OK)
        return status;
    if (work->key_type == HL_BY_STACK) {
        work->hashes = hl_os_resize(NULL, work->fold_count, sizeof *work->hashes);
        work->factors = hl_os_resize(NULL, work->deepest, sizeof *work->factors);
        if (work->hashes == NULL || work->factors == NULL ||
            !hl_content_index_open(&work->stacks_by_content, work->fold_count))
            return HL_NO_MEMORY;
        for (uint32_t i = 0; i < work->deepest; i++)
            work->factors[i] = hl_mix(work->dense.seed + i) | 1;
        work->groups = work->folds;
        work->folds = NULL;
        return HL_OK;
    }
    work->groups = hl_os_resize(NULL, work->dense.most, sizeof *work->groups);
    return work->groups != NULL ? HL_OK : HL_NO_MEMORY;
}

static void grouper_close(grouper *work)
{
    hl_dense_close(&work->dense);
    hl_id_map_close(&work->stacks[0]);
    hl_id_map_close(&work->stacks[1]);
    hl_os_free(work->folds);
    hl_os_free(work->stacks_by_content.numbers);
    hl_os_free(work->hashes);
    hl_os_free(work->factors);
    hl_os_free(work->groups);
}

/* 2. Groups: of stacks. */

static inline hl_difference *group_at(const grouper *work, uint32_t number)
{
    return &work->groups[number - 1];
}

static inline uint32_t number_of_frame(grouper *work, bool old, hl_location_id id)
{
    uint32_t number = *hl_id_map_at(&work->dense.locations[work->sides[old]], id);
    return HL_LIKELY(number != 0) ? number : hl_dense_add(&work->dense, work->sides[old], id);
}

static const hl_stack *stack_of_group(const grouper *work, const hl_difference *group)
{
    return stack_of(work->dense.names, work, group);
}

static bool same_lines(grouper *work, const hl_difference *group, bool old, const hl_stack *stack)
{
    const hl_stack *known = stack_of_group(work, group);
    if (known->depth != stack->depth)
        return false;
    for (uint32_t i = 0; i < stack->depth; i++)
        if (number_of_frame(work, group->from_old, known->locations[i]) !=
            number_of_frame(work, old, stack->locations[i]))
            return false;
    return true;
}

/* The place that holds the number of the group with the lines of `stack`, or will hold it. The hash is a sum of
 * products with secret factors. So no frame waits for the one before, and no author of a file knows which stacks
 * collide. */
static uint32_t *find_stack(grouper *work, bool old, const hl_stack *stack, uint32_t *hash)
{
    const hl_id_map locations = work->dense.locations[work->sides[old]];
    uint64_t sum = stack->depth;
    for (uint32_t i = 0; i < stack->depth; i++) {
        uint32_t number = *hl_id_map_at(&locations, stack->locations[i]);
        if (HL_UNLIKELY(number == 0))
            number = hl_dense_add(&work->dense, work->sides[old], stack->locations[i]);
        sum += number * work->factors[i];
    }
    *hash = (uint32_t)(sum >> 32);
    const hl_content_index *index = &work->stacks_by_content;
    uint32_t *place;
    for (size_t at = *hash & index->mask; *(place = &index->numbers[at]) != 0; at = (at + 1) & index->mask)
        if (work->hashes[*place - 1] == *hash && same_lines(work, group_at(work, *place), old, stack))
            break;
    return place;
}

/* At this point the groups are the folds. Move each to the front, or add it to one that is there. */
static void merge_folds(grouper *work)
{
    for (uint32_t i = 0; i < work->fold_count; i++) {
        hl_difference fold = work->groups[i];
        const hl_stack *stack = stack_of_group(work, &fold);
        if (stack->depth == 0)
            continue;
        uint32_t hash, *place = find_stack(work, fold.from_old, stack, &hash);
        if (*place == 0) {
            work->hashes[work->group_count] = hash;
            work->groups[work->group_count] = fold;
            *place = ++work->group_count;
        } else {
            add_sums(group_at(work, *place), false, fold.size, fold.count);
            add_sums(group_at(work, *place), true, fold.old_size, fold.old_count);
        }
    }
}

/* Of files and lines. */

/* When a location appears for the first time, its line or file may be new too. */
static uint32_t add_frame(grouper *work, bool old, hl_location_id id)
{
    uint32_t number = hl_dense_add(&work->dense, work->sides[old], id);
    if (number > work->group_count) {
        const hl_location *location = hl_names_get_location(work->dense.names[work->sides[old]], id);
        uint32_t key = work->key_type == HL_BY_FILE ? location->file : id;
        work->groups[work->group_count++] = (hl_difference){.key = key, .from_old = old};
    }
    return number;
}

static inline hl_difference *group_of_frame(grouper *work, bool old, hl_location_id id)
{
    uint32_t number = *hl_id_map_at(&work->dense.locations[work->sides[old]], id);
    return group_at(work, HL_LIKELY(number != 0) ? number : add_frame(work, old, id));
}

static void add_folds(grouper *work)
{
    for (uint32_t i = 0; i < work->fold_count; i++) {
        const hl_difference fold = work->folds[i];
        const hl_stack *stack = stack_of_group(work, &fold);
        for (uint32_t frame = 0; frame < stack->depth; frame++) {
            hl_difference *group = group_of_frame(work, fold.from_old, stack->locations[frame]);
            add_sums(group, false, fold.size, fold.count);
            if (fold.old_count != 0)
                add_sums(group, true, fold.old_size, fold.old_count);
        }
    }
}

static void add_rows(grouper *work, const hl_snapshot *snapshot, bool old)
{
    for (size_t i = 0; i < snapshot->row_count; i++) {
        const hl_row *row = &snapshot->rows[i];
        const hl_stack *stack = hl_names_get_stack(snapshot->names, row->stack);
        if (row->live != 0 && stack->depth != 0)
            add_sums(group_of_frame(work, old, stack->locations[0]), old, row->size * row->live, row->live);
    }
}

/* 3. Order. */

enum { FILE_STEP = 7, SUMS = 4 };

/* Seven bytes, and how many of them belong to the file name: "a" comes before "a\0", and both before "b". */
static void file_symbols(const void *context, hl_order_item *items, size_t count, uint32_t depth)
{
    const hl_dense *dense = context;
    for (size_t i = 0; i < count; i++) {
        const hl_dense_file *file = &dense->files[items[i].index];
        size_t start = (size_t)depth * FILE_STEP, step = 0;
        uint64_t symbol = 0;
        for (; step < FILE_STEP && start + step < file->length; step++)
            symbol = symbol << 8 | (unsigned char)file->bytes[start + step];
        items[i].symbol = symbol << 8 * (FILE_STEP - step) << 8 | step;
    }
}

static uint64_t gap(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* One of the (file, line) pairs of a group's traceback, oldest first. Ranks start at 1, so 0 means past the end. */
static uint64_t frame_symbol(const grouper *work, uint32_t number, uint32_t frame)
{
    if (work->key_type == HL_BY_FILE)
        return work->dense.files[number].rank;
    if (work->key_type == HL_BY_STACK) {
        const hl_difference *group = group_at(work, number);
        const hl_stack *stack = stack_of_group(work, group);
        if (frame >= stack->depth)
            return 0;
        const hl_id_map *locations = &work->dense.locations[work->sides[group->from_old]];
        number = *hl_id_map_at(locations, stack->locations[stack->depth - 1 - frame]);
    }
    const hl_dense_line *line = &work->dense.lines[number];
    return (uint64_t)work->dense.files[line->file].rank << 32 | line->line;
}

/* All symbols are inverted, because the highest comes first. */
static void group_symbols(const void *context, hl_order_item *items, size_t count, uint32_t depth)
{
    const grouper *work = context;
    for (size_t i = 0; i < count; i++) {
        const hl_difference *group = group_at(work, items[i].index);
        items[i].symbol = depth == 0   ? ~gap(group->size, group->old_size)
                          : depth == 1 ? ~group->size
                          : depth == 2 ? ~gap(group->count, group->old_count)
                          : depth == 3 ? ~group->count
                                       : ~frame_symbol(work, items[i].index, depth - SUMS);
    }
}

/* Stacks with equal sums often begin with the same twenty frames. So walk them stack by stack. */
static uint32_t shared_frames(const void *context, const hl_order_item *items, size_t count, uint32_t depth)
{
    const grouper *work = context;
    if (depth < SUMS || work->key_type != HL_BY_STACK || work->dense.names[1] != NULL)
        return 0;
    const hl_stack *first = stack_of_group(work, group_at(work, items[0].index));
    uint32_t skipped = depth - SUMS, shared = first->depth > skipped ? first->depth - skipped : 0;
    for (size_t i = 1; i < count && shared > 0; i++) {
        const hl_stack *stack = stack_of_group(work, group_at(work, items[i].index));
        if (stack->depth < skipped + shared)
            shared = stack->depth > skipped ? stack->depth - skipped : 0;
        uint32_t same = 0;
        while (same < shared && first->locations[first->depth - 1 - skipped - same] ==
                                    stack->locations[stack->depth - 1 - skipped - same])
            same++;
        shared = same;
    }
    return shared;
}

static void rank_files(hl_dense *dense, hl_order_item *items, hl_order_item *spare)
{
    uint32_t longest = 0;
    for (uint32_t i = 0; i < dense->file_count; i++) {
        items[i].index = i + 1;
        if (dense->files[i + 1].length > longest)
            longest = dense->files[i + 1].length;
    }
    hl_order_sort(items, spare, dense->file_count, dense->file_count, longest / FILE_STEP + 1, file_symbols, NULL,
                  dense);
    for (uint32_t i = 0; i < dense->file_count; i++)
        dense->files[items[i].index].rank = i + 1;
}

/* Put the groups into the order of `items`, in place: walk each cycle of the permutation once. */
static void arrange(hl_difference *groups, hl_order_item *items, uint32_t count)
{
    for (uint32_t start = 0; start < count; start++) {
        hl_difference first = groups[start];
        uint32_t to = start;
        for (uint32_t from; (from = items[to].index - 1) != start; to = from) {
            groups[to] = groups[from];
            items[to].index = to + 1;
        }
        groups[to] = first;
        items[to].index = to + 1;
    }
}

/* Put the groups that are sorted first, and the others behind them. Returns how many are sorted. */
static uint32_t list_groups(const grouper *work, hl_order_item *items)
{
    uint32_t listed = 0, left_out = work->group_count;
    for (uint32_t i = 0; i < work->group_count; i++) {
        const hl_difference *group = &work->groups[i];
        bool changed = group->size != group->old_size || group->count != group->old_count;
        items[changed || !work->changed_only ? listed++ : --left_out].index = i + 1;
    }
    return listed;
}

/* All three steps; afterwards work->groups is the result. */
static hl_status run(grouper *work, const hl_snapshot *snapshot, const hl_snapshot *old_snapshot)
{
    const hl_snapshot *const snapshots[2] = {snapshot, old_snapshot};
    hl_status status = grouper_open(work, snapshots);
    if (status != HL_OK)
        return status;
    if (work->key_type == HL_BY_STACK)
        merge_folds(work);
    else if (work->cumulative)
        add_folds(work);
    else
        for (int old = 0; old < 2 && snapshots[old] != NULL; old++)
            add_rows(work, snapshots[old], old);
    uint32_t files = work->dense.file_count;
    size_t room = work->group_count > files ? work->group_count : files;
    hl_order_item *items = hl_os_resize(NULL, 2 * room, sizeof *items);
    if (items == NULL)
        return HL_NO_MEMORY;
    rank_files(&work->dense, items, items + room);
    uint32_t listed = list_groups(work, items);
    uint32_t frames = work->key_type == HL_BY_STACK ? work->deepest : 1;
    hl_order_sort(items, items + room, listed, work->wanted, SUMS + frames + 1, group_symbols, shared_frames, work);
    arrange(work->groups, items, work->group_count);
    work->group_count = listed;
    hl_os_free(items);
    return HL_OK;
}

/* Hand the groups to the caller, cut to the memory that they need. */
static void *take_groups(grouper *work, size_t size)
{
    void *groups = work->groups, *cut = hl_os_resize(groups, work->group_count, size);
    work->groups = NULL;
    return cut != NULL ? cut : groups;
}

hl_status hl_group_rows(const hl_snapshot *snapshot, hl_key_type key_type, bool cumulative, hl_group **groups,
                        size_t *count)
{
    grouper work = {.key_type = key_type, .cumulative = cumulative, .wanted = SIZE_MAX};
    hl_status status = run(&work, snapshot, NULL);
    if (status == HL_OK) {
        /* The shorter groups overwrite the longer ones from the front, and never one that is still to be read. */
        for (uint32_t i = 0; i < work.group_count; i++) {
            hl_group group = {.key = work.groups[i].key, .size = work.groups[i].size, .count = work.groups[i].count};
            memcpy((char *)work.groups + i * sizeof group, &group, sizeof group);
        }
        *groups = take_groups(&work, sizeof **groups);
        *count = work.group_count;
    }
    grouper_close(&work);
    return status;
}

static hl_status compare(grouper *work, const hl_snapshot *new_snapshot, const hl_snapshot *old_snapshot,
                         hl_difference **differences, size_t *count)
{
    hl_status status = run(work, new_snapshot, old_snapshot);
    if (status == HL_OK) {
        *differences = take_groups(work, sizeof **differences);
        *count = work->group_count;
    }
    grouper_close(work);
    return status;
}

hl_status hl_group_compare(const hl_snapshot *new_snapshot, const hl_snapshot *old_snapshot, hl_key_type key_type,
                           bool cumulative, hl_difference **differences, size_t *count)
{
    grouper work = {.key_type = key_type, .cumulative = cumulative, .wanted = SIZE_MAX};
    return compare(&work, new_snapshot, old_snapshot, differences, count);
}

hl_status hl_group_changes(const hl_snapshot *new_snapshot, const hl_snapshot *old_snapshot, hl_key_type key_type,
                           size_t wanted, hl_difference **differences, size_t *count)
{
    grouper work = {.key_type = key_type, .changed_only = true, .wanted = wanted};
    return compare(&work, new_snapshot, old_snapshot, differences, count);
}
