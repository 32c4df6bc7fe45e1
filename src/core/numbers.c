/* numbers.c: see numbers.h. */

#include "numbers.h"

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

bool hl_numbering_open(hl_numbering *numbering, const hl_table *table, size_t *most)
{
    size_t used = greatest_id(table);
    if (used < *most)
        *most = used;
    if (used / 8 <= *most + 512) {
        numbering->numbers = hl_os_alloc(used + 1, sizeof *numbering->numbers);
        return numbering->numbers != NULL;
    }
    /* Twice, because a location and the one that represents its line may both need a place. Twice again, so that it
     * is never full. */
    numbering->mask = power_of_two_from(4 * *most) - 1;
    numbering->seed = hl_os_random();
    numbering->numbers = hl_os_alloc(numbering->mask + 1, sizeof *numbering->numbers);
    numbering->ids = hl_os_alloc(numbering->mask + 1, sizeof *numbering->ids);
    return numbering->numbers != NULL && numbering->ids != NULL;
}

void hl_numbering_close(hl_numbering *numbering)
{
    hl_os_free(numbering->numbers);
    hl_os_free(numbering->ids);
}

bool hl_finder_open(hl_finder *finder, size_t most)
{
    finder->mask = power_of_two_from(2 * most) - 1;
    finder->numbers = hl_os_alloc(finder->mask + 1, sizeof *finder->numbers);
    return finder->numbers != NULL;
}

hl_status hl_numbers_open(hl_numbers *numbers, const hl_book *const books[2], const size_t frames[2], bool by_line)
{
    size_t most_files = 0, most_lines = 0;
    *numbers = (hl_numbers){.by_line = by_line, .seed = hl_os_random()};
    for (int side = 0; side < 2 && books[side] != NULL; side++) {
        size_t strings = frames[side], locations = frames[side];
        numbers->books[side] = books[side];
        if (!hl_numbering_open(&numbers->strings[side], &books[side]->strings, &strings) ||
            !hl_numbering_open(&numbers->locations[side], &books[side]->locations, &locations))
            return HL_NO_MEMORY;
        most_files += strings;
        most_lines += locations;
    }
    numbers->most = by_line ? most_lines : most_files;
    /* Not zeroed, because most of an array for the worst case is never touched. */
    numbers->files = hl_os_resize(NULL, most_files + 1, sizeof *numbers->files);
    numbers->lines = hl_os_resize(NULL, by_line ? most_lines + 1 : 0, sizeof *numbers->lines);
    if (numbers->files == NULL || numbers->lines == NULL)
        return HL_NO_MEMORY;
    if (books[1] != NULL && !(hl_finder_open(&numbers->files_by_content, most_files) &&
                              hl_finder_open(&numbers->lines_by_content, most_lines)))
        return HL_NO_MEMORY;
    return HL_OK;
}

void hl_numbers_close(hl_numbers *numbers)
{
    for (int side = 0; side < 2; side++) {
        hl_numbering_close(&numbers->strings[side]);
        hl_numbering_close(&numbers->locations[side]);
    }
    hl_os_free(numbers->files_by_content.numbers);
    hl_os_free(numbers->lines_by_content.numbers);
    hl_os_free(numbers->files);
    hl_os_free(numbers->lines);
}

/* The place that holds the file's number, or will hold it. */
static uint32_t *find_file(hl_numbers *numbers, const hl_numbered_file *wanted)
{
    const hl_finder *finder = &numbers->files_by_content;
    uint32_t *place;
    for (size_t at = wanted->hash & finder->mask; *(place = &finder->numbers[at]) != 0; at = (at + 1) & finder->mask) {
        const hl_numbered_file *known = &numbers->files[*place];
        if (known->hash == wanted->hash && known->length == wanted->length &&
            memcmp(known->bytes, wanted->bytes, wanted->length) == 0)
            break;
    }
    return place;
}

static uint32_t *find_line(hl_numbers *numbers, const hl_numbered_line *wanted)
{
    const hl_finder *finder = &numbers->lines_by_content;
    size_t at = (size_t)hl_mix(numbers->seed ^ ((uint64_t)wanted->file << 32 | wanted->line)) & finder->mask;
    uint32_t *place;
    for (; *(place = &finder->numbers[at]) != 0; at = (at + 1) & finder->mask)
        if (numbers->lines[*place].file == wanted->file && numbers->lines[*place].line == wanted->line)
            break;
    return place;
}

static uint32_t number_of_file(hl_numbers *numbers, int side, hl_string_id id)
{
    uint32_t *number = hl_numbering_at(&numbers->strings[side], id), *place = number;
    if (*number != 0)
        return *number;
    const hl_string *string = hl_book_get_string(numbers->books[side], id);
    hl_numbered_file file = {.bytes = string->bytes, .length = string->length};
    if (numbers->books[1] != NULL) {
        file.hash = hl_hash_bytes(numbers->seed, file.bytes, file.length);
        place = find_file(numbers, &file);
    }
    if (*place == 0) {
        *place = ++numbers->file_count;
        numbers->files[*place] = file;
    }
    return *number = *place;
}

static uint32_t number_of_line(hl_numbers *numbers, int side, const hl_location *location)
{
    uint32_t *number = hl_numbering_at(&numbers->locations[side], location->line_id), *place = number;
    if (*number != 0)
        return *number;
    hl_numbered_line line = {.file = number_of_file(numbers, side, location->file), .line = location->line};
    if (numbers->books[1] != NULL)
        place = find_line(numbers, &line);
    if (*place == 0) {
        *place = ++numbers->line_count;
        numbers->lines[*place] = line;
    }
    return *number = *place;
}

uint32_t hl_numbers_add(hl_numbers *numbers, int side, hl_location_id id)
{
    const hl_location *location = hl_book_get_location(numbers->books[side], id);
    uint32_t number =
        numbers->by_line ? number_of_line(numbers, side, location) : number_of_file(numbers, side, location->file);
    return *hl_numbering_at(&numbers->locations[side], id) = number;
}
