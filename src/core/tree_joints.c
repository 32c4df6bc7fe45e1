/* tree_joints.c: cut stacks in a call tree. See tree.h.
 *
 * Stacks that lack the fewest frames are walked first: their frames show where those that lack more belong. Each
 * begins at the joint of the node that its oldest frame was most likely called from. Searches are bounded, because
 * files may hold anything: by MOST_CANDIDATES nodes, MOST_MATCHED frames of each, and callers of MOST_PATH frames.
 */

#include <stdlib.h>
#include <string.h>

#include "tree_building.h"

enum { MOST_CANDIDATES = 256, MOST_MATCHED = 64, MOST_PATH = 512, MOST_WAYS = 8 };

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
static hl_status joint_location(hl_tree_building *work, const char *name, hl_location_id *id)
{
    hl_string_id file = 0, function = 0;
    if (*id != 0)
        return HL_OK;
    hl_status status = hl_names_string(work->tree->names, HL_TREE_CUT, strlen(HL_TREE_CUT), &file);
    if (status == HL_OK)
        status = hl_names_string(work->tree->names, name, strlen(name), &function);
    return status == HL_OK ? hl_names_location(work->tree->names, file, 0, function, id) : status;
}

/* How many of a stack's frames, from the oldest on, are a path that begins with this node. */
static uint32_t matched_frames(const hl_tree_building *work, uint32_t at, const hl_stack *stack)
{
    uint32_t most = stack->depth < MOST_MATCHED ? stack->depth : MOST_MATCHED, count = 1;
    while (count < most && (at = hl_tree_look_up(work, at, stack->locations[stack->depth - 1 - count])) != 0)
        count++;
    return count;
}

/* The node of the oldest frame of a cut stack in another stack, or 0. A node at the same depth is best, then one
 * followed by as many of the same frames as possible, then one in as many stacks as possible. */
static uint32_t most_likely(hl_tree_building *work, const hl_stack *stack, uint32_t missing)
{
    uint32_t best = 0, looked = 0;
    bool best_at_depth = false;
    work->matched = 0;
    for (uint32_t at = work->alike[stack->locations[stack->depth - 1]]; at != 0 && looked < MOST_CANDIDATES; looked++) {
        const hl_tree_node *here = hl_tree_node_at(work, at);
        bool at_depth = here->depth == missing + 1;
        if (at_depth >= best_at_depth) {
            uint32_t frames = matched_frames(work, at, stack);
            if (best == 0 || at_depth > best_at_depth || frames > work->matched ||
                (frames == work->matched && here->stacks > hl_tree_node_at(work, best)->stacks)) {
                best = at;
                work->matched = frames;
                best_at_depth = at_depth;
            }
        }
        at = here->alike;
    }
    return best;
}

static bool is_joint(const hl_tree_building *work, uint32_t id)
{
    hl_location_id location = hl_tree_node_at(work, id)->location;
    return location == work->joint || location == work->unknown;
}

typedef struct {
    uint32_t node, joints;
} way;

/* Enter a way among the `count` existing ones, those with few joints first and at most MOST_WAYS. Returns how many
 * there are then. */
static uint32_t add_way(way *ways, uint32_t count, way added)
{
    uint32_t at = count;
    while (at > 0 && ways[at - 1].joints > added.joints)
        at--;
    if (at == MOST_WAYS)
        return count;
    count += count < MOST_WAYS;
    memmove(ways + at + 1, ways + at, (count - at - 1) * sizeof *ways);
    ways[at] = added;
    return count;
}

/* The continuations of `ways` by one frame, directly or through a joint. */
static uint32_t step(const hl_tree_building *work, const way *ways, uint32_t count, hl_location_id frame, way *next)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t joint = hl_tree_look_up(work, ways[i].node, ways[i].node == 0 ? work->unknown : work->joint);
        uint32_t direct = hl_tree_look_up(work, ways[i].node, frame);
        uint32_t joined = joint != 0 ? hl_tree_look_up(work, joint, frame) : 0;
        if (direct != 0)
            found = add_way(next, found, (way){.node = direct, .joints = ways[i].joints});
        if (joined != 0)
            found = add_way(next, found, (way){.node = joined, .joints = ways[i].joints + 1});
    }
    return found;
}

/* The node with the same frames as this one that is below the fewest joints. Without it, each of several stacks that
 * lack one frame more than the previous one would be below one joint more. */
