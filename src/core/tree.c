/* tree.c: see tree.h.
 *
 *   1. Names are translated into the tree's book (translation.h).
 *   2. Paths: each distinct stack is walked once, from its oldest frame, over nodes found by (parent, location). Stacks
 *      that follow each other mostly begin alike, so the path of the last is kept, and followed anew from where they part.
 *      Stacks that were cut, if they are to be joined, are only entered in the tree's book.
 *   3. Joints: cut stacks are walked, those that lack the fewest frames first: their frames tell where those that lack
 *      more belong. Each begins at the joint of the node that its oldest frame was most likely called from.
 *   4. Order: nodes as they came up (parents first) are put into preorder, by the sizes of their subtrees.
 *   5. Sums.
 */

#include "tree.h"

#include <stdlib.h>
#include <string.h>

#include "translation.h"

typedef struct {
    uint32_t parent;
    hl_location_id location;
    uint32_t depth;  /* frames from the thread's first to this one; 0: a joint */
    uint32_t stacks; /* distinct stacks that end at it; before the joints are made, at or below it */
    uint32_t alike;  /* the next node with the same location; set from step 3 on */
} node;

typedef struct {
    hl_tree *tree;
    hl_table nodes; /* ids from 1: the root has none, and is 0 */
    uint32_t *
        *ends; /* of each snapshot: the node at which each row's stack ends, or IS_CUT and a stack of the tree's book */
    uint64_t seed;
    /* The last stack of this snapshot that was walked, if any, where it began, and its path from the oldest frame on. */
    const hl_stack *last;
    uint32_t last_start;
    uint32_t *path;
    size_t path_room;
    /* Step 3: the first node of each location, and the joints' locations, 0 as long as there is none. */
    uint32_t *alike;
    hl_location_id joint, unknown;
    uint32_t matched; /* how many of the last stack's frames have decided where it begins */
} building;

enum { MOST_NODES = (1 << 30) - 1, MOST_CANDIDATES = 256, MOST_MATCHED = 64 };
#define IS_CUT (UINT32_C(1) << 31)

/* 2. Paths. */

static node *node_at(const building *work, uint32_t id)
{
    return hl_table_at(&work->nodes, id);
}

static uint32_t hash_of(const building *work, uint32_t parent, hl_location_id location)
{
    return (uint32_t)hl_mix(work->seed ^ ((uint64_t)parent << 32 | location));
}

/* The node, or 0. */
static uint32_t look_up(const building *work, uint32_t parent, hl_location_id location)
{
    uint32_t hash = hash_of(work, parent, location);
    for (uint32_t at = hl_table_first(&work->nodes, hash); at != 0; at = hl_table_link(&work->nodes, at)->next) {
        if (hl_table_link(&work->nodes, at)->hash != hash)
            continue;
        const node *found = node_at(work, at);
        if (found->parent == parent && found->location == location)
            return at;
    }
    return 0;
}

static hl_status find_node(building *work, uint32_t parent, hl_location_id location, uint32_t depth, uint32_t *id)
{
    *id = look_up(work, parent, location);
    if (*id != 0)
        return HL_OK;
    hl_status status = hl_table_add(&work->nodes, hash_of(work, parent, location), id);
    if (status != HL_OK)
        return status;
    node *made = node_at(work, *id);
    *made = (node){.parent = parent, .location = location, .depth = depth};
    if (work->alike != NULL && location != work->joint && location != work->unknown) {
        made->alike = work->alike[location];
        work->alike[location] = *id;
    }
    return HL_OK;
}

/* How many frames two stacks of one book have in common, from the oldest on. */
static uint32_t common_frames(const hl_stack *stack, const hl_stack *other)
{
    uint32_t most = stack->depth < other->depth ? stack->depth : other->depth, common = 0;
    while (common < most && stack->locations[stack->depth - 1 - common] == other->locations[other->depth - 1 - common])
        common++;
    return common;
}

