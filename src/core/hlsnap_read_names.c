/* hlsnap_read_names.c: the sections of a .hlsnap file that hold names: files, functions, locations, stacks.
 *
 * Each name is interned, so a file that holds one twice does no harm: both numbers lead to the same id. The reader
 * has a reference to every id until the file has been read.
 *
 * Threading: see hlsnap_reader.h.
 */

#include <string.h>

#include "hlsnap_reader.h"
#include "utf8.h"

/* A node of the tree of frames; node 0 is the root, of depth 0. */
typedef struct {
    uint32_t parent, depth;
    hl_location_id location;
} node;

/* How many names a section holds, and room for their ids. */
static uint32_t get_names(hl_hlsnap_reader *r, hl_hlsnap_ids *to, size_t least)
{
    size_t count = hl_hlsnap_get_count(r, least);
    if (count > UINT32_MAX / 2)
        (void)hl_hlsnap_is_fine(r, HL_FULL);
    to->ids = hl_hlsnap_allocate(r, count, sizeof *to->ids);
    return to->ids == NULL ? 0 : (uint32_t)count;
}

/* UTF-8, in which lone surrogates are allowed. */
static bool is_text(const char *name, size_t length)
{
    uint32_t character;
    for (size_t at = 0, width; at < length; at += width) {
        width = hl_utf8_decode(name + at, length - at, &character);
        if (width == 0)
            return false;
    }
    return true;
}

/* The bytes at the cursor become the end of `name`. */
static bool enter_name(hl_hlsnap_reader *r, hl_hlsnap_ids *to, const char *name, size_t length)
{
    if (!is_text(name, length))
        hl_hlsnap_fail(r, HL_HLSNAP_MALFORMED "a name is not UTF-8");
    if (r->status != HL_OK || !hl_hlsnap_is_fine(r, hl_names_string(r->names, name, length, &to->ids[to->count])))
        return false;
    to->count++;
    return true;
}

void hl_hlsnap_read_files(hl_hlsnap_reader *r)
{
    uint32_t count = get_names(r, &r->files, 2);
    char *name = hl_hlsnap_allocate(r, HL_HLSNAP_MOST_SHARED + hl_hlsnap_left(r), 1);
    uint64_t last_length = 0;
    while (r->files.count < count && r->status == HL_OK) {
        uint64_t most = last_length < HL_HLSNAP_MOST_SHARED ? last_length : HL_HLSNAP_MOST_SHARED;
        size_t shared = (size_t)hl_hlsnap_get_at_most(
            r, most, HL_HLSNAP_MALFORMED "a name shares more with the one before than there is");
        size_t length = hl_hlsnap_get_count(r, 1);
        if (r->status != HL_OK)
            break;
        memcpy(name + shared, r->at, length);
        last_length = shared + length;
        if (enter_name(r, &r->files, name, last_length))
            r->at += length;
    }
    hl_os_free(name);
}

void hl_hlsnap_read_functions(hl_hlsnap_reader *r)
{
    uint32_t count = get_names(r, &r->functions, 1);
    while (r->functions.count < count && r->status == HL_OK) {
        size_t length = hl_hlsnap_get_count(r, 1);
        if (r->status == HL_OK && enter_name(r, &r->functions, (const char *)r->at, length))
            r->at += length;
    }
}

/* The thing that a code stands for: 0 is the next one that has not been named yet, n + 1 is number n. */
static uint32_t get_named(hl_hlsnap_reader *r, uint64_t code, const hl_hlsnap_ids *of, uint32_t *seen)
{
    if (code > *seen || (code == 0 && *seen == of->count)) {
        hl_hlsnap_fail(r, HL_HLSNAP_MALFORMED "a number names what does not exist");
        return 0;
    }
    return of->ids[code == 0 ? (*seen)++ : code - 1];
}

void hl_hlsnap_read_locations(hl_hlsnap_reader *r)
{
    uint32_t count = get_names(r, &r->locations, 3), files = 0, functions = 0;
    uint64_t line = 0;
    while (r->locations.count < count && r->status == HL_OK) {
        hl_string_id file = get_named(r, hl_hlsnap_get_varint(r), &r->files, &files);
        uint64_t code = hl_hlsnap_get_varint(r);
        hl_string_id name = code == 0 ? 0 : get_named(r, code - 1, &r->functions, &functions);
        line += hl_hlsnap_unzigzag(hl_hlsnap_get_varint(r));
        if (line > UINT32_MAX)
            hl_hlsnap_fail(r, HL_HLSNAP_MALFORMED "a line number is too great");
        if (r->status != HL_OK || !hl_hlsnap_is_fine(r, hl_names_location(r->names, file, (uint32_t)line, name,
                                                                          &r->locations.ids[r->locations.count])))
            return;
        r->locations.count++;
    }
}

