/* test_tree.c: call trees against a naive one that compares whole paths by their content. */

#include <stdlib.h>

#include "../../src/core/tree.h"
#include "sample.h"

static bool same_string(const hl_book *a, hl_string_id x, const hl_book *b, hl_string_id y)
{
    if (x == 0 || y == 0)
        return x == y;
    const hl_string *left = hl_book_get_string(a, x), *right = hl_book_get_string(b, y);
    return left->length == right->length && memcmp(left->bytes, right->bytes, left->length) == 0;
}

static bool same_location(const hl_book *a, hl_location_id x, const hl_book *b, hl_location_id y)
{
    const hl_location *left = hl_book_get_location(a, x), *right = hl_book_get_location(b, y);
    return left->line == right->line && same_string(a, left->file, b, right->file) &&
           same_string(a, left->name, b, right->name);
}

/* The node at which a stack ends: from every node's children, the one with the content of the next frame. */
static uint32_t end_of(const hl_tree *tree, const hl_book *book, const hl_stack *stack)
{
    uint32_t at = 0;
    for (uint32_t i = stack->depth; i > 0; i--) {
        uint32_t found = 0;
        for (uint32_t child = at + 1; child < tree->node_count; child++)
            if (tree->parents[child] == at &&
                same_location(tree->book, tree->locations[child], book, stack->locations[i - 1])) {
                CHECK(found == 0);
                found = child;
            }
        if (!CHECK(found != 0))
            return 0;
        at = found;
    }
    return at;
}

/* Preorder: whoever follows a node and is not below it, is below one of its ancestors. */
static void check_shape(const hl_tree *tree, const bool *reached)
{
    CHECK_EQUAL(tree->parents[0], 0);
    CHECK_EQUAL(tree->locations[0], 0);
    CHECK_EQUAL(tree->ends[0], tree->node_count);
    bool *named = calloc(tree->location_count + 1, 1);
    for (uint32_t i = 1; i < tree->node_count; i++) {
        uint32_t end = i + 1;
        while (end < tree->node_count && tree->parents[end] >= i)
            end++;
        CHECK_EQUAL(tree->ends[i], end);
        uint32_t ancestor = i - 1;
        while (ancestor != tree->parents[i] && ancestor != 0)
            ancestor = tree->parents[ancestor];
        CHECK_EQUAL(ancestor, tree->parents[i]);
        CHECK(tree->locations[i] >= 1 && tree->locations[i] <= tree->location_count);
        CHECK(reached[i]);
        named[tree->locations[i]] = true;
    }
    for (uint32_t i = 1; i <= tree->location_count; i++)
        CHECK(named[i]);
    free(named);
}

static void check_tree(const hl_tree *tree, const hl_snapshot *const *snapshots, size_t count)
{
    bool *reached = calloc(tree->node_count, 1);
    CHECK_EQUAL(tree->sums_count, count);
    for (size_t i = 0; i < count; i++) {
        if (snapshots[i] == NULL) {
            CHECK(tree->sums[i].own_bytes == NULL && tree->sums[i].bytes == NULL);
            continue;
        }
        uint64_t *sums = calloc((size_t)tree->node_count * 4, sizeof *sums);
        for (size_t j = 0; j < snapshots[i]->row_count; j++) {
            const hl_row *row = &snapshots[i]->rows[j];
            if (row->live == 0)
                continue;
            uint32_t end = end_of(tree, snapshots[i]->book, hl_book_get_stack(snapshots[i]->book, row->stack));
            sums[4 * end] += row->size * row->live;
            sums[4 * end + 1] += row->live;
            for (uint32_t at = end;; at = tree->parents[at]) {
                reached[at] = true;
                sums[4 * at + 2] += row->size * row->live;
                sums[4 * at + 3] += row->live;
                if (at == 0)
                    break;
            }
        }
        for (uint32_t at = 0; at < tree->node_count; at++) {
            CHECK_EQUAL(tree->sums[i].own_bytes[at], sums[4 * at]);
            CHECK_EQUAL(tree->sums[i].own_blocks[at], sums[4 * at + 1]);
            CHECK_EQUAL(tree->sums[i].bytes[at], sums[4 * at + 2]);
            CHECK_EQUAL(tree->sums[i].blocks[at], sums[4 * at + 3]);
        }
        CHECK_EQUAL(tree->sums[i].bytes[0], snapshots[i]->bytes);
        CHECK_EQUAL(tree->sums[i].blocks[0], snapshots[i]->blocks);
        free(sums);
    }
    check_shape(tree, reached);
    free(reached);
}

