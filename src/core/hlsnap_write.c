/* hlsnap_write.c: snapshots to .hlsnap files. See hlsnap.h, and docs/format.md for the bytes.
 *
 * A first walk over the rows numbers the stacks in the order of their first use. Every stack is walked from its
 * oldest frame. This numbers the nodes of the tree of frames, the locations, files and functions in the same way. So
 * only what the rows name is written, and what is named for the first time needs no number. Then the tables that
 * recognise names are freed, and the file is assembled: a second walk writes the rows.
 *
 * A process that is ending may reach its highest memory here. Most of what is added are 16 to 24 bytes for each node.
 *
 * Threading: reads immutable snapshots or a locked ledger; the rest is local.
 */

#include <string.h>

#include "dense.h"
#include "hlsnap.h"
#include "hlsnap_bytes.h"

/* From ids in the name table to 1 + the number in the file; 0: not yet named. */
typedef struct {
    hl_id_map ids;
    uint32_t count; /* how many are named */
} file_numbers;

/* A node of the tree of frames: the stack that ends with `location`, called from `parent`. Node 0 is the root. */
typedef struct {
    uint32_t parent, location; /* the location's number in the file */
} node;

typedef struct {
    const hl_names *names;
    file_numbers files, functions, locations, stacks;
    hl_hlsnap_buffer file_names, function_names, location_bytes, stack_bytes, file;
    const hl_string *last_name; /* of the file named last; NULL: none yet */
    uint32_t last_line;         /* of the location written last */
    node *nodes;
    uint32_t node_count, node_room;
    uint32_t *slots; /* open addressing: node numbers, 0 is free */
    uint32_t slot_count;
    uint64_t seed; /* of the slots' hashes: the names may come from a file whose author must not know it */
    /* The stack written last: its nodes and the locations in the name table, oldest first. */
    uint32_t *path;
    hl_location_id *path_locations;
    uint32_t path_depth, path_room;
    uint64_t frames; /* of all stacks */
    hl_status status;
    hl_hlsnap_crc crc;
} writer;

static void *grown(writer *w, void *array, size_t room, size_t size)
{
    void *bigger = hl_os_resize(array, room, size);
    if (bigger == NULL)
        w->status = HL_NO_MEMORY;
    return bigger;
}

/* All ids of the table have a place from the start. Memory is used only for those that are named. */
static bool open_file_numbers(writer *w, file_numbers *of, const hl_table *table)
{
    size_t all = SIZE_MAX;
    if (!hl_id_map_open(&of->ids, table, &all))
        w->status = HL_NO_MEMORY;
    return w->status == HL_OK;
}

/* The number of `id`. *is_new says whether it is a new number. */
static uint32_t number_of(file_numbers *of, uint32_t id, bool *is_new)
{
    uint32_t *number = hl_id_map_at(&of->ids, id);
    *is_new = *number == 0;
    if (*is_new)
        *number = ++of->count;
    return *number - 1;
}

/* The code of a thing: 0 the first time, which gives it a number, and then that number + 1. */
static uint32_t code_of(file_numbers *of, uint32_t id, uint32_t *number)
{
    bool is_new;
    *number = number_of(of, id, &is_new);
    return is_new ? 0 : *number + 1;
}

/* Names of files begin alike. */
static void put_file_name(writer *w, const hl_string *name)
{
    uint32_t shared = 0;
    while (w->last_name != NULL && shared < HL_HLSNAP_MOST_SHARED && shared < name->length &&
           shared < w->last_name->length && name->bytes[shared] == w->last_name->bytes[shared])
        shared++;
    hl_hlsnap_add_varint(&w->file_names, shared);
    hl_hlsnap_add_varint(&w->file_names, name->length - shared);
    hl_hlsnap_add_bytes(&w->file_names, name->bytes + shared, name->length - shared);
    w->last_name = name;
}

static void put_function_name(writer *w, const hl_string *name)
{
    hl_hlsnap_add_varint(&w->function_names, name->length);
    hl_hlsnap_add_bytes(&w->function_names, name->bytes, name->length);
}

/* Returns the number of the location. */
static uint32_t put_location(writer *w, hl_location_id id)
{
    uint32_t number, unused, code = code_of(&w->locations, id, &number);
    hl_hlsnap_add_varint(&w->stack_bytes, code);
    if (code != 0)
        return number;
    const hl_location *location = hl_names_get_location(w->names, id);
    code = code_of(&w->files, location->file, &unused);
    hl_hlsnap_add_varint(&w->location_bytes, code);
    if (code == 0)
        put_file_name(w, hl_names_get_string(w->names, location->file));
    if (location->name == 0) {
        hl_hlsnap_add_varint(&w->location_bytes, 0);
    } else {
        code = code_of(&w->functions, location->name, &unused);
        hl_hlsnap_add_varint(&w->location_bytes, 1 + (uint64_t)code);
        if (code == 0)
            put_function_name(w, hl_names_get_string(w->names, location->name));
    }
    hl_hlsnap_add_varint(&w->location_bytes, hl_hlsnap_zigzag((uint64_t)location->line - w->last_line));
    w->last_line = location->line;
    return number;
}

