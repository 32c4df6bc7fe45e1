/* tree.h: the call tree of several snapshots: their stacks as paths from the oldest frame down.
 *
 * Node 0 is the root, which stands for no frame; what has no frames at all is its own. Every other node is a frame called
 * from its parent's. Stacks that begin alike share their nodes, also when they come from different snapshots and books:
 * locations are brought together by their content, functions included.
 *
 * Nodes are in preorder: a node is followed by all that is below it, so parents[i] < i, and siblings are in the order in
 * which the rows came to them. Rows without blocks make no nodes.
 *
 * Stacks that were cut at the frame limit have lost their oldest frames, so by themselves each would be a root of its
 * own. In a tree that is `joined` they are below a joint: a node that is no frame, with the file HL_TREE_CUT. Its
 * parent is the frame that the oldest one kept was most likely called from, as other stacks tell that reach further
 * back (HL_TREE_JOINT); where none does, the root (HL_TREE_UNKNOWN). So a frame above a joint is a guess, and one that
 * is not below a joint is known.
 *
 * Takes O(frames of all distinct stacks), and hashes with a secret: snapshots may come from files.
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

/* What one snapshot has: for each node its own blocks (those of stacks that end there) and all at or below it. */
typedef struct {
    uint64_t *own_bytes;
    uint64_t *own_blocks;
    uint64_t *bytes;
    uint64_t *blocks;
} hl_tree_sums;

typedef struct {
    hl_book *book; /* of the locations, whose ids are 1 to location_count; its references are not kept */
    uint32_t location_count;
    uint32_t node_count;
    uint32_t *parents;   /* the root is its own */
    uint32_t *locations; /* ids of the book; 0 for the root */
    uint32_t *ends;      /* the node after the last one below */
    bool joined;
    size_t sums_count;
    hl_tree_sums *sums; /* one for each snapshot that was given; arrays of NULL for one that was NULL */
} hl_tree;

/* HL_NO_MEMORY, HL_FULL, or HL_TOO_LARGE when the bytes or blocks of a snapshot exceed 63 bits. Unless HL_OK nothing is
 * left to close. */
hl_status hl_tree_open(const hl_snapshot *const *snapshots, size_t count, bool joined, hl_tree *tree) HL_MUST_USE;
void hl_tree_close(hl_tree *tree);

#endif