static void drop_all(const hl_snapshot *const *snapshots, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (snapshots[i] != NULL)
            hl_snapshot_drop((hl_snapshot *)snapshots[i]);
}

/* Snapshots that share a book, or have their own, or are not there. */
static void random_snapshots(const hl_snapshot **snapshots, size_t count, uint32_t rows, uint64_t *seed)
{
    hl_book *shared = sample_book(true);
    for (size_t i = 0; i < count; i++) {
        hl_book *book = check_below(seed, 2) == 0 ? sample_book(false) : hl_book_hold(shared);
        snapshots[i] = check_below(seed, 5) == 0
                           ? NULL
                           : sample_snapshot(book, check_below(seed, rows + 1), 1 + check_below(seed, 6), 3, seed);
        hl_book_drop(book);
    }
    hl_book_drop(shared);
}

static void random_trees(void)
{
    uint64_t seed = 1;
    for (int round = 0; round < 150; round++) {
        const hl_snapshot *snapshots[4];
        size_t count = check_below(&seed, 5);
        hl_tree tree;
        random_snapshots(snapshots, count, 60, &seed);
        CHECK_OR_RETURN(hl_tree_open(snapshots, count, &tree) == HL_OK);
        check_tree(&tree, snapshots, count);
        hl_tree_close(&tree);
        drop_all(snapshots, count);
    }
}

static void one_path(void)
{
    hl_book *book = sample_book(false);
    hl_snapshot *snapshot;
    sample_must(hl_snapshot_new(book, 3, &snapshot));
    hl_location_id locations[] = {sample_location(book, "new.py", 6, 3, "c"),
                                  sample_location(book, "mid.py", 6, 2, "b"),
                                  sample_location(book, "old.py", 6, 1, "a")};
    sample_must(hl_book_stack(book, locations, 3, 3, &snapshot->rows[0].stack));
    sample_must(hl_book_stack(book, locations + 1, 2, 2, &snapshot->rows[1].stack));
    sample_must(hl_book_stack(book, locations, 1, 1, &snapshot->rows[2].stack)); /* dead */
    snapshot->rows[0].size = 10;
    snapshot->rows[0].live = 2;
    snapshot->rows[1].size = 5;
    snapshot->rows[1].live = 1;
    hl_snapshot_seal(snapshot, 3);
    const hl_snapshot *given[] = {snapshot};
    hl_tree tree;
    CHECK_OR_RETURN(hl_tree_open(given, 1, &tree) == HL_OK);
    CHECK_EQUAL(tree.node_count, 4);
    for (uint32_t i = 1; i < 4; i++) {
        CHECK_EQUAL(tree.parents[i], i - 1);
        CHECK_EQUAL(hl_book_get_location(tree.book, tree.locations[i])->line, i);
    }
    CHECK_EQUAL(tree.sums[0].own_bytes[3], 20);
    CHECK_EQUAL(tree.sums[0].own_bytes[2], 5);
    CHECK_EQUAL(tree.sums[0].bytes[1], 25);
    CHECK_EQUAL(tree.sums[0].blocks[1], 3);
    hl_tree_close(&tree);
    hl_snapshot_drop(snapshot);
    hl_book_drop(book);
}

/* Stacks that part and have the same frames again further down, one below the other: what is common to two of them ends
 * where they part first. */