/* The tree of frames. */

static uint32_t slot_of(const writer *w, uint32_t parent, uint32_t location)
{
    return (uint32_t)hl_mix(w->seed ^ ((uint64_t)parent << 32 | location)) & (w->slot_count - 1);
}

/* The child of `parent` at `location`, or 0. */
static uint32_t find_node(const writer *w, uint32_t parent, uint32_t location)
{
    uint32_t slot = slot_of(w, parent, location);
    for (; w->slots[slot] != 0; slot = (slot + 1) & (w->slot_count - 1)) {
        const node *found = &w->nodes[w->slots[slot]];
        if (found->parent == parent && found->location == location)
            return w->slots[slot];
    }
    return 0;
}

static void enter_node(writer *w, uint32_t number)
{
    uint32_t slot = slot_of(w, w->nodes[number].parent, w->nodes[number].location);
    while (w->slots[slot] != 0)
        slot = (slot + 1) & (w->slot_count - 1);
    w->slots[slot] = number;
}

/* Make room for one more node, with at most half of the slots in use. */
static bool make_room(writer *w)
{
    if (w->node_count < w->node_room)
        return true;
    if (w->node_room > UINT32_MAX / 4) {
        w->status = HL_FULL;
        return false;
    }
    uint32_t room = w->node_room == 0 ? 1024 : 2 * w->node_room;
    node *nodes = grown(w, w->nodes, room, sizeof *nodes);
    if (nodes == NULL)
        return false;
    w->nodes = nodes;
    hl_os_free(w->slots); /* first, because the nodes hold what was in them */
    w->slots = hl_os_alloc((size_t)room * 2, sizeof *w->slots);
    if (w->slots == NULL) {
        w->status = HL_NO_MEMORY;
        return false;
    }
    w->slot_count = room * 2;
    w->node_room = room;
    if (w->node_count == 0)
        w->nodes[w->node_count++] = (node){0}; /* the root */
    for (uint32_t i = 1; i < w->node_count; i++)
        enter_node(w, i);
    return true;
}

static bool lengthen_path(writer *w, uint32_t depth)
{
    if (depth <= w->path_room)
        return true;
    uint32_t *path = grown(w, w->path, depth, sizeof *path);
    if (path == NULL)
        return false;
    w->path = path;
    hl_location_id *locations = grown(w, w->path_locations, depth, sizeof *locations);
    if (locations == NULL)
        return false;
    w->path_locations = locations;
    w->path_room = depth;
    return true;
}

/* A stack: where it leaves the tree, the nodes that it adds, the total. The part that it shares with the previous
 * stack, which is most of it, is found without the hash table. */
static void put_stack(writer *w, hl_stack_id id)
{
    const hl_stack *stack = hl_names_get_stack(w->names, id);
    uint32_t depth = stack->depth, shared = 0;
    if (!lengthen_path(w, depth))
        return;
    while (shared < depth && shared < w->path_depth &&
           w->path_locations[shared] == stack->locations[depth - 1 - shared])
        shared++;
    uint32_t at = shared == 0 ? 0 : w->path[shared - 1];
    for (; shared < depth; shared++) {
        hl_location_id location = stack->locations[depth - 1 - shared];
        uint32_t number = *hl_id_map_at(&w->locations.ids, location);
        uint32_t next = number == 0 ? 0 : find_node(w, at, number - 1);
        if (next == 0)
            break;
        w->path[shared] = at = next;
        w->path_locations[shared] = location;
    }
    hl_hlsnap_add_varint(&w->stack_bytes, at == 0 ? 0 : w->node_count - at);
    hl_hlsnap_add_varint(&w->stack_bytes, depth - shared);
    for (; shared < depth; shared++) {
        hl_location_id location = stack->locations[depth - 1 - shared];
        uint32_t number = put_location(w, location);
        if (!make_room(w))
            return;
        w->nodes[w->node_count] = (node){.parent = at, .location = number};
        enter_node(w, w->node_count);
        w->path[shared] = at = w->node_count++;
        w->path_locations[shared] = location;
    }
    uint32_t total = __atomic_load_n(&stack->total, __ATOMIC_RELAXED); /* the ledger may set it at any time */
    hl_hlsnap_add_varint(&w->stack_bytes, total == 0 ? 0 : 1 + hl_hlsnap_zigzag((uint64_t)total - depth));
    w->path_depth = depth;
    w->frames += depth;
}