/* Stacks. `path` and `path_locations` hold the stack read last. They end with the oldest frame, so only the part of
 * the next stack that differs must be gathered. */
typedef struct {
    node *nodes;
    uint32_t count, most;
    uint32_t *path;
    hl_location_id *path_locations; /* of `most` frames; the frame of depth d is at most - d */
    uint32_t path_depth;
    uint32_t seen;   /* locations named so far */
    uint64_t frames; /* of all stacks */
} tree;

/* Read the new nodes of a stack. Returns the number of the newest. */
static uint32_t get_node(hl_hlsnap_reader *r, tree *t)
{
    uint32_t back = (uint32_t)hl_hlsnap_get_at_most(r, t->count - 1,
                                                    HL_HLSNAP_MALFORMED "a stack continues one that does not exist");
    uint32_t at = back == 0 ? 0 : t->count - back;
    uint64_t more =
        hl_hlsnap_get_at_most(r, t->most - (t->count - 1), HL_HLSNAP_MALFORMED "there are more frames than announced");
    for (; more > 0 && r->status == HL_OK; more--) {
        hl_location_id location = get_named(r, hl_hlsnap_get_varint(r), &r->locations, &t->seen);
        t->nodes[t->count] = (node){.parent = at, .depth = t->nodes[at].depth + 1, .location = location};
        at = t->count++;
    }
    return at;
}

static void gather_path(tree *t, uint32_t at)
{
    uint32_t depth = t->nodes[at].depth;
    for (uint32_t d = depth; d > 0; d--) {
        if (d <= t->path_depth && t->path[t->most - d] == at)
            break;
        t->path[t->most - d] = at;
        t->path_locations[t->most - d] = t->nodes[at].location;
        at = t->nodes[at].parent;
    }
    t->path_depth = depth;
}

static void read_stack(hl_hlsnap_reader *r, tree *t, uint64_t most_frames)
{
    uint32_t at = get_node(r, t);
    uint64_t code = hl_hlsnap_get_varint(r), total = 0;
    uint32_t depth = t->nodes[at].depth;
    t->frames += depth;
    if (t->frames > most_frames)
        hl_hlsnap_fail(r, HL_HLSNAP_MALFORMED "the stacks have more frames than their section may hold");
    if (code != 0) {
        total = depth + hl_hlsnap_unzigzag(code - 1);
        if (total == 0 || total > UINT32_MAX)
            hl_hlsnap_fail(r, HL_HLSNAP_MALFORMED "the total depth of a stack is wrong");
    }
    if (r->status != HL_OK)
        return;
    gather_path(t, at);
    if (hl_hlsnap_is_fine(r, hl_names_stack(r->names, t->path_locations + (t->most - depth), depth, (uint32_t)total,
                                            &r->stacks.ids[r->stacks.count])))
        r->stacks.count++;
}

void hl_hlsnap_read_stacks(hl_hlsnap_reader *r)
{
    uint64_t most_frames = hl_hlsnap_left(r) > UINT32_MAX / HL_HLSNAP_FRAMES_PER_BYTE
                               ? UINT32_MAX /* the name table counts them in 32 bits */
                               : (uint64_t)hl_hlsnap_left(r) * HL_HLSNAP_FRAMES_PER_BYTE;
    size_t nodes = hl_hlsnap_get_count(r, 1);
    if (nodes > UINT32_MAX / 2)
        (void)hl_hlsnap_is_fine(r, HL_FULL);
    tree t = {.count = 1, .most = (uint32_t)nodes};
    uint32_t count = get_names(r, &r->stacks, 3);
    t.nodes = hl_hlsnap_allocate(r, nodes + 1, sizeof *t.nodes);
    t.path = hl_hlsnap_allocate(r, nodes, sizeof *t.path);
    t.path_locations = hl_hlsnap_allocate(r, nodes, sizeof *t.path_locations);
    while (r->stacks.count < count && r->status == HL_OK)
        read_stack(r, &t, most_frames);
    if (r->status == HL_OK && t.count - 1 != t.most)
        hl_hlsnap_fail(r, HL_HLSNAP_MALFORMED "there are fewer frames than announced");
    while (!r->newer && r->at < r->end && *r->at == 0)
        r->at++; /* padding, which allows stacks to have more frames */
    hl_os_free(t.nodes);
    hl_os_free(t.path);
    hl_os_free(t.path_locations);
}
