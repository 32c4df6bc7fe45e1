/* tree.c: see tree.h.
 *
 *   1. Names are translated into the tree's name table (translation.h).
 *   2. Paths: each distinct stack is walked once, from its oldest frame, over nodes found by (parent, location).
 *      Stacks that follow each other usually begin alike. So the path of the last stack is kept, and the next one is
 *      followed from where they part. Cut stacks that are to be joined are only entered in the tree's name table.
 *   3. Joints: cut stacks are walked, each from where it was most likely called (tree_joints.c).
 *   4. Order: nodes in the order in which they came up (parents first) are put into preorder, by the sizes of their
 *      subtrees.
 *   5. Sums.
 */

#include "tree_building.h"

enum { MOST_NODES = (1 << 30) - 1 };

/* 2. Paths. */

hl_status hl_tree_find_node(hl_tree_building *work, uint32_t parent, hl_location_id location, uint32_t depth,
                            uint32_t *id)
{
    *id = hl_tree_look_up(work, parent, location);
    if (*id != 0)
        return HL_OK;
    hl_status status = hl_table_add(&work->nodes, hl_tree_hash(work, parent, location), id);
    if (status != HL_OK)
        return status;
    hl_tree_node *made = hl_tree_node_at(work, *id);
    *made = (hl_tree_node){.parent = parent, .location = location, .depth = depth};
    if (work->alike != NULL && location != work->joint && location != work->unknown) {
        made->alike = work->alike[location];
        work->alike[location] = *id;
    }
    return HL_OK;
}

hl_status hl_tree_walk(hl_tree_building *work, hl_translation *translated, const hl_stack *stack, uint32_t start,
                       uint32_t missing, uint32_t *end)
{
    uint32_t known = work->last != NULL && work->last_start == start ? hl_tree_common_frames(stack, work->last) : 0;
    *end = known > 0 ? work->path[known - 1] : start;
    for (uint32_t i = known; i < stack->depth; i++) {
        hl_location_id location = stack->locations[stack->depth - 1 - i];
        bool fresh; /* not needed: nothing in the tree's name table is ever released, so its ids have no gaps */
        hl_status status = HL_OK;
        if (translated != NULL)
            status = hl_translation_location(translated, location, &location, &fresh);
        if (status == HL_OK)
            status = hl_tree_find_node(work, *end, location, missing + i + 1, &work->path[i]);
        if (status != HL_OK)
            return status;
        *end = work->path[i];
    }
    if (*end != 0)
        hl_tree_node_at(work, *end)->stacks++;
    work->last = stack;
    work->last_start = start;
    return HL_OK;
}

/* A stack of one frame says nothing about others, and others say nothing about it. With a limit of one frame, all
 * stacks are like this. */
static bool is_cut(const hl_tree_building *work, const hl_stack *stack)
{
    return work->tree->joined && stack->depth > 1 && stack->total > stack->depth;
}

static hl_status enter_cut(hl_tree_building *work, hl_translation *translated, const hl_stack *stack, uint32_t *end)
{
    hl_status status = HL_OK;
    bool fresh;
    for (uint32_t i = 0; i < stack->depth && status == HL_OK; i++)
        status = hl_translation_location(translated, stack->locations[i], &work->path[i], &fresh);
    if (status == HL_OK)
        status = hl_names_stack(work->tree->names, work->path, stack->depth, stack->total, end);
    *end |= HL_TREE_IS_CUT;
    work->last = NULL; /* its path is no longer there */
    return status;
}

static hl_status add_rows(hl_tree_building *work, hl_translation *translated, const hl_snapshot *snapshot,
                          uint32_t *ends)
{
    uint64_t bytes = 0, blocks = 0;
    for (size_t i = 0; i < snapshot->row_count; i++) {
        const hl_row *row = &snapshot->rows[i];
        uint64_t more;
        if (row->live == 0)
            continue;
        if (__builtin_mul_overflow(row->size, row->live, &more) || __builtin_add_overflow(bytes, more, &bytes) ||
            __builtin_add_overflow(blocks, row->live, &blocks) || bytes > INT64_MAX || blocks > INT64_MAX)
            return HL_TOO_LARGE;
        uint32_t *known = hl_id_map_at(&translated->stacks, row->stack);
        if (*known == 0) {
            const hl_stack *stack = hl_names_get_stack(translated->from, row->stack);
            hl_status status = is_cut(work, stack) ? enter_cut(work, translated, stack, &ends[i])
                                                   : hl_tree_walk(work, translated, stack, 0, 0, &ends[i]);
            if (status != HL_OK)
                return status;
            *known = ends[i] + 1;
        }
        ends[i] = *known - 1;
    }
    return HL_OK;
}

static hl_status add_snapshot(hl_tree_building *work, const hl_snapshot *snapshot, uint32_t **ends)
{
    hl_translation translated;
    hl_status status = hl_translation_open(&translated, work->tree->names, snapshot);
    uint32_t deepest = translated.deepest;
    work->last = NULL;
    if (status == HL_OK && deepest > work->path_room) {
        uint32_t *grown = hl_os_resize(work->path, deepest, sizeof *work->path);
        if (grown != NULL) {
            work->path = grown;
            work->path_room = deepest;
        }
        status = grown != NULL ? HL_OK : HL_NO_MEMORY;
    }
    *ends = status == HL_OK ? hl_os_alloc(snapshot->row_count, sizeof **ends) : NULL;
    if (*ends != NULL)
        status = add_rows(work, &translated, snapshot, *ends);
    else
        status = HL_NO_MEMORY;
    hl_translation_close(&translated);
    return status;
}

/* 4. Order. */

