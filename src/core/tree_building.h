/* tree_building.h: a call tree while it is being built, for tree.c and tree_joints.c only. */
#ifndef HL_TREE_BUILDING_H
#define HL_TREE_BUILDING_H

#include "translation.h"
#include "tree.h"

typedef struct {
    uint32_t parent;
    hl_location_id location;
    uint32_t depth;  /* frames from the thread's first to this one; 0: a joint */
    uint32_t stacks; /* distinct stacks that end at it; once joints are being made, at or below it */
    uint32_t alike;  /* the next node with the same location; once joints are being made */
} hl_tree_node;

typedef struct {
    hl_tree *tree;
    hl_table nodes; /* ids from 1; the root has no entry and is 0 */
    /* For each snapshot: the node at which the stack of each row ends, or HL_TREE_IS_CUT and a stack of the tree's
     * name table. */
    uint32_t **ends;
    uint64_t seed;
    /* The last stack of this snapshot that was walked (if any), where it began, and its path from the oldest frame
     * on. */
    const hl_stack *last;
    uint32_t last_start;
    uint32_t *path;
    size_t path_room;
    /* For joints: the first node of each location, and the locations of the joints themselves (0 until made). */
    uint32_t *alike;
    hl_location_id joint, unknown;
    uint32_t matched; /* how many frames of the last stack decided where it begins */
} hl_tree_building;

#define HL_TREE_IS_CUT (UINT32_C(1) << 31)

static inline hl_tree_node *hl_tree_node_at(const hl_tree_building *work, uint32_t id)
{
    return hl_table_at(&work->nodes, id);
}

static inline uint32_t hl_tree_hash(const hl_tree_building *work, uint32_t parent, hl_location_id location)
{
    return (uint32_t)hl_mix(work->seed ^ ((uint64_t)parent << 32 | location));
}

/* The node, or 0. */
static inline uint32_t hl_tree_look_up(const hl_tree_building *work, uint32_t parent, hl_location_id location)
{
    uint32_t hash = hl_tree_hash(work, parent, location);
    for (uint32_t at = hl_table_first(&work->nodes, hash); at != 0; at = hl_table_link(&work->nodes, at)->next) {
        if (hl_table_link(&work->nodes, at)->hash != hash)
            continue;
        const hl_tree_node *found = hl_tree_node_at(work, at);
        if (found->parent == parent && found->location == location)
            return at;
    }
    return 0;
}

/* How many frames two stacks of one name table share, from the oldest on. */
static inline uint32_t hl_tree_common_frames(const hl_stack *stack, const hl_stack *other)
{
    uint32_t most = stack->depth < other->depth ? stack->depth : other->depth, common = 0;
    while (common < most && stack->locations[stack->depth - 1 - common] == other->locations[other->depth - 1 - common])
        common++;
    return common;
}

/* The node. It is made if it does not exist. */
hl_status hl_tree_find_node(hl_tree_building *work, uint32_t parent, hl_location_id location, uint32_t depth,
                            uint32_t *id) HL_MUST_USE;
/* Follow a stack from the node `start`. `translated` is NULL for a stack of the tree's name table. `missing` of its
 * frames are not known. */
hl_status hl_tree_walk(hl_tree_building *work, hl_translation *translated, const hl_stack *stack, uint32_t start,
                       uint32_t missing, uint32_t *end) HL_MUST_USE;
/* Walk the stacks that were entered in the tree's name table, and replace them with the nodes at which they end. */
hl_status hl_tree_join(hl_tree_building *work, const hl_snapshot *const *snapshots) HL_MUST_USE;

#endif
