/* sums.c: see sums.h.
 *
 * That a key has been counted for a row already is noted at the key, by the number of the row: nothing has to be
 * cleared between rows.
 */

#include "sums.h"

#include <string.h>

/* The frames of a row that count, the newest first; none where the row takes no part. */
static uint32_t frames_of(const hl_sums *sums, const hl_row *row, const hl_location_id **locations)
{
    if (row->live == 0)
        return 0;
    const hl_stack *stack = hl_book_get_stack(sums->snapshot->book, row->stack);
    *locations = stack->locations;
    return sums->all_frames || stack->depth == 0 ? stack->depth : 1;
}

static void number_row(hl_sums *sums, const hl_row *row)
{
    const hl_location_id *locations;
    uint32_t depth = frames_of(sums, row, &locations);
    for (uint32_t i = 0; i < depth; i++) {
        uint32_t *number = hl_numbering_at(&sums->numbering, locations[i]);
        if (HL_UNLIKELY(*number == 0)) {
            sums->locations[sums->count++] = locations[i];
            *number = sums->count;
        }
    }
}

hl_status hl_sums_open(hl_sums *sums, const hl_snapshot *snapshot, bool all_frames)
{
    size_t most = 0;
    *sums = (hl_sums){.snapshot = snapshot, .all_frames = all_frames};
    for (size_t i = 0; i < snapshot->row_count; i++) {
        const hl_location_id *locations;
        most += frames_of(sums, &snapshot->rows[i], &locations);
    }
    bool opened = hl_numbering_open(&sums->numbering, &snapshot->book->locations, &most);
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

hl_status hl_sums_add(const hl_sums *sums, const uint32_t *keys, uint32_t key_count, hl_sum *results)
{
    size_t *counted = hl_os_alloc((size_t)key_count + 1, sizeof *counted); /* by key: 1 + the row, or 0 */
    if (counted == NULL)
        return HL_NO_MEMORY;
    memset(results, 0, key_count * sizeof *results);
    for (size_t i = 0; i < sums->snapshot->row_count; i++) {
        const hl_row *row = &sums->snapshot->rows[i];
        const hl_location_id *locations;
        uint32_t depth = frames_of(sums, row, &locations);
        for (uint32_t frame = 0; frame < depth; frame++) {
            uint32_t key = keys[*hl_numbering_at(&sums->numbering, locations[frame]) - 1];
            if (counted[key] == i + 1)
                continue;
            counted[key] = i + 1;
            results[key].bytes += row->size * row->live;
            results[key].blocks += row->live;
        }
    }
    hl_os_free(counted);
    return HL_OK;
}

void hl_sums_close(hl_sums *sums)
{
    hl_numbering_close(&sums->numbering);
    hl_os_free(sums->locations);
}
