/* tree.c: see tree.h.
 *
 *   1. Names are translated into the tree's book (translation.h).
 *   2. Paths: each distinct stack is walked once, from its oldest frame, over nodes found by (parent, location). Stacks
 *      that follow each other mostly begin alike, so the path of the last is kept, and followed anew from where they part.
 *   3. Order: nodes as they came up (parents first) are put into preorder, by the sizes of their subtrees.
 *   4. Sums.
 */

#include "tree.h"

#include "translation.h"

typedef struct {
    uint32_t parent;
    hl_location_id location;
} node;

typedef struct {
    hl_tree *tree;
    hl_table nodes;  /* ids from 1: the root has none, and is 0 */
    uint32_t **ends; /* of each snapshot: the node at which each row's stack ends */
    uint64_t seed;
    /* The last stack of this snapshot that was walked, if any, and its path from the oldest frame on. */
    const hl_stack *last;
    uint32_t *path;
    size_t path_room;
} building;

enum { MOST_NODES = (1 << 30) - 1 };

/* 2. Paths. */

static hl_status find_node(building *work, uint32_t parent, hl_location_id location, uint32_t *id)
{
    uint32_t hash = (uint32_t)hl_mix(work->seed ^ ((uint64_t)parent << 32 | location));
    for (uint32_t at = hl_table_first(&work->nodes, hash); at != 0; at = hl_table_link(&work->nodes, at)->next) {
        if (hl_table_link(&work->nodes, at)->hash != hash)
            continue;
        const node *found = hl_table_at(&work->nodes, at);
        if (found->parent == parent && found->location == location) {
            *id = at;
            return HL_OK;
        }
    }
    hl_status status = hl_table_add(&work->nodes, hash, id);
    if (status == HL_OK)
        *(node *)hl_table_at(&work->nodes, *id) = (node){.parent = parent, .location = location};
    return status;
}

/* How many frames two stacks of one book have in common, from the oldest on. */
static uint32_t common_frames(const hl_stack *stack, const hl_stack *other)
{
    uint32_t most = stack->depth < other->depth ? stack->depth : other->depth, common = 0;
    while (common < most && stack->locations[stack->depth - 1 - common] == other->locations[other->depth - 1 - common])
        common++;
    return common;
}

static hl_status walk(building *work, hl_translation *translated, const hl_stack *stack, uint32_t *end)
{
    uint32_t known = work->last != NULL ? common_frames(stack, work->last) : 0;
    *end = known > 0 ? work->path[known - 1] : 0;
    for (uint32_t i = known; i < stack->depth; i++) {
        hl_location_id location;
        bool fresh; /* or not: nothing in the tree's book is ever released, so its ids have no gaps */
        hl_status status =
            hl_translation_location(translated, stack->locations[stack->depth - 1 - i], &location, &fresh);
        if (status == HL_OK)
            status = find_node(work, *end, location, &work->path[i]);
        if (status != HL_OK)
            return status;
        *end = work->path[i];
    }
    work->last = stack;
    return HL_OK;
}

static hl_status add_rows(building *work, hl_translation *translated, const hl_snapshot *snapshot, uint32_t *ends)
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
        uint32_t *known = hl_numbering_at(&translated->stacks, row->stack);
        if (*known == 0) {
            hl_status status = walk(work, translated, hl_book_get_stack(translated->from, row->stack), &ends[i]);
            if (status != HL_OK)
                return status;
            *known = ends[i] + 1;
        }
        ends[i] = *known - 1;
    }
    return HL_OK;
}

static hl_status add_snapshot(building *work, const hl_snapshot *snapshot, uint32_t **ends)
{
    hl_translation translated;
    hl_status status = hl_translation_open(&translated, work->tree->book, snapshot);
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

/* 3. Order. */

/* Fill the tree's nodes; places[id] is where the node went. */
static void order(const building *work, uint32_t *places, uint32_t *sizes)
{
    hl_tree *tree = work->tree;
    for (uint32_t id = 0; id < tree->node_count; id++)
        sizes[id] = 1;
    for (uint32_t id = tree->node_count - 1; id > 0; id--)
        sizes[((const node *)hl_table_at(&work->nodes, id))->parent] += sizes[id];
    /* From here on sizes[id] is where the next child of a node goes that has its place already. */
    tree->parents[0] = tree->locations[0] = places[0] = 0;
    tree->ends[0] = tree->node_count;
    sizes[0] = 1;
    for (uint32_t id = 1; id < tree->node_count; id++) {
        const node *here = hl_table_at(&work->nodes, id);
        uint32_t place = sizes[here->parent], size = sizes[id];
        places[id] = place;
        tree->parents[place] = places[here->parent];
        tree->locations[place] = here->location;
        tree->ends[place] = place + size;
        sizes[here->parent] += size;
        sizes[id] = place + 1;
    }
}

/* 4. Sums. */

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

static hl_status finish(building *work, const hl_snapshot *const *snapshots)
{
    hl_tree *tree = work->tree;
    tree->location_count = tree->book->locations.used;
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

hl_status hl_tree_open(const hl_snapshot *const *snapshots, size_t count, hl_tree *tree)
{
    building work = {.tree = tree, .seed = hl_os_random()};
    *tree = (hl_tree){.sums_count = count};
    tree->sums = hl_os_alloc(count, sizeof *tree->sums);
    work.ends = hl_os_alloc(count, sizeof *work.ends);
    hl_status status = tree->sums != NULL && work.ends != NULL ? hl_book_new(false, &tree->book) : HL_NO_MEMORY;
    if (status == HL_OK)
        status = hl_table_open(&work.nodes, sizeof(node), MOST_NODES, false);
    for (size_t i = 0; i < count && status == HL_OK; i++)
        if (snapshots[i] != NULL)
            status = add_snapshot(&work, snapshots[i], &work.ends[i]);
    if (status == HL_OK)
        status = finish(&work, snapshots);
    for (size_t i = 0; i < count && work.ends != NULL; i++)
        hl_os_free(work.ends[i]);
    hl_os_free(work.ends);
    hl_os_free(work.path);
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
    if (tree->book != NULL)
        hl_book_drop(tree->book);
    *tree = (hl_tree){0};
}
