/* hlsnap_read.c: .hlsnap files to snapshots. See hlsnap.h, and docs/format.md for the bytes.
 *
 * Nothing in the file is believed. A section is looked at only once its checksum holds; a count is compared with the
 * bytes that are left before anything is allocated for it; an index with the number of things there are. The first
 * offence is kept in the error and moves the cursor to the end, so that whatever still reads gets zeros and stops.
 *
 * Threading: everything is local.
 */

#include <string.h>

#include "hlsnap.h"
#include "hlsnap_bytes.h"

/* Numbers in the file -> ids in the book. */
typedef struct {
    uint32_t *ids;
    uint32_t count;
} ids;

/* A node of the tree of frames; node 0 is the root, of depth 0. */
typedef struct {
    uint32_t parent, depth;
    hl_location_id location;
} node;

typedef struct {
    const uint8_t *start; /* of the file */
    const uint8_t *at, *end;
    bool newer; /* of a minor version we do not know: sections may end with what we do not know */
    hl_status status;
    hl_hlsnap_error *error;
    hl_book *book;
    ids files, functions, locations, stacks;
    enum { NOTHING, FILES, FUNCTIONS, LOCATIONS, STACKS } known; /* the sections there were so far */
    hl_hlsnap_crc crc;
} reader;

static void fail_at(reader *r, const uint8_t *where, const char *what)
{
    if (r->status == HL_OK) {
        r->status = HL_MALFORMED;
        r->error->what = what;
        r->error->where = (size_t)(where - r->start);
    }
    r->at = r->end;
}

static void fail(reader *r, const char *what)
{
    fail_at(r, r->at, what);
}

static bool is_fine(reader *r, hl_status status)
{
    if (status == HL_FULL) {
        fail(r, "has more strings, locations or stacks than can be held");
    } else if (status != HL_OK && r->status == HL_OK) {
        r->status = status;
        r->at = r->end;
    }
    return r->status == HL_OK;
}

static void *allocate(reader *r, size_t count, size_t size)
{
    void *block = r->status == HL_OK ? hl_os_alloc(count, size) : NULL;
    if (block == NULL)
        (void)is_fine(r, HL_NO_MEMORY);
    return block;
}

static size_t left(const reader *r)
{
    return (size_t)(r->end - r->at);
}

static uint64_t get_varint(reader *r)
{
    const uint8_t *at = r->at;
    if (HL_LIKELY(at != r->end && *at < 0x80)) {
        r->at++;
        return *at;
    }
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (at == r->end) {
            fail(r, "a number goes beyond its section");
            return 0;
        }
        uint8_t byte = *at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte >= 0x80)
            continue;
        if (byte == 0 || (shift == 63 && byte > 1))
            break;
        r->at = at;
        return value;
    }
    fail(r, "a number is not written as it should be");
    return 0;
}

/* A number that must not be greater than `most`. */
static uint64_t get_at_most(reader *r, uint64_t most, const char *otherwise)
{
    const uint8_t *at = r->at;
    uint64_t value = get_varint(r);
    if (HL_LIKELY(value <= most))
        return value;
    fail_at(r, at, otherwise);
    return 0;
}

/* A number of things that take at least `least` bytes each. */
static size_t get_count(reader *r, size_t least)
{
    const uint8_t *at = r->at;
    uint64_t count = get_varint(r);
    if (count <= left(r) / least)
        return (size_t)count;
    fail_at(r, at, "a count goes beyond its section");
    return 0;
}

/* How many names a section holds, and room for their ids. */
static uint32_t get_names(reader *r, ids *to, size_t least)
{
    size_t count = get_count(r, least);
    if (count > UINT32_MAX / 2)
        (void)is_fine(r, HL_FULL);
    to->ids = allocate(r, count, sizeof *to->ids);
    return to->ids == NULL ? 0 : (uint32_t)count;
}