/* From the node `start`. `translated` is NULL for a stack of the tree's book, of which `missing` frames are not known. */
static hl_status walk(building *work, hl_translation *translated, const hl_stack *stack, uint32_t start,
                      uint32_t missing, uint32_t *end)
{
    uint32_t known = work->last != NULL && work->last_start == start ? common_frames(stack, work->last) : 0;
    *end = known > 0 ? work->path[known - 1] : start;
    for (uint32_t i = known; i < stack->depth; i++) {
        hl_location_id location = stack->locations[stack->depth - 1 - i];
        bool fresh; /* or not: nothing in the tree's book is ever released, so its ids have no gaps */
        hl_status status = HL_OK;
        if (translated != NULL)
            status = hl_translation_location(translated, location, &location, &fresh);
        if (status == HL_OK)
            status = find_node(work, *end, location, missing + i + 1, &work->path[i]);
        if (status != HL_OK)
            return status;
        *end = work->path[i];
    }
    if (*end != 0)
        node_at(work, *end)->stacks++;
    work->last = stack;
    work->last_start = start;
    return HL_OK;
}

/* A stack of one frame tells nothing about others, and others nothing about it: at a limit of one frame all are. */
static bool is_cut(const building *work, const hl_stack *stack)
{
    return work->tree->joined && stack->depth > 1 && stack->total > stack->depth;
}

