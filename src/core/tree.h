/* tree.h: the call tree of several snapshots: their stacks as paths from the oldest frame down.
 *
 * Node 0 is the root. It stands for no frame; blocks without any frames belong to it. Every other node is a frame
 * that its parent called. Stacks that begin alike share their nodes, even if they come from different snapshots and
 * name tables. Locations are matched by their content, functions included.
 *
 * Nodes are in preorder: all descendants of a node follow it, so parents[i] < i. Siblings are in the order in which
 * the rows reached them. Rows without blocks make no nodes.
 *
 * Stacks that were cut at the frame limit have lost their oldest frames. On its own, each would be a separate root.
 * In a tree that is `joined`, they are below a joint: a node that is not a frame, with the file HL_TREE_CUT. Other
 * stacks that reach further back show where the oldest kept frame was most likely called from. That frame is the
 * parent of the joint (HL_TREE_JOINT). If there is no such stack, the parent is the root (HL_TREE_UNKNOWN). So a
 * frame above a joint is a guess, and a frame that is not below a joint is known.
 *
 * It takes O(frames of all distinct stacks), and hashes with a secret, because snapshots may come from files.
 *
 * Threading: no state of its own; snapshots are only read.
 */
#ifndef HL_TREE_H
#define HL_TREE_H

#include "snapshot.h"

/* The file of joints, and their functions. */
#define HL_TREE_CUT "<cut>"
#define HL_TREE_JOINT "[cut stacks, joined by a guess]"
#define HL_TREE_UNKNOWN "[cut stacks, callers not kept]"

/* What one snapshot has at each node: its own blocks (those of stacks that end there) and all blocks at or below it. */
typedef struct {
    uint64_t *own_bytes;
    uint64_t *own_blocks;
    uint64_t *bytes;
    uint64_t *blocks;
} hl_tree_sums;

typedef struct {
    hl_names *names; /* of the locations, whose ids are 1 to location_count. Its references are not kept */
    uint32_t location_count;
    uint32_t node_count;
    uint32_t *parents;   /* the root is its own parent */
    uint32_t *locations; /* ids of the name table; 0 for the root */
    uint32_t *ends;      /* the node after the last one below */
    bool joined;
    size_t sums_count;
    hl_tree_sums *sums; /* one for each given snapshot; the arrays are NULL for one that was NULL */
} hl_tree;

/* HL_NO_MEMORY, HL_FULL, or HL_TOO_LARGE when the bytes or blocks of a snapshot exceed 63 bits. On failure nothing
 * needs to be closed. */
hl_status hl_tree_open(const hl_snapshot *const *snapshots, size_t count, bool joined, hl_tree *tree) HL_MUST_USE;
void hl_tree_close(hl_tree *tree);

#endif
