/* numbers.h: small numbers, counted from 1, for the files and lines that the rows of one or two snapshots name.
 *
 * Equal content has an equal number, whatever the function and the book. So an analysis adds up in plain arrays. A
 * table from location ids to numbers makes this one load for each frame. Content is compared only between two books,
 * once for each file and line. Opening allocates room for everything that can come, so numbering never fails.
 *
 * Threading: belongs to one analysis; reads the books of immutable snapshots only.
 */
#ifndef HL_NUMBERS_H
#define HL_NUMBERS_H

#include "book.h"

/* From the ids of one table to numbers; 0: no number yet. Indexed by the id, or hashed if the table is far larger
 * than what the rows can name. */
typedef struct {
    uint32_t *numbers;
    uint32_t *ids; /* NULL: not hashed */
    size_t mask;
    uint64_t seed;
} hl_numbering;

/* Numbers found by the hash of their content, which the caller compares. Open addressing; never full. */
typedef struct {
    uint32_t *numbers;
    size_t mask;
} hl_finder;

typedef struct {
    const char *bytes;
    uint32_t length;
    uint32_t hash; /* with two books */
    uint32_t rank; /* from 1; set by the sort */
} hl_numbered_file;

typedef struct {
    uint32_t file; /* its number */
    uint32_t line;
} hl_numbered_line;

typedef struct {
    const hl_book *books[2]; /* the second is NULL when there is one book */
    bool by_line;            /* locations get the number of their line, otherwise that of their file */
    hl_numbering strings[2], locations[2];
    hl_finder files_by_content, lines_by_content;
    hl_numbered_file *files; /* from 1 on, like all numbers */
    hl_numbered_line *lines;
    uint32_t file_count, line_count;
    uint64_t seed; /* of all hashes: snapshots may come from files whose authors must not know it */
    size_t most;   /* how many numbers there can be for locations */
} hl_numbers;

/* Prepare numbers for all that `frames[i]` frames of books[i] can name. Close it even if opening failed. */
hl_status hl_numbers_open(hl_numbers *numbers, const hl_book *const books[2], const size_t frames[2],
                          bool by_line) HL_MUST_USE;
void hl_numbers_close(hl_numbers *numbers);
/* Give a number to a location of books[side] that has none yet. */
uint32_t hl_numbers_add(hl_numbers *numbers, int side, hl_location_id id);

/* Room for `most` ids of those in use in `table`. *most is lowered to how many there are. */
bool hl_numbering_open(hl_numbering *numbering, const hl_table *table, size_t *most) HL_MUST_USE;
void hl_numbering_close(hl_numbering *numbering);
bool hl_finder_open(hl_finder *finder, size_t most) HL_MUST_USE;

static inline uint32_t *hl_numbering_at(const hl_numbering *numbering, uint32_t id)
{
    if (HL_LIKELY(numbering->ids == NULL))
        return &numbering->numbers[id];
    size_t at = (size_t)hl_mix(numbering->seed ^ id) & numbering->mask;
    while (numbering->ids[at] != id && numbering->ids[at] != 0)
        at = (at + 1) & numbering->mask;
    numbering->ids[at] = id;
    return &numbering->numbers[at];
}

#endif