static hl_status enter_cut(building *work, hl_translation *translated, const hl_stack *stack, uint32_t *end)
{
    hl_status status = HL_OK;
    bool fresh;
    for (uint32_t i = 0; i < stack->depth && status == HL_OK; i++)
        status = hl_translation_location(translated, stack->locations[i], &work->path[i], &fresh);
    if (status == HL_OK)
        status = hl_book_stack(work->tree->book, work->path, stack->depth, stack->total, end);
    *end |= IS_CUT;
    work->last = NULL; /* its path is no longer there */
    return status;
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
            const hl_stack *stack = hl_book_get_stack(translated->from, row->stack);
            hl_status status = is_cut(work, stack) ? enter_cut(work, translated, stack, &ends[i])
                                                   : walk(work, translated, stack, 0, 0, &ends[i]);
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

/* 3. Joints. */

typedef struct {
    uint32_t missing; /* frames */
    hl_stack_id stack;
} cut;

static int compare_cuts(const void *left, const void *right)
{
    const cut *a = left, *b = right;
    if (a->missing != b->missing)
        return a->missing < b->missing ? -1 : 1;
    return a->stack < b->stack ? -1 : a->stack > b->stack;
}

/* The location of a joint, made when it is first needed. */
static hl_status joint_location(building *work, const char *name, hl_location_id *id)
{
    hl_string_id file = 0, function = 0;
    if (*id != 0)
        return HL_OK;
    hl_status status = hl_book_string(work->tree->book, HL_TREE_CUT, strlen(HL_TREE_CUT), &file);
    if (status == HL_OK)
        status = hl_book_string(work->tree->book, name, strlen(name), &function);
    return status == HL_OK ? hl_book_location(work->tree->book, file, 0, function, id) : status;
}

/* How many of a stack's frames, from the oldest on, are a path that begins at this node, which is the first. */
static uint32_t matched_frames(const building *work, uint32_t at, const hl_stack *stack)
{
    uint32_t most = stack->depth < MOST_MATCHED ? stack->depth : MOST_MATCHED, count = 1;
    while (count < most && (at = look_up(work, at, stack->locations[stack->depth - 1 - count])) != 0)
        count++;
    return count;
}

/* The node of the oldest frame of a cut stack in another stack, or 0: at the same depth if there is one, then followed
 * by as many of the same frames as possible, then in as many stacks as possible. */
static uint32_t most_likely(building *work, const hl_stack *stack, uint32_t missing)
{
    uint32_t best = 0, looked = 0;
    bool best_at_depth = false;
    work->matched = 0;
    for (uint32_t at = work->alike[stack->locations[stack->depth - 1]]; at != 0 && looked < MOST_CANDIDATES; looked++) {
        const node *here = node_at(work, at);
        bool at_depth = here->depth == missing + 1;
        if (at_depth >= best_at_depth) {
            uint32_t frames = matched_frames(work, at, stack);
            if (best == 0 || at_depth > best_at_depth || frames > work->matched ||
                (frames == work->matched && here->stacks > node_at(work, best)->stacks)) {
                best = at;
                work->matched = frames;
                best_at_depth = at_depth;
            }
        }
        at = here->alike;
    }
    return best;
}

/* The joint that a cut stack begins at. */
static hl_status find_joint(building *work, const hl_stack *stack, uint32_t missing, uint32_t *joint)
{
    uint32_t likely = most_likely(work, stack, missing), caller = likely != 0 ? node_at(work, likely)->parent : 0;
    if (caller == 0) {
        hl_status status = joint_location(work, HL_TREE_UNKNOWN, &work->unknown);
        return status == HL_OK ? find_node(work, 0, work->unknown, 0, joint) : status;
    }
    hl_location_id location = node_at(work, caller)->location;
    if (location == work->unknown ||
        location == work->joint) { /* its oldest frame is that of a stack that was joined */
        *joint = caller;
        return HL_OK;
    }
    hl_status status = joint_location(work, HL_TREE_JOINT, &work->joint);
    return status == HL_OK ? find_node(work, caller, work->joint, 0, joint) : status;
}

/* Link the nodes of each location, and let their stacks be those below them too. */
static hl_status link_alike(building *work)
{
    work->alike = hl_os_alloc((size_t)work->tree->book->locations.used + 1, sizeof *work->alike);
    if (work->alike == NULL)
        return HL_NO_MEMORY;
    for (uint32_t id = work->nodes.used; id > 0; id--) {
        node *here = node_at(work, id);
        here->alike = work->alike[here->location];
        work->alike[here->location] = id;
        if (here->parent != 0)
            node_at(work, here->parent)->stacks += here->stacks;
    }
    return HL_OK;
}

static hl_status join(building *work, const cut *cuts, uint32_t count, uint32_t *nodes)
{
    hl_status status = link_alike(work);
    work->last = NULL;
    for (uint32_t i = 0; i < count && status == HL_OK; i++) {
        const hl_stack *stack = hl_book_get_stack(work->tree->book, cuts[i].stack);
        uint32_t start = work->last_start;
        bool alike = work->last != NULL && cuts[i].missing == cuts[i - 1].missing &&
                     common_frames(stack, work->last) > work->matched;
        if (!alike)
            status = find_joint(work, stack, cuts[i].missing, &start);
        if (status == HL_OK)
            status = walk(work, NULL, stack, start, cuts[i].missing, &nodes[cuts[i].stack]);
    }
    return status;
}

/* Walk the stacks that were entered in the tree's book, and put the nodes they end at in place of them. */
static hl_status join_cut_stacks(building *work, const hl_snapshot *const *snapshots)
{
    uint32_t count = work->tree->book->stacks.used;
    if (count == 0)
        return HL_OK;
    cut *cuts = hl_os_alloc(count, sizeof *cuts);
    uint32_t *nodes = hl_os_alloc((size_t)count + 1, sizeof *nodes);
    hl_status status = cuts != NULL && nodes != NULL ? HL_OK : HL_NO_MEMORY;
    if (status == HL_OK) {
        for (uint32_t i = 0; i < count; i++) {
            const hl_stack *stack = hl_book_get_stack(work->tree->book, i + 1);
            cuts[i] = (cut){.missing = stack->total - stack->depth, .stack = i + 1};
        }
        qsort(cuts, count, sizeof *cuts, compare_cuts);
        status = join(work, cuts, count, nodes);
    }
    for (size_t i = 0; i < work->tree->sums_count && status == HL_OK; i++)
        for (size_t row = 0; snapshots[i] != NULL && row < snapshots[i]->row_count; row++)
            if (work->ends[i][row] & IS_CUT)
                work->ends[i][row] = nodes[work->ends[i][row] & ~IS_CUT];
    hl_os_free(cuts);
    hl_os_free(nodes);
    return status;
}

/* 4. Order. */

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

hl_status hl_tree_open(const hl_snapshot *const *snapshots, size_t count, bool joined, hl_tree *tree)
{
    building work = {.tree = tree, .seed = hl_os_random()};
    *tree = (hl_tree){.sums_count = count, .joined = joined};
    tree->sums = hl_os_alloc(count, sizeof *tree->sums);
    work.ends = hl_os_alloc(count, sizeof *work.ends);
    hl_status status = tree->sums != NULL && work.ends != NULL ? hl_book_new(false, &tree->book) : HL_NO_MEMORY;
    hl_table_open(&work.nodes, sizeof(node), MOST_NODES, false);
    for (size_t i = 0; i < count && status == HL_OK; i++)
        if (snapshots[i] != NULL)
            status = add_snapshot(&work, snapshots[i], &work.ends[i]);
    if (status == HL_OK)
        status = join_cut_stacks(&work, snapshots);
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
    if (tree->book != NULL)
        hl_book_drop(tree->book);
    *tree = (hl_tree){0};
}