static void read_files(reader *r)
{
    uint32_t count = get_names(r, &r->files, 2);
    char *name = allocate(r, HL_HLSNAP_MOST_SHARED + left(r), 1);
    uint64_t last_length = 0;
    while (r->files.count < count && r->status == HL_OK) {
        uint64_t most = last_length < HL_HLSNAP_MOST_SHARED ? last_length : HL_HLSNAP_MOST_SHARED;
        size_t shared = (size_t)get_at_most(r, most, "a name shares more with the one before than there is");
        size_t length = get_count(r, 1);
        if (r->status != HL_OK)
            break;
        memcpy(name + shared, r->at, length);
        r->at += length;
        last_length = shared + length;
        if (is_fine(r, hl_book_string(r->book, name, last_length, &r->files.ids[r->files.count])))
            r->files.count++;
    }
    hl_os_free(name);
}

static void read_functions(reader *r)
{
    uint32_t count = get_names(r, &r->functions, 1);
    while (r->functions.count < count && r->status == HL_OK) {
        size_t length = get_count(r, 1);
        if (r->status != HL_OK ||
            !is_fine(r, hl_book_string(r->book, (const char *)r->at, length, &r->functions.ids[r->functions.count])))
            return;
        r->functions.count++;
        r->at += length;
    }
}

/* The thing that a code stands for: 0 is the first that has not been named yet, n + 1 the number n. */
static uint32_t get_named(reader *r, uint64_t code, const ids *of, uint32_t *seen)
{
    if (code > *seen || (code == 0 && *seen == of->count)) {
        fail(r, "a number names what does not exist");
        return 0;
    }
    return of->ids[code == 0 ? (*seen)++ : code - 1];
}

static void read_locations(reader *r)
{
    uint32_t count = get_names(r, &r->locations, 3), files = 0, functions = 0;
    uint64_t line = 0;
    while (r->locations.count < count && r->status == HL_OK) {
        hl_string_id file = get_named(r, get_varint(r), &r->files, &files);
        uint64_t code = get_varint(r);
        hl_string_id name = code == 0 ? 0 : get_named(r, code - 1, &r->functions, &functions);
        line += hl_hlsnap_unzigzag(get_varint(r));
        if (line > UINT32_MAX)
            fail(r, "a line number is too great");
        if (r->status != HL_OK ||
            !is_fine(r, hl_book_location(r->book, file, (uint32_t)line, name, &r->locations.ids[r->locations.count])))
            return;
        r->locations.count++;
    }
}

/* Stacks. The stack read last is kept in `path` and `path_locations`, which end with the oldest frame, so that of the
 * next one only what differs must be gathered. */
typedef struct {
    node *nodes;
    uint32_t count, most;
    uint32_t *path;
    hl_location_id *path_locations; /* of `most` frames: that of depth d is at most - d */
    uint32_t path_depth;
    uint32_t seen;   /* locations named so far */
    uint64_t frames; /* of all stacks */
} tree;

