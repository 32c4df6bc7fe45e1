/* hlsnap_read.c: .hlsnap files to snapshots. See hlsnap.h, docs/format.md for the bytes, and hlsnap_reader.h for how
 * they are read.
 *
 * Threading: everything is local.
 */

#include <string.h>

#include "hlsnap_reader.h"

/* Rows. */

static void read_origins(hl_hlsnap_reader *r, hl_origins *origins)
{
    origins->forks =
        (uint32_t)hl_hlsnap_get_at_most(r, UINT32_MAX, HL_HLSNAP_MALFORMED "the number of forks is too great");
    origins->count =
        (uint32_t)hl_hlsnap_get_at_most(r, HL_MOST_ORIGINS, HL_HLSNAP_MALFORMED "there are too many origins");
    if (origins->count > hl_hlsnap_left(r) / 8) {
        hl_hlsnap_fail(r, HL_HLSNAP_MALFORMED "a count goes beyond its section");
        origins->count = 0;
    }
    for (uint32_t i = 0; i < origins->count; i++, r->at += 8)
        origins->ids[i] = hl_hlsnap_get_fixed(r->at, 8);
}

typedef struct {
    uint32_t expected; /* 1 + the highest stack number so far */
    uint32_t domain, origin, most_origin;
    unsigned __int128 weight;
} row_context;

static void read_row(hl_hlsnap_reader *r, row_context *context, hl_row *row)
{
    const uint8_t *start = r->at;
    uint64_t code = hl_hlsnap_get_varint(r);
    uint64_t stack = context->expected + hl_hlsnap_unzigzag(code >> 1);
    if ((code & 1) != 0) {
        context->domain = (uint32_t)hl_hlsnap_get_at_most(r, UINT32_MAX, HL_HLSNAP_MALFORMED "a domain is too great");
        context->origin =
            (uint32_t)hl_hlsnap_get_at_most(r, context->most_origin, HL_HLSNAP_MALFORMED "an origin does not exist");
    }
    uint64_t size = hl_hlsnap_get_varint(r), live = hl_hlsnap_get_varint(r);
    uint64_t allocated = live + hl_hlsnap_unzigzag(hl_hlsnap_get_varint(r));
    if (stack >= r->stacks.count)
        hl_hlsnap_fail_at(r, start, HL_HLSNAP_MALFORMED "a number names what does not exist");
    else if (allocated >> 56 != 0)
        hl_hlsnap_fail_at(r, start, HL_HLSNAP_MALFORMED "a number of blocks is too great");
    if (r->status != HL_OK)
        return;
    *row = (hl_row){.size = size,
                    .live = live,
                    .allocated = allocated,
                    .origin = (uint8_t)context->origin,
                    .stack = r->stacks.ids[stack],
                    .domain = context->domain};
    context->weight += hl_row_weight(row, hl_names_get_stack(r->names, row->stack)->depth);
    if (stack >= context->expected)
        context->expected = (uint32_t)stack + 1;
}

static void read_rows(hl_hlsnap_reader *r, hl_hlsnap_content *content)
{
    if (content->snapshot_count == HL_HLSNAP_MOST_SNAPSHOTS) {
        hl_hlsnap_fail(r, "has too many snapshots");
        return;
    }
    const uint8_t *start = r->at;
    hl_moment moment =
        (hl_moment)hl_hlsnap_get_at_most(r, HL_ALLOCATED, HL_HLSNAP_MALFORMED "the moment of a snapshot is unknown");
    uint32_t nframe =
        (uint32_t)hl_hlsnap_get_at_most(r, UINT32_MAX, HL_HLSNAP_MALFORMED "the frame limit is too great");
    hl_origins origins = {0};
    read_origins(r, &origins);
    if (r->only != HL_MOMENTS && r->only != moment) {
        r->at = r->end;
        return;
    }
    size_t count = hl_hlsnap_get_count(r, 4);
    hl_snapshot *snapshot = NULL;
    if (r->status != HL_OK || !hl_hlsnap_is_fine(r, hl_snapshot_new(r->names, count, &snapshot)))
        return;
    snapshot->moment = moment;
    snapshot->nframe = nframe;
    snapshot->origins = origins;
    row_context context = {.most_origin = origins.count == 0 ? 0 : origins.count - 1};
    for (size_t i = 0; i < count && r->status == HL_OK; i++)
        read_row(r, &context, &snapshot->rows[i]);
    if (context.weight > HL_MOST_WEIGHT)
        hl_hlsnap_fail_at(r, start, HL_HLSNAP_MALFORMED "the blocks add up to more than 64 bits");
    hl_snapshot_seal(snapshot, r->status == HL_OK ? count : 0);
    content->snapshots[content->snapshot_count++] = snapshot;
}

/* Sections. */

static bool is_kind(const uint8_t *section, const char kind[4])
{
    return memcmp(section, kind, 4) == 0;
}

static void keep_section(hl_hlsnap_reader *r, const uint8_t *section, hl_hlsnap_content *content)
{
    if (content->section_count == HL_HLSNAP_MOST_SECTIONS) {
        hl_hlsnap_fail_at(r, section, "has too many sections");
        return;
    }
    hl_hlsnap_section *kept = &content->sections[content->section_count++];
    memcpy(kept->kind, section, 4);
    kept->bytes = r->at;
    kept->length = hl_hlsnap_left(r);
    r->at = r->end;
}

/* Each section that holds names appears once, in this order, and before any rows. */
static const struct {
    char kind[5];
    void (*read)(hl_hlsnap_reader *r);
} name_sections[] = {
    {"FILE", hl_hlsnap_read_files},
    {"FUNC", hl_hlsnap_read_functions},
    {"LOCS", hl_hlsnap_read_locations},
    {"STKS", hl_hlsnap_read_stacks},
};
enum { NAMES = sizeof name_sections / sizeof *name_sections };