static void paths_that_part_and_meet_again(void)
{
    static const char *const paths[] = {"abcd", "axcd", "abcd", "abxd", "a", "abcde", "xbcde", "abcde", "bcde", "cde"};
    enum { PATHS = sizeof paths / sizeof *paths };
    hl_book *book = sample_book(false);
    hl_snapshot *snapshot;
    sample_must(hl_snapshot_new(book, PATHS, &snapshot));
    for (uint32_t i = 0; i < PATHS; i++) {
        hl_location_id locations[8];
        uint32_t depth = (uint32_t)strlen(paths[i]);
        for (uint32_t frame = 0; frame < depth; frame++)
            locations[depth - 1 - frame] = sample_location(book, "part.py", 7, (uint32_t)paths[i][frame], "f");
        sample_must(hl_book_stack(book, locations, depth, depth, &snapshot->rows[i].stack));
        snapshot->rows[i].size = 1u << i;
        snapshot->rows[i].live = 1;
    }
    hl_snapshot_seal(snapshot, PATHS);
    const hl_snapshot *given[] = {snapshot, snapshot};
    hl_tree tree;
    CHECK_OR_RETURN(hl_tree_open(given, 2, &tree) == HL_OK);
    CHECK_EQUAL(tree.node_count, 1 + 5 + 3 + 2 + 5 + 4 + 3);
    check_tree(&tree, given, 2);
    hl_tree_close(&tree);
    hl_snapshot_drop(snapshot);
    hl_book_drop(book);
}

static void sums_that_do_not_fit(void)
{
    hl_book *book = sample_book(false);
    hl_snapshot *snapshot;
    hl_tree tree;
    sample_must(hl_snapshot_new(book, 2, &snapshot));
    for (int i = 0; i < 2; i++) {
        snapshot->rows[i] = (hl_row){.size = 1, .live = 1};
        hl_location_id none[1] = {0};
        sample_must(hl_book_stack(book, none, 0, 0, &snapshot->rows[i].stack));
    }
    hl_snapshot_seal(snapshot, 2);
    const hl_snapshot *given[] = {snapshot};
    snapshot->rows[0].size = INT64_MAX;
    CHECK_EQUAL(hl_tree_open(given, 1, &tree), HL_TOO_LARGE);
    snapshot->rows[0].size--;
    CHECK_OR_RETURN(hl_tree_open(given, 1, &tree) == HL_OK);
    CHECK_EQUAL(tree.sums[0].bytes[0], INT64_MAX);
    hl_tree_close(&tree);
    snapshot->rows[0] = (hl_row){.size = 0, .live = INT64_MAX, .stack = snapshot->rows[0].stack};
    CHECK_EQUAL(hl_tree_open(given, 1, &tree), HL_TOO_LARGE);
    snapshot->rows[0] = (hl_row){.size = UINT64_MAX / 2, .live = 3, .stack = snapshot->rows[0].stack};
    CHECK_EQUAL(hl_tree_open(given, 1, &tree), HL_TOO_LARGE);
    hl_snapshot_drop(snapshot);
    hl_book_drop(book);
}

/* Every allocation fails once; the sanitizer sees what is not given back. A table that cannot split goes unnoticed. */
static void failures_leak_nothing(void)
{
    uint64_t seed = 5;
    const hl_snapshot *snapshots[4];
    random_snapshots(snapshots, 4, 40, &seed);
    size_t failed = 1, noticed = 0;
    for (size_t n = 1; failed != 0; n++) {
        hl_tree tree;
        (void)hl_os_fail_every(n);
        hl_status status = hl_tree_open(snapshots, 4, &tree);
        failed = hl_os_fail_every(0);
        CHECK(status == HL_OK || (failed != 0 && status == HL_NO_MEMORY));
        noticed += status != HL_OK;
        if (status == HL_OK) {
            check_tree(&tree, snapshots, 4);
            hl_tree_close(&tree);
        }
    }
    CHECK(noticed > 20);
    drop_all(snapshots, 4);
}

CHECK_MAIN(TEST(random_trees), TEST(one_path), TEST(paths_that_part_and_meet_again), TEST(sums_that_do_not_fit),
           TEST(failures_leak_nothing))