/* Read a stack's new nodes; the number of its newest. */
static uint32_t get_node(reader *r, tree *t)
{
    uint32_t back = (uint32_t)get_at_most(r, t->count - 1, "a stack continues one that does not exist");
    uint32_t at = back == 0 ? 0 : t->count - back;
    uint64_t more = get_at_most(r, t->most - (t->count - 1), "there are more frames than announced");
    for (; more > 0 && r->status == HL_OK; more--) {
        hl_location_id location = get_named(r, get_varint(r), &r->locations, &t->seen);
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

static void read_stack(reader *r, tree *t, uint64_t most_frames)
{
    uint32_t at = get_node(r, t);
    uint64_t code = get_varint(r), total = 0;
    uint32_t depth = t->nodes[at].depth;
    t->frames += depth;
    if (t->frames > most_frames)
        fail(r, "the stacks have more frames than their section may hold");
    if (code != 0) {
        total = depth + hl_hlsnap_unzigzag(code - 1);
        if (total == 0 || total > UINT32_MAX)
            fail(r, "the total depth of a stack is wrong");
    }
    if (r->status != HL_OK)
        return;
    gather_path(t, at);
    if (is_fine(r, hl_book_stack(r->book, t->path_locations + (t->most - depth), depth, (uint32_t)total,
                                 &r->stacks.ids[r->stacks.count])))
        r->stacks.count++;
}

static void read_stacks(reader *r)
{
    uint64_t most_frames = left(r) > UINT32_MAX / HL_HLSNAP_FRAMES_PER_BYTE
                               ? UINT32_MAX /* the book counts them in 32 bits */
                               : (uint64_t)left(r) * HL_HLSNAP_FRAMES_PER_BYTE;
    size_t nodes = get_count(r, 1);
    if (nodes > UINT32_MAX / 2)
        (void)is_fine(r, HL_FULL);
    tree t = {.count = 1, .most = (uint32_t)nodes};
    uint32_t count = get_names(r, &r->stacks, 3);
    t.nodes = allocate(r, nodes + 1, sizeof *t.nodes);
    t.path = allocate(r, nodes, sizeof *t.path);
    t.path_locations = allocate(r, nodes, sizeof *t.path_locations);
    while (r->stacks.count < count && r->status == HL_OK)
        read_stack(r, &t, most_frames);
    if (r->status == HL_OK && t.count - 1 != t.most)
        fail(r, "there are fewer frames than announced");
    while (!r->newer && r->at < r->end && *r->at == 0)
        r->at++; /* padding, which lets stacks have more frames */
    hl_os_free(t.nodes);
    hl_os_free(t.path);
    hl_os_free(t.path_locations);
}

/* Rows. */

static void read_origins(reader *r, hl_origins *origins)
{
    origins->forks = (uint32_t)get_at_most(r, UINT32_MAX, "the number of forks is too great");
    origins->count = (uint32_t)get_at_most(r, HL_MOST_ORIGINS, "there are too many origins");
    if (origins->count > left(r) / 8) {
        fail(r, "a count goes beyond its section");
        origins->count = 0;
    }
    for (uint32_t i = 0; i < origins->count; i++, r->at += 8)
        origins->ids[i] = hl_hlsnap_get_fixed(r->at, 8);
}

typedef struct {
    uint32_t expected; /* number of the stack after the greatest so far */
    uint32_t domain, origin, most_origin;
    uint64_t blocks, bytes;
} row_context;

static void read_row(reader *r, row_context *context, hl_row *row)
{
    const uint8_t *start = r->at;
    uint64_t code = get_varint(r);
    uint64_t stack = context->expected + hl_hlsnap_unzigzag(code >> 1);
    if ((code & 1) != 0) {
        context->domain = (uint32_t)get_at_most(r, UINT32_MAX, "a domain is too great");
        context->origin = (uint32_t)get_at_most(r, context->most_origin, "an origin does not exist");
    }
    uint64_t size = get_varint(r), live = get_varint(r), product;
    uint64_t allocated = live + hl_hlsnap_unzigzag(get_varint(r));
    if (stack >= r->stacks.count)
        fail_at(r, start, "a number names what does not exist");
    else if (allocated >> 56 != 0)
        fail_at(r, start, "a number of blocks is too great");
    else if (__builtin_mul_overflow(size, live, &product) ||
             __builtin_add_overflow(context->bytes, product, &context->bytes) ||
             __builtin_add_overflow(context->blocks, live, &context->blocks))
        fail_at(r, start, "the blocks add up to more than can be counted");
    if (r->status != HL_OK)
        return;
    *row = (hl_row){.size = size,
                    .live = live,
                    .allocated = allocated,
                    .origin = (uint8_t)context->origin,
                    .stack = r->stacks.ids[stack],
                    .domain = context->domain};
    if (stack >= context->expected)
        context->expected = (uint32_t)stack + 1;
}

static void read_rows(reader *r, hl_hlsnap_content *content)
{
    if (content->snapshot_count == HL_HLSNAP_MOST_SNAPSHOTS) {
        fail(r, "has too many snapshots");
        return;
    }
    hl_moment moment = (hl_moment)get_at_most(r, HL_ALLOCATED, "the moment of a snapshot is unknown");
    uint32_t nframe = (uint32_t)get_at_most(r, UINT32_MAX, "the frame limit is too great");
    hl_origins origins = {0};
    read_origins(r, &origins);
    size_t count = get_count(r, 4);
    hl_snapshot *snapshot = NULL;
    if (r->status != HL_OK || !is_fine(r, hl_snapshot_new(r->book, count, &snapshot)))
        return;
    snapshot->moment = moment;
    snapshot->nframe = nframe;
    snapshot->origins = origins;
    row_context context = {.most_origin = origins.count == 0 ? 0 : origins.count - 1};
    for (size_t i = 0; i < count && r->status == HL_OK; i++)
        read_row(r, &context, &snapshot->rows[i]);
    hl_snapshot_seal(snapshot, r->status == HL_OK ? count : 0);
    content->snapshots[content->snapshot_count++] = snapshot;
}

/* Sections. */

static bool is_kind(const uint8_t *section, const char kind[4])
{
    return memcmp(section, kind, 4) == 0;
}

/* Does the section come when it should? It makes the next known. */
static bool comes_after(reader *r, const uint8_t *section, int known)
{
    if ((int)r->known == known)
        return true;
    fail_at(r, section, "a section stands where it should not");
    return false;
}

static void keep_section(reader *r, const uint8_t *section, hl_hlsnap_content *content)
{
    if (content->section_count == HL_HLSNAP_MOST_SECTIONS) {
        fail_at(r, section, "has too many sections");
        return;
    }
    hl_hlsnap_section *kept = &content->sections[content->section_count++];
    memcpy(kept->kind, section, 4);
    kept->bytes = r->at;
    kept->length = left(r);
    r->at = r->end;
}

/* The section whose payload is r->at .. r->end. */
static void read_section(reader *r, const uint8_t *section, hl_hlsnap_content *content)
{
    if (is_kind(section, "FILE")) {
        if (comes_after(r, section, NOTHING))
            read_files(r);
        r->known = FILES;
    } else if (is_kind(section, "FUNC")) {
        if (comes_after(r, section, FILES))
            read_functions(r);
        r->known = FUNCTIONS;
    } else if (is_kind(section, "LOCS")) {
        if (comes_after(r, section, FUNCTIONS))
            read_locations(r);
        r->known = LOCATIONS;
    } else if (is_kind(section, "STKS")) {
        if (comes_after(r, section, LOCATIONS))
            read_stacks(r);
        r->known = STACKS;
    } else if (is_kind(section, "ROWS")) {
        if (comes_after(r, section, STACKS))
            read_rows(r, content);
    } else if (is_kind(section, "END ")) {
        if (content->snapshot_count == 0)
            fail_at(r, section, "has no snapshot");
    } else {
        keep_section(r, section, content);
    }
    if (r->at != r->end && !r->newer)
        fail(r, "a section is longer than its content");
}

/* HL_FUZZING: fuzzers do not guess checksums. */
static bool is_intact(const reader *r, const uint8_t *bytes, size_t length)
{
#ifdef HL_FUZZING
    (void)r, (void)bytes, (void)length;
    return true;
#else
    return hl_hlsnap_get_fixed(bytes + length, HL_HLSNAP_CHECKSUM) == hl_hlsnap_crc_of(&r->crc, bytes, length);
#endif
}

static void read_header(reader *r, const uint8_t *bytes, size_t length)
{
    size_t magic = sizeof HL_HLSNAP_MAGIC - 1;
    r->at = r->end = bytes;
    if (length < magic || memcmp(bytes, HL_HLSNAP_MAGIC, magic) != 0) {
        fail(r, "is not a heapledger snapshot");
        return;
    }
    if (length < HL_HLSNAP_HEADER) {
        fail_at(r, bytes + length, "is cut off");
        return;
    }
    if (!is_intact(r, bytes, HL_HLSNAP_HEADER - HL_HLSNAP_CHECKSUM)) {
        fail(r, "is damaged: the checksum of its header is wrong");
        return;
    }
    r->error->major = (uint16_t)hl_hlsnap_get_fixed(bytes + magic, 2);
    r->error->minor = (uint16_t)hl_hlsnap_get_fixed(bytes + magic + 2, 2);
    if (r->error->major != HL_HLSNAP_MAJOR)
        fail_at(r, bytes + magic, "is of another version than 1.x, which is all that is understood here");
    r->newer = r->error->minor > HL_HLSNAP_MINOR;
    r->at = r->end = bytes + HL_HLSNAP_HEADER;
}

static void read_sections(reader *r, const uint8_t *file_end, hl_hlsnap_content *content)
{
    bool ended = false;
    while (r->status == HL_OK && !ended) {
        const uint8_t *section = r->end;
        size_t rest = (size_t)(file_end - section);
        if (rest < HL_HLSNAP_SECTION_HEAD + HL_HLSNAP_CHECKSUM) {
            fail_at(r, file_end, "is cut off");
            return;
        }
        uint64_t length = hl_hlsnap_get_fixed(section + 4, 8);
        if (length > rest - HL_HLSNAP_SECTION_HEAD - HL_HLSNAP_CHECKSUM) {
            fail_at(r, file_end, "is cut off");
            return;
        }
        if (!is_intact(r, section, HL_HLSNAP_SECTION_HEAD + (size_t)length)) {
            fail_at(r, section, "is damaged: the checksum of a section is wrong");
            return;
        }
        r->at = section + HL_HLSNAP_SECTION_HEAD;
        r->end = r->at + length;
        read_section(r, section, content);
        r->end = section + HL_HLSNAP_SECTION_HEAD + length + HL_HLSNAP_CHECKSUM;
        ended = is_kind(section, "END ");
    }
    if (r->status == HL_OK && r->end != file_end)
        fail_at(r, r->end, "goes on after its end");
}

hl_status hl_hlsnap_read(const uint8_t *bytes, size_t length, hl_hlsnap_content *content, hl_hlsnap_error *error)
{
    reader r = {.start = bytes, .status = HL_OK, .error = error};
    *error = (hl_hlsnap_error){0};
    *content = (hl_hlsnap_content){0};
    hl_hlsnap_crc_open(&r.crc);
    read_header(&r, bytes, length);
    if (r.status == HL_OK && is_fine(&r, hl_book_new(false, &r.book)))
        read_sections(&r, bytes + length, content);
    /* Stacks keep what they name; the reader's own references end here. */
    for (uint32_t i = 0; i < r.locations.count; i++)
        hl_book_release_location(r.book, r.locations.ids[i]);
    for (uint32_t i = 0; i < r.files.count; i++)
        hl_book_release_string(r.book, r.files.ids[i]);
    for (uint32_t i = 0; i < r.functions.count; i++)
        hl_book_release_string(r.book, r.functions.ids[i]);
    hl_os_free(r.files.ids);
    hl_os_free(r.functions.ids);
    hl_os_free(r.locations.ids);
    hl_os_free(r.stacks.ids);
    if (r.status != HL_OK) {
        for (size_t i = 0; i < content->snapshot_count; i++)
            hl_snapshot_drop(content->snapshots[i]);
        *content = (hl_hlsnap_content){0};
    }
    if (r.book != NULL)
        hl_book_drop(r.book); /* the snapshots hold it */
    return r.status;
}
