/* sums.c: see sums.h.
 *
 * Each key notes the number of the last row that was counted for it. So a key counts once for each row, and nothing
 * has to be cleared between rows.
 */

#include "sums.h"

#include <string.h>

/* The frames of a row that count, newest first. None if the row is ignored. */
static uint32_t frames_of(const hl_sums *sums, const hl_row *row, const hl_location_id **locations)
{
    if (row->live == 0)
        return 0;
    const hl_stack *stack = hl_names_get_stack(sums->snapshot->names, row->stack);
    *locations = stack->locations;
    return sums->frames != HL_SUMS_NEWEST || stack->depth == 0 ? stack->depth : 1;
}

static void number_row(hl_sums *sums, const hl_row *row)
{
    const hl_location_id *locations;
    uint32_t depth = frames_of(sums, row, &locations);
    for (uint32_t i = 0; i < depth; i++) {
        uint32_t *number = hl_id_map_at(&sums->map, locations[i]);
        if (HL_UNLIKELY(*number == 0)) {
            sums->locations[sums->count++] = locations[i];
            *number = sums->count;
        }
    }
}

hl_status hl_sums_open(hl_sums *sums, const hl_snapshot *snapshot, hl_sums_frames frames)
{
    size_t most = 0;
    *sums = (hl_sums){.snapshot = snapshot, .frames = frames};
    for (size_t i = 0; i < snapshot->row_count; i++) {
        const hl_location_id *locations;
        most += frames_of(sums, &snapshot->rows[i], &locations);
    }
    bool opened = hl_id_map_open(&sums->map, &snapshot->names->locations, &most);
    if (opened)
        sums->locations = hl_os_resize(NULL, most + 1, sizeof *sums->locations);
    if (sums->locations == NULL) {
        hl_sums_close(sums);
        return HL_NO_MEMORY;
    }
    for (size_t i = 0; i < snapshot->row_count; i++)
        number_row(sums, &snapshot->rows[i]);
    return HL_OK;
}

static void add_row(hl_sum *result, const hl_row *row)
{
    result->bytes += row->size * row->live;
    result->blocks += row->live;
}

hl_status hl_sums_add(const hl_sums *sums, const uint32_t *keys, uint32_t key_count, hl_sum *results)
{
    size_t *counted = hl_os_alloc((size_t)key_count + 1, sizeof *counted); /* by key: 1 + the row, or 0 */
    if (counted == NULL)
        return HL_NO_MEMORY;
    memset(results, 0, ((size_t)key_count + 1) * sizeof *results);
    for (size_t i = 0; i < sums->snapshot->row_count; i++) {
        const hl_row *row = &sums->snapshot->rows[i];
        const hl_location_id *locations;
        uint32_t depth = frames_of(sums, row, &locations);
        bool has_key = depth == 0;
        for (uint32_t frame = 0; frame < depth && !(has_key && sums->frames == HL_SUMS_FIRST); frame++) {
            uint32_t key = keys[*hl_id_map_at(&sums->map, locations[frame]) - 1];
            if (key == HL_SUMS_NO_KEY || counted[key] == i + 1)
                continue;
            counted[key] = i + 1;
            has_key = true;
            add_row(&results[key], row);
        }
        if (!has_key)
            add_row(&results[key_count], row);
    }
    hl_os_free(counted);
    return HL_OK;
}

hl_status hl_sums_split(const hl_sums *sums, const uint32_t *keys, hl_snapshot *parts[2])
{
    const hl_snapshot *whole = sums->snapshot;
    size_t kept[2] = {0, 0};
    hl_status status = hl_snapshot_derive(whole, whole->row_count, &parts[0]);
    if (status != HL_OK)
        return status;
    status = hl_snapshot_derive(whole, whole->row_count, &parts[1]);
    if (status != HL_OK) {
        hl_snapshot_drop(parts[0]);
        return status;
    }
    for (size_t i = 0; i < whole->row_count; i++) {
        const hl_location_id *locations;
        uint32_t depth = frames_of(sums, &whole->rows[i], &locations), key = HL_SUMS_NO_KEY;
        for (uint32_t frame = 0; frame < depth && key == HL_SUMS_NO_KEY; frame++)
            key = keys[*hl_id_map_at(&sums->map, locations[frame]) - 1];
        int part = key == 1;
        if (whole->rows[i].live > 0)
            parts[part]->rows[kept[part]++] = whole->rows[i];
    }
    hl_snapshot_seal(parts[0], kept[0]);
    hl_snapshot_seal(parts[1], kept[1]);
    return HL_OK;
}

void hl_sums_close(hl_sums *sums)
{
    hl_id_map_close(&sums->map);
    hl_os_free(sums->locations);
}
