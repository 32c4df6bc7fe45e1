/* group.c: see group.h.
 *
 *   1. Every file and line that the rows name gets a number, small and counted from 1: equal content, equal number,
 *      whatever the function and the book. A table from location ids to numbers makes this one load for each frame.
 *   2. The rows' sums go into an array of groups indexed by the number; by stack, groups are found by a hash of the
 *      numbers of the lines. A comparison puts both snapshots' rows into the same groups, the new snapshot's first.
 *   3. The groups are sorted as sequences of symbols (order.h): the sums, then the traceback. For this the files in
 *      play are ranked by their bytes, which in UTF-8 is the order of code points.
 *
 * A statistic is a difference from nothing: |size_diff| = size and |count_diff| = count, so one order serves both.
 */

#include "group.h"

#include <string.h>

#include "order.h"

/* From the ids of one table to numbers; 0: none yet. Indexed by the id, or hashed where the table is far larger than
 * what the rows can name. */
typedef struct {
    uint32_t *numbers;
    uint32_t *ids; /* NULL: not hashed */
    size_t mask;
} numbering;

/* Numbers found by the hash of their content, which the caller compares. Open addressing, never full. */
typedef struct {
    uint32_t *numbers;
    size_t mask;
} finder;

typedef struct {
    const hl_book *book;
    numbering strings;
    numbering locations; /* to the number of the file (BY_FILE) or of the line */
    numbering stacks;    /* BY_STACK: to the number of the group */
} side;

typedef struct {
    const char *bytes;
    uint32_t length;
    uint32_t hash; /* with two books */
    uint32_t rank; /* from 1 */
} file;

typedef struct {
    uint32_t file; /* its number; once ranked, its rank */
    uint32_t line;
} line;

typedef struct {
    hl_key_type key_type;
    bool cumulative;
    bool two_books; /* equal content may have two ids: find it by hash */
    side own[2];
    side *sides[2]; /* of the new and of the old snapshot; the same one when they share a book */
    finder files_by_content, lines_by_content, stacks_by_content;
    file *files;
    line *lines;
    hl_difference *groups;
    uint32_t *stack_hashes; /* BY_STACK: of the groups */
    uint32_t file_count, line_count, group_count; /* each array starts at 1 */
    uint32_t deepest;                             /* greatest depth of a stack that is a group */
} grouper;

static size_t power_of_two_from(size_t least)
{
    size_t power = 16;
    while (power < least)
        power *= 2;
    return power;
}

/* Room for `most` ids out of those up to `used`. */
static bool numbering_open(numbering *table, uint32_t used, size_t most)
{
    if (used / 8 <= most + 512) {
        table->numbers = hl_os_alloc((size_t)used + 1, sizeof *table->numbers);
        return table->numbers != NULL;
    }
    table->mask = power_of_two_from(2 * most) - 1;
    table->numbers = hl_os_alloc(table->mask + 1, sizeof *table->numbers);
    table->ids = hl_os_alloc(table->mask + 1, sizeof *table->ids);
    return table->numbers != NULL && table->ids != NULL;
}

static inline uint32_t *numbering_at(const numbering *table, uint32_t id)
{
    if (HL_LIKELY(table->ids == NULL))
        return &table->numbers[id];
    size_t at = (size_t)hl_mix(id) & table->mask;
    while (table->ids[at] != id && table->ids[at] != 0)
        at = (at + 1) & table->mask;
    table->ids[at] = id;
    return &table->numbers[at];
}

static bool finder_open(finder *table, size_t most)
{
    table->mask = power_of_two_from(2 * most) - 1;
    table->numbers = hl_os_alloc(table->mask + 1, sizeof *table->numbers);
    return table->numbers != NULL;
}

