/* dense.c: see dense.h. */

#include "dense.h"

#include <string.h>

static size_t power_of_two_from(size_t least)
{
    size_t power = 16;
    while (power < least)
        power *= 2;
    return power;
}

/* The highest id of a table. The ledger may add ids in the meantime. What a snapshot names is below any value seen. */
static uint32_t greatest_id(const hl_table *table)
{
    return __atomic_load_n(&table->used, __ATOMIC_RELAXED);
}

bool hl_id_map_open(hl_id_map *map, const hl_table *table, size_t *most)
{
    size_t used = greatest_id(table);
    if (used < *most)
        *most = used;
    if (used / 8 <= *most + 512) {
        map->numbers = hl_os_alloc(used + 1, sizeof *map->numbers);
        return map->numbers != NULL;
    }
    /* Twice, because a location and the one that represents its line may both need a place. Twice again, so that it
     * is never full. */
    map->mask = power_of_two_from(4 * *most) - 1;
    map->seed = hl_os_random();
    map->numbers = hl_os_alloc(map->mask + 1, sizeof *map->numbers);
    map->ids = hl_os_alloc(map->mask + 1, sizeof *map->ids);
    return map->numbers != NULL && map->ids != NULL;
}

void hl_id_map_close(hl_id_map *map)
{
    hl_os_free(map->numbers);
    hl_os_free(map->ids);
}

bool hl_content_index_open(hl_content_index *index, size_t most)
{
    index->mask = power_of_two_from(2 * most) - 1;
    index->numbers = hl_os_alloc(index->mask + 1, sizeof *index->numbers);
    return index->numbers != NULL;
}

hl_status hl_dense_open(hl_dense *dense, const hl_names *const names[2], const size_t frames[2], bool by_line)
{
    size_t most_files = 0, most_lines = 0;
    *dense = (hl_dense){.by_line = by_line, .seed = hl_os_random()};
    for (int side = 0; side < 2 && names[side] != NULL; side++) {
        size_t strings = frames[side], locations = frames[side];
        dense->names[side] = names[side];
        if (!hl_id_map_open(&dense->strings[side], &names[side]->strings, &strings) ||
            !hl_id_map_open(&dense->locations[side], &names[side]->locations, &locations))
            return HL_NO_MEMORY;
        most_files += strings;
        most_lines += locations;
    }
    dense->most = by_line ? most_lines : most_files;
    /* Not zeroed, because most of an array for the worst case is never touched. */
    dense->files = hl_os_resize(NULL, most_files + 1, sizeof *dense->files);
    dense->lines = hl_os_resize(NULL, by_line ? most_lines + 1 : 0, sizeof *dense->lines);
    if (dense->files == NULL || dense->lines == NULL)
        return HL_NO_MEMORY;
    if (names[1] != NULL && !(hl_content_index_open(&dense->files_by_content, most_files) &&
                              hl_content_index_open(&dense->lines_by_content, most_lines)))
        return HL_NO_MEMORY;
    return HL_OK;
}

void hl_dense_close(hl_dense *dense)
{
    for (int side = 0; side < 2; side++) {
        hl_id_map_close(&dense->strings[side]);
        hl_id_map_close(&dense->locations[side]);
    }
    hl_os_free(dense->files_by_content.numbers);
    hl_os_free(dense->lines_by_content.numbers);
    hl_os_free(dense->files);
    hl_os_free(dense->lines);
}

/* The place that holds the file's number, or will hold it. */
static uint32_t *find_file(hl_dense *dense, const hl_dense_file *wanted)
{
    const hl_content_index *index = &dense->files_by_content;
    uint32_t *place;
    for (size_t at = wanted->hash & index->mask; *(place = &index->numbers[at]) != 0; at = (at + 1) & index->mask) {
        const hl_dense_file *known = &dense->files[*place];
        if (known->hash == wanted->hash && known->length == wanted->length &&
            memcmp(known->bytes, wanted->bytes, wanted->length) == 0)
            break;
    }
    return place;
}

static uint32_t *find_line(hl_dense *dense, const hl_dense_line *wanted)
{
    const hl_content_index *index = &dense->lines_by_content;
    size_t at = (size_t)hl_mix(dense->seed ^ ((uint64_t)wanted->file << 32 | wanted->line)) & index->mask;
    uint32_t *place;
    for (; *(place = &index->numbers[at]) != 0; at = (at + 1) & index->mask)
        if (dense->lines[*place].file == wanted->file && dense->lines[*place].line == wanted->line)
            break;
    return place;
}

static uint32_t number_of_file(hl_dense *dense, int side, hl_string_id id)
{
    uint32_t *number = hl_id_map_at(&dense->strings[side], id), *place = number;
    if (*number != 0)
        return *number;
    const hl_string *string = hl_names_get_string(dense->names[side], id);
    hl_dense_file file = {.bytes = string->bytes, .length = string->length};
    if (dense->names[1] != NULL) {
        file.hash = hl_hash_bytes(dense->seed, file.bytes, file.length);
        place = find_file(dense, &file);
    }
    if (*place == 0) {
        *place = ++dense->file_count;
        dense->files[*place] = file;
    }
    return *number = *place;
}

static uint32_t number_of_line(hl_dense *dense, int side, const hl_location *location)
{
    uint32_t *number = hl_id_map_at(&dense->locations[side], location->line_id), *place = number;
    if (*number != 0)
        return *number;
    hl_dense_line line = {.file = number_of_file(dense, side, location->file), .line = location->line};
    if (dense->names[1] != NULL)
        place = find_line(dense, &line);
    if (*place == 0) {
        *place = ++dense->line_count;
        dense->lines[*place] = line;
    }
    return *number = *place;
}

uint32_t hl_dense_add(hl_dense *dense, int side, hl_location_id id)
{
    const hl_location *location = hl_names_get_location(dense->names[side], id);
    uint32_t number =
        dense->by_line ? number_of_line(dense, side, location) : number_of_file(dense, side, location->file);
    return *hl_id_map_at(&dense->locations[side], id) = number;
}
