/* test_tree.c: call trees against a naive one that compares whole paths by their content. */

#include <stdlib.h>

#include "../../src/core/tree.h"
#include "sample.h"

static bool same_string(const hl_names *a, hl_string_id x, const hl_names *b, hl_string_id y)
{
    if (x == 0 || y == 0)
        return x == y;
    const hl_string *left = hl_names_get_string(a, x), *right = hl_names_get_string(b, y);
    return left->length == right->length && memcmp(left->bytes, right->bytes, left->length) == 0;
}

static bool same_location(const hl_names *a, hl_location_id x, const hl_names *b, hl_location_id y)
{
    const hl_location *left = hl_names_get_location(a, x), *right = hl_names_get_location(b, y);
    return left->line == right->line && same_string(a, left->file, b, right->file) &&
           same_string(a, left->name, b, right->name);
}

/* The node at which a stack ends: from every node's children, the one with the content of the next frame. */
static uint32_t end_of(const hl_tree *tree, const hl_names *names, const hl_stack *stack)
{
    uint32_t at = 0;
    for (uint32_t i = stack->depth; i > 0; i--) {
        uint32_t found = 0;
        for (uint32_t child = at + 1; child < tree->node_count; child++)
            if (tree->parents[child] == at &&
                same_location(tree->names, tree->locations[child], names, stack->locations[i - 1])) {
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
            uint32_t end = end_of(tree, snapshots[i]->names, hl_names_get_stack(snapshots[i]->names, row->stack));
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

/* Snapshots that share a name table, or have their own, or are not there. */
static void random_snapshots(const hl_snapshot **snapshots, size_t count, uint32_t rows, uint64_t *seed)
{
    hl_names *shared = sample_names(true);
    for (size_t i = 0; i < count; i++) {
        hl_names *names = check_below(seed, 2) == 0 ? sample_names(false) : hl_names_hold(shared);
        snapshots[i] = check_below(seed, 5) == 0
                           ? NULL
                           : sample_snapshot(names, check_below(seed, rows + 1), 1 + check_below(seed, 6), 3, seed);
        hl_names_drop(names);
    }
    hl_names_drop(shared);
}

static void random_trees(void)
{
    uint64_t seed = 1;
    for (int round = 0; round < 150; round++) {
        const hl_snapshot *snapshots[4];
        size_t count = check_below(&seed, 5);
        hl_tree tree;
        random_snapshots(snapshots, count, 60, &seed);
        CHECK_OR_RETURN(hl_tree_open(snapshots, count, false, &tree) == HL_OK);
        check_tree(&tree, snapshots, count);
        hl_tree_close(&tree);
        drop_all(snapshots, count);
    }
}

static void one_path(void)
{
    hl_names *names = sample_names(false);
    hl_snapshot *snapshot;
    sample_must(hl_snapshot_new(names, 3, &snapshot));
    hl_location_id locations[] = {sample_location(names, "new.py", 6, 3, "c"),
                                  sample_location(names, "mid.py", 6, 2, "b"),
                                  sample_location(names, "old.py", 6, 1, "a")};
    sample_must(hl_names_stack(names, locations, 3, 3, &snapshot->rows[0].stack));
    sample_must(hl_names_stack(names, locations + 1, 2, 2, &snapshot->rows[1].stack));
    sample_must(hl_names_stack(names, locations, 1, 1, &snapshot->rows[2].stack)); /* dead */
    snapshot->rows[0].size = 10;
    snapshot->rows[0].live = 2;
    snapshot->rows[1].size = 5;
    snapshot->rows[1].live = 1;
    hl_snapshot_seal(snapshot, 3);
    const hl_snapshot *given[] = {snapshot};
    hl_tree tree;
    CHECK_OR_RETURN(hl_tree_open(given, 1, false, &tree) == HL_OK);
    CHECK_EQUAL(tree.node_count, 4);
    for (uint32_t i = 1; i < 4; i++) {
        CHECK_EQUAL(tree.parents[i], i - 1);
        CHECK_EQUAL(hl_names_get_location(tree.names, tree.locations[i])->line, i);
    }
    CHECK_EQUAL(tree.sums[0].own_bytes[3], 20);
    CHECK_EQUAL(tree.sums[0].own_bytes[2], 5);
    CHECK_EQUAL(tree.sums[0].bytes[1], 25);
    CHECK_EQUAL(tree.sums[0].blocks[1], 3);
    hl_tree_close(&tree);
    hl_snapshot_drop(snapshot);
    hl_names_drop(names);
}

/* Stacks that part and have the same frames again further down, one below the other: what is common to two of them ends
 * where they part first. */
static void paths_that_part_and_meet_again(void)
{
    static const char *const paths[] = {"abcd", "axcd", "abcd", "abxd", "a", "abcde", "xbcde", "abcde", "bcde", "cde"};
    enum { PATHS = sizeof paths / sizeof *paths };
    hl_names *names = sample_names(false);
    hl_snapshot *snapshot;
    sample_must(hl_snapshot_new(names, PATHS, &snapshot));
    for (uint32_t i = 0; i < PATHS; i++) {
        hl_location_id locations[8];
        uint32_t depth = (uint32_t)strlen(paths[i]);
        for (uint32_t frame = 0; frame < depth; frame++)
            locations[depth - 1 - frame] = sample_location(names, "part.py", 7, (uint32_t)paths[i][frame], "f");
        sample_must(hl_names_stack(names, locations, depth, depth, &snapshot->rows[i].stack));
        snapshot->rows[i].size = 1u << i;
        snapshot->rows[i].live = 1;
    }
    hl_snapshot_seal(snapshot, PATHS);
    const hl_snapshot *given[] = {snapshot, snapshot};
    hl_tree tree;
    CHECK_OR_RETURN(hl_tree_open(given, 2, false, &tree) == HL_OK);
    CHECK_EQUAL(tree.node_count, 1 + 5 + 3 + 2 + 5 + 4 + 3);
    check_tree(&tree, given, 2);
    hl_tree_close(&tree);
    hl_snapshot_drop(snapshot);
    hl_names_drop(names);
}

static void sums_that_do_not_fit(void)
{
    hl_names *names = sample_names(false);
    hl_snapshot *snapshot;
    hl_tree tree;
    sample_must(hl_snapshot_new(names, 2, &snapshot));
    for (int i = 0; i < 2; i++) {
        snapshot->rows[i] = (hl_row){.size = 1, .live = 1};
        hl_location_id none[1] = {0};
        sample_must(hl_names_stack(names, none, 0, 0, &snapshot->rows[i].stack));
    }
    hl_snapshot_seal(snapshot, 2);
    const hl_snapshot *given[] = {snapshot};
    snapshot->rows[0].size = INT64_MAX;
    CHECK_EQUAL(hl_tree_open(given, 1, false, &tree), HL_TOO_LARGE);
    snapshot->rows[0].size--;
    CHECK_OR_RETURN(hl_tree_open(given, 1, false, &tree) == HL_OK);
    CHECK_EQUAL(tree.sums[0].bytes[0], INT64_MAX);
    hl_tree_close(&tree);
    snapshot->rows[0] = (hl_row){.size = 0, .live = INT64_MAX, .stack = snapshot->rows[0].stack};
    CHECK_EQUAL(hl_tree_open(given, 1, false, &tree), HL_TOO_LARGE);
    snapshot->rows[0] = (hl_row){.size = UINT64_MAX / 2, .live = 3, .stack = snapshot->rows[0].stack};
    CHECK_EQUAL(hl_tree_open(given, 1, false, &tree), HL_TOO_LARGE);
    hl_snapshot_drop(snapshot);
    hl_names_drop(names);
}

/* --- joints --- */

enum { MOST_STACKS = 8, LIMIT = 4 };

/* A snapshot of stacks of at most `limit` frames: each is a word, the oldest frame first, a letter a frame. */
static hl_snapshot *cut_at(uint32_t limit, hl_names *names, const char *const *words, size_t count, bool totals)
{
    hl_snapshot *snapshot;
    sample_must(hl_snapshot_new(names, count, &snapshot));
    for (size_t i = 0; i < count; i++) {
        hl_location_id locations[LIMIT];
        uint32_t total = (uint32_t)strlen(words[i]), depth = total < limit ? total : limit;
        for (uint32_t frame = 0; frame < depth; frame++)
            locations[frame] = sample_location(names, "cut.py", 6, (uint32_t)words[i][total - 1 - frame], "f");
        sample_must(hl_names_stack(names, locations, depth, totals ? total : 0, &snapshot->rows[i].stack));
        snapshot->rows[i].size = 1u << i;
        snapshot->rows[i].live = 1;
    }
    hl_snapshot_seal(snapshot, count);
    return snapshot;
}

/* The node with this many own bytes, as a word: ~ is a joint, ? one below the root. */
static const char *path_of(const hl_tree *tree, uint64_t bytes, char room[64])
{
    uint32_t at = 0;
    while (at + 1 < tree->node_count && (tree->sums[0].own_bytes[at] & bytes) == 0)
        at++;
    char *word = room + 63;
    *word = '\0';
    for (; at != 0; at = tree->parents[at]) {
        const hl_location *location = hl_names_get_location(tree->names, tree->locations[at]);
        const hl_string *file = hl_names_get_string(tree->names, location->file);
        const hl_string *name = location->name == 0 ? NULL : hl_names_get_string(tree->names, location->name);
        bool joint = file->length == strlen(HL_TREE_CUT) && memcmp(file->bytes, HL_TREE_CUT, file->length) == 0;
        bool unknown =
            joint && name->length == strlen(HL_TREE_UNKNOWN) && memcmp(name->bytes, HL_TREE_UNKNOWN, name->length) == 0;
        CHECK(!unknown || tree->parents[at] == 0);
        *--word = unknown ? '?' : joint ? '~' : (char)location->line;
    }
    return word;
}

typedef struct {
    const char *stacks[MOST_STACKS];
    const char *paths[MOST_STACKS];
} joining;

static const joining joinings[] = {
    /* whole stacks tell where the oldest frame is called from */
    {{"abc", "abcdef"}, {"abc", "ab~cdef"}},
    /* stacks that lack less tell it for those that lack more, in any order */
    {{"abcdefgh", "abc", "abcdef"}, {"ab~cd~efgh", "abc", "ab~cdef"}},
    /* nothing tells it */
    {{"xy", "abcdef", "pqrstu"}, {"xy", "?cdef", "?rstu"}},
    /* one joint for all stacks that are called from there */
    {{"abc", "abd", "abcdef", "abcdeg", "abdxyz"}, {"abc", "abd", "ab~cdef", "ab~cdeg", "ab~dxyz"}},
    /* the depth decides before the number of frames that are alike */
    {{"pcde", "abc", "abcdef"}, {"pcde", "abc", "ab~cdef"}},
    /* the frames that are alike decide where depths do not */
    {{"pcq", "abcd", "xxxcdef"}, {"pcq", "abcd", "ab~cdef"}},
    /* stacks that each lack one frame more do not each stand below one joint more */
    {{"abcdefg", "abc", "abcde", "abcdef", "abcdefgh"}, {"abc~defg", "abc", "a~bcde", "ab~cdef", "abc~d~efgh"}},
    /* a frame that is only known as the first of a stack has no caller */
    {{"c", "abcdef"}, {"c", "?cdef"}},
    /* a recursion: the frames that were kept are those of one that is known */
    {{"mff", "mffffff"}, {"mff", "m~ffff"}},
};

static void cut_stacks_are_joined(void)
{
    for (size_t i = 0; i < sizeof joinings / sizeof *joinings; i++) {
        size_t count = 0;
        while (count < MOST_STACKS && joinings[i].stacks[count] != NULL)
            count++;
        hl_names *names = sample_names(false);
        hl_snapshot *snapshot = cut_at(LIMIT, names, joinings[i].stacks, count, true);
        const hl_snapshot *given[] = {snapshot, snapshot}; /* of the same stacks, the same nodes */
        hl_tree tree;
        CHECK_OR_RETURN(hl_tree_open(given, 2, true, &tree) == HL_OK);
        for (size_t stack = 0; stack < count; stack++) {
            char room[64];
            const char *path = path_of(&tree, UINT64_C(1) << stack, room);
            if (!CHECK(strcmp(path, joinings[i].paths[stack]) == 0))
                printf("%s is at %s, not at %s\n", joinings[i].stacks[stack], path, joinings[i].paths[stack]);
        }
        CHECK_EQUAL(tree.sums[0].bytes[0], (1u << count) - 1);
        for (uint32_t node = 0; node < tree.node_count; node++)
            CHECK_EQUAL(tree.sums[0].bytes[node], tree.sums[1].bytes[node]);
        hl_tree_close(&tree);
        CHECK_OR_RETURN(hl_tree_open(given, 2, false, &tree) == HL_OK);
        check_tree(&tree, given, 2); /* as they are */
        hl_tree_close(&tree);
        hl_snapshot_drop(snapshot);
        hl_names_drop(names);
    }
}

/* Files need not say how many frames there were; then nobody knows that a stack was cut. */
static void nothing_to_join(void)
{
    static const char *const words[] = {"abc", "abcdef"};
    char room[64];
    hl_names *names = sample_names(false);
    hl_snapshot *snapshot = cut_at(LIMIT, names, words, 2, false);
    const hl_snapshot *given[] = {snapshot};
    hl_tree tree;
    CHECK_OR_RETURN(hl_tree_open(given, 1, true, &tree) == HL_OK);
    CHECK(strcmp(path_of(&tree, 2, room), "cdef") == 0);
    hl_tree_close(&tree);
    hl_snapshot_drop(snapshot);
    snapshot = cut_at(1, names, words, 2, true); /* every stack is its newest frame */
    given[0] = snapshot;
    CHECK_OR_RETURN(hl_tree_open(given, 1, true, &tree) == HL_OK);
    CHECK(strcmp(path_of(&tree, 2, room), "f") == 0);
    hl_tree_close(&tree);
    hl_snapshot_drop(snapshot);
    hl_names_drop(names);
}

/* Every allocation fails once; the sanitizer sees what is not given back. A table that cannot split goes unnoticed. */
static void failures_leak_nothing(void)
{
    uint64_t seed = 5;
    const hl_snapshot *snapshots[4];
    random_snapshots(snapshots, 3, 40, &seed);
    hl_names *names = sample_names(false);
    snapshots[3] = cut_at(LIMIT, names, joinings[1].stacks, 3, true);
    hl_names_drop(names);
    size_t failed = 1, noticed = 0;
    for (size_t n = 1; failed != 0; n++) {
        hl_tree tree;
        (void)hl_os_fail_every(n);
        hl_status status = hl_tree_open(snapshots, 4, true, &tree);
        failed = hl_os_fail_every(0);
        CHECK(status == HL_OK || (failed != 0 && status == HL_NO_MEMORY));
        noticed += status != HL_OK;
        if (status == HL_OK) {
            CHECK_EQUAL(tree.sums[3].bytes[0], snapshots[3]->bytes);
            hl_tree_close(&tree);
        }
    }
    CHECK(noticed > 20);
    drop_all(snapshots, 4);
}

CHECK_MAIN(TEST(random_trees), TEST(one_path), TEST(paths_that_part_and_meet_again), TEST(cut_stacks_are_joined),
           TEST(nothing_to_join), TEST(sums_that_do_not_fit), TEST(failures_leak_nothing))
