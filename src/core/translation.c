/* translation.c: see translation.h. */

#include "translation.h"

hl_status hl_translation_open(hl_translation *work, hl_names *to, const hl_snapshot *snapshot)
{
    const hl_names *from = snapshot->names;
    size_t frames = 0;
    *work = (hl_translation){.to = to, .from = from};
    for (size_t i = 0; i < snapshot->row_count; i++) {
        uint32_t depth = hl_names_get_stack(from, snapshot->rows[i].stack)->depth;
        frames += depth;
        if (depth > work->deepest)
            work->deepest = depth;
    }
    size_t stacks = snapshot->row_count, locations = frames, strings = 2 * frames;
    bool opened = hl_id_map_open(&work->stacks, &from->stacks, &stacks) &&
                  hl_id_map_open(&work->locations, &from->locations, &locations) &&
                  hl_id_map_open(&work->strings, &from->strings, &strings);
    return opened ? HL_OK : HL_NO_MEMORY;
}

void hl_translation_close(hl_translation *work)
{
    hl_id_map_close(&work->strings);
    hl_id_map_close(&work->locations);
    hl_id_map_close(&work->stacks);
}

/* `held` says whether the caller has a reference to give back. A string that was known already has another holder. */
static hl_status translate_string(hl_translation *work, hl_string_id from, hl_string_id *to, bool *held)
{
    *held = false;
    if (from == 0) {
        *to = 0;
        return HL_OK;
    }
    uint32_t *known = hl_id_map_at(&work->strings, from);
    if (*known == 0) {
        const hl_string *string = hl_names_get_string(work->from, from);
        hl_status status = hl_names_string(work->to, string->bytes, string->length, known);
        if (status != HL_OK)
            return status;
        *held = true;
    }
    *to = *known;
    return HL_OK;
}

/* A location that is not known yet; the caller has a reference to give back. */
static hl_status enter_location(hl_translation *work, const hl_location *location, hl_location_id *to)
{
    hl_string_id file = 0, name = 0;
    bool holds_file, holds_name = false;
    hl_status status = translate_string(work, location->file, &file, &holds_file);
    if (status == HL_OK)
        status = translate_string(work, location->name, &name, &holds_name);
    if (status == HL_OK)
        status = hl_names_location(work->to, file, location->line, name, to);
    if (holds_file)
        hl_names_release_string(work->to, file);
    if (holds_name)
        hl_names_release_string(work->to, name);
    return status;
}

hl_status hl_translation_location(hl_translation *work, hl_location_id from, hl_location_id *to, bool *fresh)
{
    uint32_t *known = hl_id_map_at(&work->locations, from);
    hl_status status = HL_OK;
    *fresh = *known == 0;
    if (*fresh)
        status = enter_location(work, hl_names_get_location(work->from, from), known);
    *to = *known;
    return status;
}