/* Returns how many rows there are. */
static uint64_t put_stacks(writer *w, const hl_rows *rows)
{
    size_t at = 0;
    uint64_t count = 0;
    for (hl_row row; w->status == HL_OK && hl_rows_next(rows, &at, &row); count++) {
        bool is_new;
        (void)number_of(&w->stacks, row.stack, &is_new);
        if (is_new)
            put_stack(w, row.stack);
    }
    return count;
}

static void close_file_numbers(file_numbers *of)
{
    hl_id_map_close(&of->ids);
    of->ids = (hl_id_map){0};
}

static void close_buffer(hl_hlsnap_buffer *buffer)
{
    hl_os_free(buffer->bytes);
    *buffer = (hl_hlsnap_buffer){0};
}

/* Free what only the stacks needed. */
static void close_tree(writer *w)
{
    close_file_numbers(&w->files);
    close_file_numbers(&w->functions);
    close_file_numbers(&w->locations);
    hl_os_free(w->nodes);
    hl_os_free(w->slots);
    hl_os_free(w->path);
    hl_os_free(w->path_locations);
}

/* Write all names. counts[i] is the number of rows in rows[i]. */
static void put_names(writer *w, const hl_rows *rows, size_t count, uint64_t *counts)
{
    if (open_file_numbers(w, &w->files, &w->names->strings) &&
        open_file_numbers(w, &w->functions, &w->names->strings) &&
        open_file_numbers(w, &w->locations, &w->names->locations) &&
        open_file_numbers(w, &w->stacks, &w->names->stacks) && make_room(w))
        for (size_t i = 0; i < count; i++)
            counts[i] = put_stacks(w, &rows[i]);
    if (w->file_names.failed || w->function_names.failed || w->location_bytes.failed || w->stack_bytes.failed)
        w->status = HL_NO_MEMORY;
    close_tree(w);
}

/* Sections. Each is begun, filled in place, and ended. */

static size_t begin_section(hl_hlsnap_buffer *to, const char kind[4])
{
    size_t start = to->length;
    hl_hlsnap_add_bytes(to, kind, 4);
    hl_hlsnap_add_fixed(to, 8, 0);
    return start;
}

static void end_section(writer *w, size_t start)
{
    hl_hlsnap_buffer *to = &w->file;
    if (to->failed)
        return;
    hl_hlsnap_put_fixed(to->bytes + start + 4, 8, to->length - start - HL_HLSNAP_SECTION_HEAD);
    hl_hlsnap_add_fixed(to, HL_HLSNAP_CHECKSUM, hl_hlsnap_crc_of(&w->crc, to->bytes + start, to->length - start));
}

static void put_section(writer *w, const char kind[4], const uint8_t *bytes, size_t length)
{
    size_t start = begin_section(&w->file, kind);
    hl_hlsnap_add_bytes(&w->file, bytes, length);
    end_section(w, start);
}

static void put_header(writer *w)
{
    hl_hlsnap_buffer *to = &w->file;
    hl_hlsnap_add_bytes(to, HL_HLSNAP_MAGIC, 8);
    hl_hlsnap_add_fixed(to, 2, HL_HLSNAP_MAJOR);
    hl_hlsnap_add_fixed(to, 2, HL_HLSNAP_MINOR);
    if (!to->failed)
        hl_hlsnap_add_fixed(to, HL_HLSNAP_CHECKSUM, hl_hlsnap_crc_of(&w->crc, to->bytes, to->length));
}

/* Frees the content. */
static void put_counted(writer *w, const char kind[4], const file_numbers *of, hl_hlsnap_buffer *content)
{
    size_t start = begin_section(&w->file, kind);
    hl_hlsnap_add_varint(&w->file, of->count);
    hl_hlsnap_add_bytes(&w->file, content->bytes, content->length);
    close_buffer(content);
    end_section(w, start);
}

static void put_tree(writer *w)
{
    size_t start = begin_section(&w->file, "STKS");
    hl_hlsnap_add_varint(&w->file, w->node_count - 1);
    hl_hlsnap_add_varint(&w->file, w->stacks.count);
    hl_hlsnap_add_bytes(&w->file, w->stack_bytes.bytes, w->stack_bytes.length);
    close_buffer(&w->stack_bytes);
    uint64_t length = w->file.length - start - HL_HLSNAP_SECTION_HEAD;
    uint64_t wanted = w->frames / HL_HLSNAP_FRAMES_PER_BYTE + (w->frames % HL_HLSNAP_FRAMES_PER_BYTE != 0);
    hl_hlsnap_add_zeros(&w->file, wanted > length ? wanted - length : 0);
    end_section(w, start);
}