/* Read the section whose payload is r->at .. r->end. */
static void read_section(hl_hlsnap_reader *r, const uint8_t *section, hl_hlsnap_content *content)
{
    int kind = 0;
    while (kind < NAMES && !is_kind(section, name_sections[kind].kind))
        kind++;
    bool is_rows = is_kind(section, "ROWS");
    if ((kind < NAMES && r->known != kind) || (is_rows && r->known != NAMES)) {
        hl_hlsnap_fail_at(r, section, HL_HLSNAP_MALFORMED "a section stands where it should not");
    } else if (kind < NAMES) {
        name_sections[kind].read(r);
        r->known++;
    } else if (is_rows) {
        r->has_rows = true;
        read_rows(r, content);
    } else if (!is_kind(section, "END ")) {
        keep_section(r, section, content);
    } else if (!r->has_rows) {
        hl_hlsnap_fail_at(r, section, "has no snapshot");
    }
    if (r->at != r->end && !r->newer)
        hl_hlsnap_fail(r, HL_HLSNAP_MALFORMED "a section is longer than its content");
}

static void read_header(hl_hlsnap_reader *r, const uint8_t *bytes, size_t length)
{
    size_t magic = sizeof HL_HLSNAP_MAGIC - 1, header;
    r->at = r->end = bytes;
    if (length < magic || memcmp(bytes, HL_HLSNAP_MAGIC, magic) != 0) {
        hl_hlsnap_fail(r, "is not a heapledger snapshot");
        return;
    }
    hl_hlsnap_state state = hl_hlsnap_look_at_header(&r->crc, bytes, length, &header);
    if (state == HL_HLSNAP_CUT_OFF)
        hl_hlsnap_fail_at(r, bytes + length, "is cut off");
    if (state == HL_HLSNAP_DAMAGED)
        hl_hlsnap_fail(r, "is damaged: the checksum of its header is wrong");
    if (state != HL_HLSNAP_SOUND)
        return;
    r->error->major = (uint16_t)hl_hlsnap_get_fixed(bytes + magic, 2);
    r->error->minor = (uint16_t)hl_hlsnap_get_fixed(bytes + magic + 2, 2);
    if (r->error->major != HL_HLSNAP_MAJOR)
        hl_hlsnap_fail_at(r, bytes + magic, "is of another version than 1.x");
    r->newer = r->error->minor > HL_HLSNAP_MINOR;
    r->at = r->end = bytes + header;
}

static void read_sections(hl_hlsnap_reader *r, const uint8_t *file_end, hl_hlsnap_content *content)
{
    bool ended = false;
    while (r->status == HL_OK && !ended) {
        const uint8_t *section = r->end;
        size_t length;
        hl_hlsnap_state state = hl_hlsnap_look_at_section(&r->crc, section, (size_t)(file_end - section), &length);
        if (state == HL_HLSNAP_CUT_OFF)
            hl_hlsnap_fail_at(r, file_end, "is cut off");
        if (state == HL_HLSNAP_DAMAGED)
            hl_hlsnap_fail_at(r, section, "is damaged: the checksum of a section is wrong");
        if (state != HL_HLSNAP_SOUND)
            return;
        r->at = section + HL_HLSNAP_SECTION_HEAD;
        r->end = section + length - HL_HLSNAP_CHECKSUM;
        read_section(r, section, content);
        r->end = section + length;
        ended = is_kind(section, "END ");
    }
    if (r->status == HL_OK && r->end != file_end)
        hl_hlsnap_fail_at(r, r->end, "goes on after its end");
}

hl_status hl_hlsnap_read_into(hl_names *names, hl_moment only, const uint8_t *bytes, size_t length,
                              hl_hlsnap_content *content, hl_hlsnap_error *error)
{
    hl_hlsnap_reader r = {.start = bytes, .only = only, .status = HL_OK, .error = error, .names = names};
    *error = (hl_hlsnap_error){0};
    *content = (hl_hlsnap_content){0};
    hl_hlsnap_crc_open(&r.crc);
    read_header(&r, bytes, length);
    if (r.status == HL_OK)
        read_sections(&r, bytes + length, content);
    /* Stacks keep what they name; the reader's own references end here. */
    for (uint32_t i = 0; i < r.locations.count; i++)
        hl_names_release_location(r.names, r.locations.ids[i]);
    for (uint32_t i = 0; i < r.files.count; i++)
        hl_names_release_string(r.names, r.files.ids[i]);
    for (uint32_t i = 0; i < r.functions.count; i++)
        hl_names_release_string(r.names, r.functions.ids[i]);
    hl_os_free(r.files.ids);
    hl_os_free(r.functions.ids);
    hl_os_free(r.locations.ids);
    hl_os_free(r.stacks.ids);
    content->newer = r.newer;
    if (r.status != HL_OK) {
        for (size_t i = 0; i < content->snapshot_count; i++)
            hl_snapshot_drop(content->snapshots[i]);
        *content = (hl_hlsnap_content){0};
    }
    return r.status;
}

hl_status hl_hlsnap_read(const uint8_t *bytes, size_t length, hl_hlsnap_content *content, hl_hlsnap_error *error)
{
    hl_names *names;
    *error = (hl_hlsnap_error){0};
    *content = (hl_hlsnap_content){0};
    hl_status status = hl_names_new(false, &names);
    if (status != HL_OK)
        return status;
    status = hl_hlsnap_read_into(names, HL_MOMENTS, bytes, length, content, error);
    hl_names_drop(names); /* the snapshots hold it */
    return status;
}