/* Fill the tree's nodes; places[id] is where the node went. */
static void order(const hl_tree_building *work, uint32_t *places, uint32_t *sizes)
{
    hl_tree *tree = work->tree;
    for (uint32_t id = 0; id < tree->node_count; id++)
        sizes[id] = 1;
    for (uint32_t id = tree->node_count - 1; id > 0; id--)
        sizes[hl_tree_node_at(work, id)->parent] += sizes[id];
    /* From here on, for a node that has its place, sizes[id] is where its next child goes. */
    tree->parents[0] = tree->locations[0] = places[0] = 0;
    tree->ends[0] = tree->node_count;
    sizes[0] = 1;
    for (uint32_t id = 1; id < tree->node_count; id++) {
        const hl_tree_node *here = hl_tree_node_at(work, id);
        uint32_t place = sizes[here->parent], size = sizes[id];
        places[id] = place;
        tree->parents[place] = places[here->parent];
        tree->locations[place] = here->location;
        tree->ends[place] = place + size;
        sizes[here->parent] += size;
        sizes[id] = place + 1;
    }
}

/* 5. Sums. */

static bool sums_open(hl_tree_sums *sums, uint32_t count)
{
    return (sums->own_bytes = hl_os_alloc(count, sizeof(uint64_t))) != NULL &&
           (sums->own_blocks = hl_os_alloc(count, sizeof(uint64_t))) != NULL &&
           (sums->bytes = hl_os_alloc(count, sizeof(uint64_t))) != NULL &&
           (sums->blocks = hl_os_alloc(count, sizeof(uint64_t))) != NULL;
}

static void add_up(hl_tree_sums *sums, const hl_tree *tree, const hl_snapshot *snapshot, const uint32_t *ends,
                   const uint32_t *places)
{
    for (size_t i = 0; i < snapshot->row_count; i++) {
        uint32_t place = places[ends[i]];
        sums->own_bytes[place] += snapshot->rows[i].size * snapshot->rows[i].live;
        sums->own_blocks[place] += snapshot->rows[i].live;
    }
    for (uint32_t i = tree->node_count; i-- > 0;) {
        sums->bytes[i] += sums->own_bytes[i];
        sums->blocks[i] += sums->own_blocks[i];
        if (i > 0) {
            sums->bytes[tree->parents[i]] += sums->bytes[i];
            sums->blocks[tree->parents[i]] += sums->blocks[i];
        }
    }
}

static hl_status finish(hl_tree_building *work, const hl_snapshot *const *snapshots)
{
    hl_tree *tree = work->tree;
    tree->location_count = tree->names->locations.used;
    tree->node_count = work->nodes.used + 1;
    tree->parents = hl_os_alloc(tree->node_count, sizeof *tree->parents);
    tree->locations = hl_os_alloc(tree->node_count, sizeof *tree->locations);
    tree->ends = hl_os_alloc(tree->node_count, sizeof *tree->ends);
    uint32_t *places = hl_os_alloc(tree->node_count, sizeof *places);
    uint32_t *sizes = hl_os_alloc(tree->node_count, sizeof *sizes);
    bool room =
        tree->parents != NULL && tree->locations != NULL && tree->ends != NULL && places != NULL && sizes != NULL;
    for (size_t i = 0; i < tree->sums_count && room; i++)
        room = snapshots[i] == NULL || sums_open(&tree->sums[i], tree->node_count);
    if (room) {
        order(work, places, sizes);
        for (size_t i = 0; i < tree->sums_count; i++)
            if (snapshots[i] != NULL)
                add_up(&tree->sums[i], tree, snapshots[i], work->ends[i], places);
    }
    hl_os_free(places);
    hl_os_free(sizes);
    return room ? HL_OK : HL_NO_MEMORY;
}

hl_status hl_tree_open(const hl_snapshot *const *snapshots, size_t count, bool joined, hl_tree *tree)
{
    hl_tree_building work = {.tree = tree, .seed = hl_os_random()};
    *tree = (hl_tree){.sums_count = count, .joined = joined};
    tree->sums = hl_os_alloc(count, sizeof *tree->sums);
    work.ends = hl_os_alloc(count, sizeof *work.ends);
    hl_status status = tree->sums != NULL && work.ends != NULL ? hl_names_new(false, &tree->names) : HL_NO_MEMORY;
    hl_table_open(&work.nodes, sizeof(hl_tree_node), MOST_NODES, false);
    for (size_t i = 0; i < count && status == HL_OK; i++)
        if (snapshots[i] != NULL)
            status = add_snapshot(&work, snapshots[i], &work.ends[i]);
    if (status == HL_OK)
        status = hl_tree_join(&work, snapshots);
    if (status == HL_OK)
        status = finish(&work, snapshots);
    for (size_t i = 0; i < count && work.ends != NULL; i++)
        hl_os_free(work.ends[i]);
    hl_os_free(work.ends);
    hl_os_free(work.path);
    hl_os_free(work.alike);
    hl_table_close(&work.nodes);
    if (status != HL_OK)
        hl_tree_close(tree);
    return status;
}

void hl_tree_close(hl_tree *tree)
{
    for (size_t i = 0; i < tree->sums_count && tree->sums != NULL; i++) {
        hl_os_free(tree->sums[i].own_bytes);
        hl_os_free(tree->sums[i].own_blocks);
        hl_os_free(tree->sums[i].bytes);
        hl_os_free(tree->sums[i].blocks);
    }
    hl_os_free(tree->sums);
    hl_os_free(tree->parents);
    hl_os_free(tree->locations);
    hl_os_free(tree->ends);
    if (tree->names != NULL)
        hl_names_drop(tree->names);
    *tree = (hl_tree){0};
}