static void put_row(writer *w, const hl_row *row, const hl_row *last, uint32_t *expected)
{
    hl_hlsnap_buffer *to = &w->file;
    uint32_t stack = *hl_id_map_at(&w->stacks.ids, row->stack) - 1;
    bool moved = row->domain != last->domain || row->origin != last->origin;
    hl_hlsnap_add_varint(to, hl_hlsnap_zigzag((uint64_t)stack - *expected) << 1 | moved);
    if (moved) {
        hl_hlsnap_add_varint(to, row->domain);
        hl_hlsnap_add_varint(to, row->origin);
    }
    hl_hlsnap_add_varint(to, row->size);
    hl_hlsnap_add_varint(to, row->live);
    hl_hlsnap_add_varint(to, hl_hlsnap_zigzag(row->allocated - row->live));
    if (stack >= *expected)
        *expected = stack + 1;
}

static void put_rows(writer *w, const hl_rows *rows, uint64_t count)
{
    hl_hlsnap_buffer *to = &w->file;
    size_t start = begin_section(to, "ROWS"), at = 0;
    hl_hlsnap_add_varint(to, (uint64_t)rows->moment);
    hl_hlsnap_add_varint(to, rows->nframe);
    hl_hlsnap_add_varint(to, rows->origins->forks);
    hl_hlsnap_add_varint(to, rows->origins->count);
    for (uint32_t i = 0; i < rows->origins->count; i++)
        hl_hlsnap_add_fixed(to, 8, rows->origins->ids[i]);
    hl_hlsnap_add_varint(to, count);
    uint32_t expected = 0;
    hl_row last = {0};
    uint64_t blocks = 0, bytes = 0, product;
    for (hl_row row; hl_rows_next(rows, &at, &row); last = row) {
        if (__builtin_mul_overflow(row.size, row.live, &product) || __builtin_add_overflow(bytes, product, &bytes) ||
            __builtin_add_overflow(blocks, row.live, &blocks)) {
            w->status = HL_FULL;
            return;
        }
        put_row(w, &row, &last, &expected);
    }
    end_section(w, start);
}

hl_status hl_hlsnap_write_rows(const hl_rows *rows, size_t count, const hl_hlsnap_section *sections,
                               size_t section_count, hl_hlsnap_file *file)
{
    uint64_t counts[HL_HLSNAP_MOST_SNAPSHOTS];
    if (count > HL_HLSNAP_MOST_SNAPSHOTS || section_count > HL_HLSNAP_MOST_SECTIONS)
        return HL_FULL;
    writer w = {.names = rows[0].names, .seed = hl_os_random(), .status = HL_OK};
    hl_hlsnap_crc_open(&w.crc);
    put_names(&w, rows, count, counts);
    if (w.status == HL_OK) {
        put_header(&w);
        for (size_t i = 0; i < section_count; i++)
            put_section(&w, sections[i].kind, sections[i].bytes, sections[i].length);
        put_counted(&w, "FILE", &w.files, &w.file_names);
        put_counted(&w, "FUNC", &w.functions, &w.function_names);
        put_counted(&w, "LOCS", &w.locations, &w.location_bytes);
        put_tree(&w);
        for (size_t i = 0; i < count && w.status == HL_OK; i++)
            put_rows(&w, &rows[i], counts[i]);
        put_section(&w, "END ", NULL, 0);
        if (w.file.failed)
            w.status = HL_NO_MEMORY;
    }
    close_file_numbers(&w.stacks);
    close_buffer(&w.file_names);
    close_buffer(&w.function_names);
    close_buffer(&w.location_bytes);
    close_buffer(&w.stack_bytes);
    if (w.status == HL_OK)
        *file = (hl_hlsnap_file){.bytes = w.file.bytes, .length = w.file.length};
    else
        close_buffer(&w.file);
    return w.status;
}

hl_status hl_hlsnap_write(const hl_snapshot *const *snapshots, size_t count, const hl_hlsnap_section *sections,
                          size_t section_count, hl_hlsnap_file *file)
{
    hl_rows rows[HL_HLSNAP_MOST_SNAPSHOTS];
    if (count > HL_HLSNAP_MOST_SNAPSHOTS)
        return HL_FULL;
    for (size_t i = 0; i < count; i++)
        rows[i] = hl_rows_of_snapshot(snapshots[i]);
    return hl_hlsnap_write_rows(rows, count, sections, section_count, file);
}