/* Memory that is not zeroed: arrays sized for the worst case are mostly never touched. */
static void *array_of(size_t count, size_t size)
{
    return hl_os_resize(NULL, count, size);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The greatest id of a table. The ledger may add to it meanwhile: what the snapshot names is below any value seen. */
static uint32_t greatest_id(const hl_table *table)
{
    return __atomic_load_n(&table->used, __ATOMIC_RELAXED);
}

/* How many frames of the rows count. */
static size_t count_frames(const grouper *work, const hl_snapshot *snapshot)
{
    if (!work->cumulative && work->key_type != HL_BY_STACK)
        return snapshot->row_count;
    size_t frames = 0;
    for (size_t i = 0; i < snapshot->row_count; i++)
        frames += hl_book_get_stack(snapshot->book, snapshot->rows[i].stack)->depth;
    return frames;
}

/* `most` is raised by what this side may bring: strings, locations, stacks. */
static bool side_open(side *opened, const hl_book *book, size_t frames, size_t rows, hl_key_type key_type,
                      size_t most[3])
{
    uint32_t strings = greatest_id(&book->strings), locations = greatest_id(&book->locations);
    size_t most_locations = smaller(frames, locations), most_strings = smaller(frames, strings);
    opened->book = book;
    most[0] += most_strings;
    most[1] += most_locations;
    /* A location and the one that represents its line may both need a place. */
    if (!numbering_open(&opened->strings, strings, most_strings) ||
        !numbering_open(&opened->locations, locations, 2 * most_locations))
        return false;
    if (key_type != HL_BY_STACK)
        return true;
    uint32_t stacks = greatest_id(&book->stacks);
    most[2] += smaller(rows, stacks);
    return numbering_open(&opened->stacks, stacks, smaller(rows, stacks));
}

static hl_status grouper_open(grouper *work, const hl_snapshot *snapshot, const hl_snapshot *old_snapshot)
{
    size_t most[3] = {0, 0, 0}, frames = count_frames(work, snapshot), rows = snapshot->row_count;
    work->sides[0] = work->sides[1] = &work->own[0];
    if (old_snapshot != NULL && old_snapshot->book == snapshot->book) {
        frames += count_frames(work, old_snapshot);
        rows += old_snapshot->row_count;
    } else if (old_snapshot != NULL) {
        work->two_books = true;
        work->sides[1] = &work->own[1];
        if (!side_open(&work->own[1], old_snapshot->book, count_frames(work, old_snapshot), old_snapshot->row_count,
                       work->key_type, most))
            return HL_NO_MEMORY;
    }
    if (!side_open(&work->own[0], snapshot->book, frames, rows, work->key_type, most))
        return HL_NO_MEMORY;
    work->files = array_of(most[0] + 1, sizeof *work->files);
    work->lines = array_of(most[1] + 1, sizeof *work->lines);
    work->groups = array_of(most[work->key_type] + 1, sizeof *work->groups);
    bool opened = work->files != NULL && work->lines != NULL && work->groups != NULL;
    if (opened && work->two_books)
        opened = finder_open(&work->files_by_content, most[0]) && finder_open(&work->lines_by_content, most[1]);
    if (opened && work->key_type == HL_BY_STACK) {
        work->stack_hashes = array_of(most[2] + 1, sizeof *work->stack_hashes);
        opened = work->stack_hashes != NULL && finder_open(&work->stacks_by_content, most[2]);
    }
    return opened ? HL_OK : HL_NO_MEMORY;
}

static void grouper_close(grouper *work)
{
    for (int i = 0; i < 2; i++) {
        numbering *tables[] = {&work->own[i].strings, &work->own[i].locations, &work->own[i].stacks};
        for (int j = 0; j < 3; j++) {
            hl_os_free(tables[j]->numbers);
            hl_os_free(tables[j]->ids);
        }
    }
    hl_os_free(work->files_by_content.numbers);
    hl_os_free(work->lines_by_content.numbers);
    hl_os_free(work->stacks_by_content.numbers);
    hl_os_free(work->files);
    hl_os_free(work->lines);
    hl_os_free(work->groups);
    hl_os_free(work->stack_hashes);
}

/* Numbers. `old` says whose rows are being added. */

static uint32_t add_group(grouper *work, bool old, uint32_t key)
{
    work->groups[++work->group_count] = (hl_difference){.key = key, .from_old = old};
    return work->group_count;
}

static uint32_t hash_bytes(const char *bytes, size_t length)
{
    uint64_t hash = length;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    return (uint32_t)hl_mix(hash);
}

static uint32_t number_of_file(grouper *work, bool old, hl_string_id id)
{
    side *from = work->sides[old];
    uint32_t *number = numbering_at(&from->strings, id), *place = number;
    if (*number != 0)
        return *number;
    const hl_string *string = hl_book_get_string(from->book, id);
    file new_file = {.bytes = string->bytes, .length = string->length};
    if (work->two_books) {
        new_file.hash = hash_bytes(string->bytes, string->length);
        size_t at = new_file.hash & work->files_by_content.mask;
        for (; *(place = &work->files_by_content.numbers[at]) != 0; at = (at + 1) & work->files_by_content.mask) {
            const file *known = &work->files[*place];
            if (known->hash == new_file.hash && known->length == new_file.length &&
                memcmp(known->bytes, new_file.bytes, new_file.length) == 0)
                return *number = *place;
        }
    }
    work->files[++work->file_count] = new_file;
    if (work->key_type == HL_BY_FILE)
        (void)add_group(work, old, id);
    return *number = *place = work->file_count;
}

/* The first time a location is met. */
static uint32_t number_location(grouper *work, bool old, hl_location_id id)
{
    side *from = work->sides[old];
    const hl_location *location = hl_book_get_location(from->book, id);
    uint32_t file_number = number_of_file(work, old, location->file);
    if (work->key_type == HL_BY_FILE)
        return *numbering_at(&from->locations, id) = file_number;
    uint32_t *number = numbering_at(&from->locations, location->line_id), *place = number;
    if (*number != 0)
        return *numbering_at(&from->locations, id) = *number;
    if (work->two_books) {
        size_t at = (size_t)hl_mix((uint64_t)file_number << 32 | location->line) & work->lines_by_content.mask;
        for (; *(place = &work->lines_by_content.numbers[at]) != 0; at = (at + 1) & work->lines_by_content.mask) {
            const line *known = &work->lines[*place];
            if (known->file == file_number && known->line == location->line)
                return *number = *numbering_at(&from->locations, id) = *place;
        }
    }
    work->lines[++work->line_count] = (line){.file = file_number, .line = location->line};
    if (work->key_type == HL_BY_LINE)
        (void)add_group(work, old, id);
    return *number = *place = *numbering_at(&from->locations, id) = work->line_count;
}

static inline uint32_t number_of(grouper *work, bool old, hl_location_id id)
{
    uint32_t number = *numbering_at(&work->sides[old]->locations, id);
    return HL_LIKELY(number != 0) ? number : number_location(work, old, id);
}

static bool same_lines(grouper *work, const hl_difference *group, bool old, const hl_stack *stack)
{
    const hl_stack *known = hl_book_get_stack(work->sides[group->from_old]->book, group->key);
    if (known->depth != stack->depth)
        return false;
    for (uint32_t i = 0; i < stack->depth; i++)
        if (number_of(work, group->from_old, known->locations[i]) != number_of(work, old, stack->locations[i]))
            return false;
    return true;
}

static uint32_t number_of_stack(grouper *work, bool old, hl_stack_id id, const hl_stack *stack)
{
    uint32_t *number = numbering_at(&work->sides[old]->stacks, id), *place;
    if (*number != 0)
        return *number;
    uint64_t mixed = stack->depth;
    for (uint32_t i = 0; i < stack->depth; i++)
        mixed = (mixed ^ number_of(work, old, stack->locations[i])) * 0x9e3779b97f4a7c15u + (mixed >> 29);
    uint32_t hash = (uint32_t)hl_mix(mixed);
    size_t at = hash & work->stacks_by_content.mask;
    for (; *(place = &work->stacks_by_content.numbers[at]) != 0; at = (at + 1) & work->stacks_by_content.mask)
        if (work->stack_hashes[*place] == hash && same_lines(work, &work->groups[*place], old, stack))
            return *number = *place;
    if (stack->depth > work->deepest)
        work->deepest = stack->depth;
    *number = *place = add_group(work, old, id);
    work->stack_hashes[*number] = hash;
    return *number;
}

/* Sums. */

static inline void add_sums(hl_difference *group, bool old, uint64_t size, uint64_t count)
{
    *(old ? &group->old_size : &group->size) += size;
    *(old ? &group->old_count : &group->count) += count;
}

static void add_rows(grouper *work, const hl_snapshot *snapshot, bool old)
{
    for (size_t i = 0; i < snapshot->row_count; i++) {
        const hl_row *row = &snapshot->rows[i];
        const hl_stack *stack = hl_book_get_stack(snapshot->book, row->stack);
        if (row->live == 0 || stack->depth == 0)
            continue;
        uint64_t size = row->size * row->live;
        if (work->key_type == HL_BY_STACK) {
            add_sums(&work->groups[number_of_stack(work, old, row->stack, stack)], old, size, row->live);
            continue;
        }
        uint32_t frames = work->cumulative ? stack->depth : 1;
        for (uint32_t j = 0; j < frames; j++)
            add_sums(&work->groups[number_of(work, old, stack->locations[j])], old, size, row->live);
    }
}

/* Order. */

enum { FILE_STEP = 7, SUMS = 4 };

/* Seven bytes and how many of them are the file's: "a" comes before "a\0", and both before "b". */
static void file_symbols(const void *context, hl_order_item *items, size_t count, uint32_t depth)
{
    const grouper *work = context;
    for (size_t i = 0; i < count; i++) {
        const file *named = &work->files[items[i].index];
        size_t start = smaller((size_t)depth * FILE_STEP, named->length);
        size_t step = smaller(FILE_STEP, named->length - start);
        uint64_t symbol = 0;
        for (size_t j = 0; j < FILE_STEP; j++)
            symbol = symbol << 8 | (j < step ? (unsigned char)named->bytes[start + j] : 0);
        items[i].symbol = symbol << 8 | step;
    }
}

static uint64_t gap(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* All symbols are inverted, because the greatest comes first. Ranks start at 1, so that 0 is the end of a traceback. */
static void group_symbols(const void *context, hl_order_item *items, size_t count, uint32_t depth)
{
    const grouper *work = context;
    for (size_t i = 0; i < count; i++) {
        const hl_difference *group = &work->groups[items[i].index];
        uint64_t symbol = 0;
        if (depth == 0) {
            symbol = gap(group->size, group->old_size);
        } else if (depth == 1) {
            symbol = group->size;
        } else if (depth == 2) {
            symbol = gap(group->count, group->old_count);
        } else if (depth == 3) {
            symbol = group->count;
        } else if (work->key_type == HL_BY_FILE) {
            symbol = work->files[items[i].index].rank;
        } else {
            uint32_t number = items[i].index;
            if (work->key_type == HL_BY_STACK) {
                const side *from = work->sides[group->from_old];
                const hl_stack *stack = hl_book_get_stack(from->book, group->key);
                uint32_t frame = depth - SUMS;
                number = frame >= stack->depth
                             ? 0
                             : *numbering_at(&from->locations, stack->locations[stack->depth - 1 - frame]);
            }
            if (number != 0)
                symbol = (uint64_t)work->lines[number].file << 32 | work->lines[number].line;
        }
        items[i].symbol = ~symbol;
    }
}

static void rank_files(grouper *work, hl_order_item *items, hl_order_item *spare)
{
    uint32_t longest = 0;
    for (uint32_t i = 0; i < work->file_count; i++) {
        items[i].index = i + 1;
        if (work->files[i + 1].length > longest)
            longest = work->files[i + 1].length;
    }
    hl_order_sort(items, spare, work->file_count, longest / FILE_STEP + 1, file_symbols, work);
    for (uint32_t i = 0; i < work->file_count; i++)
        work->files[items[i].index].rank = i + 1;
    for (uint32_t i = 1; i <= work->line_count; i++)
        work->lines[i].file = work->files[work->lines[i].file].rank;
}

/* Group, sum and sort; *order names the groups in order. */
static hl_status run(grouper *work, const hl_snapshot *snapshot, const hl_snapshot *old_snapshot,
                     hl_order_item **order)
{
    hl_status status = grouper_open(work, snapshot, old_snapshot);
    if (status != HL_OK)
        return status;
    add_rows(work, snapshot, false);
    if (old_snapshot != NULL)
        add_rows(work, old_snapshot, true);
    size_t room = work->group_count > work->file_count ? work->group_count : work->file_count;
    hl_order_item *items = array_of(2 * room, sizeof *items);
    if (items == NULL)
        return HL_NO_MEMORY;
    rank_files(work, items, items + room);
    for (uint32_t i = 0; i < work->group_count; i++)
        items[i].index = i + 1;
    uint32_t frames = work->key_type == HL_BY_STACK ? work->deepest : 1;
    hl_order_sort(items, items + room, work->group_count, SUMS + frames + 1, group_symbols, work);
    *order = items;
    return HL_OK;
}

hl_status hl_group_rows(const hl_snapshot *snapshot, hl_key_type key_type, bool cumulative, hl_group **groups,
                        size_t *count)
{
    grouper work = {.key_type = key_type, .cumulative = cumulative};
    hl_order_item *order = NULL;
    hl_group *made = NULL;
    hl_status status = run(&work, snapshot, NULL, &order);
    if (status == HL_OK && (made = array_of(work.group_count, sizeof *made)) == NULL)
        status = HL_NO_MEMORY;
    if (status == HL_OK) {
        for (uint32_t i = 0; i < work.group_count; i++) {
            const hl_difference *group = &work.groups[order[i].index];
            made[i] = (hl_group){.key = group->key, .size = group->size, .count = group->count};
        }
        *groups = made;
        *count = work.group_count;
    }
    hl_os_free(order);
    grouper_close(&work);
    return status;
}

hl_status hl_group_compare(const hl_snapshot *new_snapshot, const hl_snapshot *old_snapshot, hl_key_type key_type,
                           bool cumulative, hl_difference **differences, size_t *count)
{
    grouper work = {.key_type = key_type, .cumulative = cumulative};
    hl_order_item *order = NULL;
    hl_difference *made = NULL;
    hl_status status = run(&work, new_snapshot, old_snapshot, &order);
    if (status == HL_OK && (made = array_of(work.group_count, sizeof *made)) == NULL)
        status = HL_NO_MEMORY;
    if (status == HL_OK) {
        for (uint32_t i = 0; i < work.group_count; i++)
            made[i] = work.groups[order[i].index];
        *differences = made;
        *count = work.group_count;
    }
    hl_os_free(order);
    grouper_close(&work);
    return status;
}