static uint32_t fewest_joints(const hl_tree_building *work, uint32_t caller)
{
    hl_location_id frames[MOST_PATH]; /* the newest first */
    uint32_t depth = 0, count = 1;
    way ways[MOST_WAYS] = {{0, 0}}, next[MOST_WAYS];
    for (uint32_t at = caller; at != 0; at = hl_tree_node_at(work, at)->parent) {
        if (is_joint(work, at))
            continue;
        if (depth == MOST_PATH)
            return caller;
        frames[depth++] = hl_tree_node_at(work, at)->location;
    }
    for (; depth > 0 && count > 0; depth--) {
        count = step(work, ways, count, frames[depth - 1], next);
        memcpy(ways, next, count * sizeof *ways);
    }
    return count > 0 ? ways[0].node : caller;
}

/* The joint that a cut stack begins at. */
static hl_status find_joint(hl_tree_building *work, const hl_stack *stack, uint32_t missing, uint32_t *joint)
{
    uint32_t likely = most_likely(work, stack, missing),
             caller = likely != 0 ? hl_tree_node_at(work, likely)->parent : 0;
    if (caller == 0) {
        hl_status status = joint_location(work, HL_TREE_UNKNOWN, &work->unknown);
        return status == HL_OK ? hl_tree_find_node(work, 0, work->unknown, 0, joint) : status;
    }
    if (is_joint(work, caller)) { /* the oldest frame belongs to a stack that was joined */
        *joint = caller;
        return HL_OK;
    }
    hl_status status = joint_location(work, HL_TREE_JOINT, &work->joint);
    return status == HL_OK ? hl_tree_find_node(work, fewest_joints(work, caller), work->joint, 0, joint) : status;
}

/* Link the nodes of each location, and add the stacks below each node to its own. */
static hl_status link_alike(hl_tree_building *work)
{
    work->alike = hl_os_alloc((size_t)work->tree->names->locations.used + 1, sizeof *work->alike);
    if (work->alike == NULL)
        return HL_NO_MEMORY;
    for (uint32_t id = work->nodes.used; id > 0; id--) {
        hl_tree_node *here = hl_tree_node_at(work, id);
        here->alike = work->alike[here->location];
        work->alike[here->location] = id;
        if (here->parent != 0)
            hl_tree_node_at(work, here->parent)->stacks += here->stacks;
    }
    return HL_OK;
}

static hl_status join(hl_tree_building *work, const cut *cuts, uint32_t count, uint32_t *nodes)
{
    hl_status status = link_alike(work);
    work->last = NULL;
    for (uint32_t i = 0; i < count && status == HL_OK; i++) {
        const hl_stack *stack = hl_names_get_stack(work->tree->names, cuts[i].stack);
        uint32_t start = work->last_start;
        bool alike = work->last != NULL && cuts[i].missing == cuts[i - 1].missing &&
                     hl_tree_common_frames(stack, work->last) > work->matched;
        if (!alike)
            status = find_joint(work, stack, cuts[i].missing, &start);
        if (status == HL_OK)
            status = hl_tree_walk(work, NULL, stack, start, cuts[i].missing, &nodes[cuts[i].stack]);
    }
    return status;
}

hl_status hl_tree_join(hl_tree_building *work, const hl_snapshot *const *snapshots)
{
    uint32_t count = work->tree->names->stacks.used;
    if (count == 0)
        return HL_OK;
    cut *cuts = hl_os_alloc(count, sizeof *cuts);
    uint32_t *nodes = hl_os_alloc((size_t)count + 1, sizeof *nodes);
    hl_status status = cuts != NULL && nodes != NULL ? HL_OK : HL_NO_MEMORY;
    if (status == HL_OK) {
        for (uint32_t i = 0; i < count; i++) {
            const hl_stack *stack = hl_names_get_stack(work->tree->names, i + 1);
            cuts[i] = (cut){.missing = stack->total - stack->depth, .stack = i + 1};
        }
        qsort(cuts, count, sizeof *cuts, compare_cuts);
        status = join(work, cuts, count, nodes);
    }
    for (size_t i = 0; i < work->tree->sums_count && status == HL_OK; i++)
        for (size_t row = 0; snapshots[i] != NULL && row < snapshots[i]->row_count; row++)
            if (work->ends[i][row] & HL_TREE_IS_CUT)
                work->ends[i][row] = nodes[work->ends[i][row] & ~HL_TREE_IS_CUT];
    hl_os_free(cuts);
    hl_os_free(nodes);
    return status;
}
