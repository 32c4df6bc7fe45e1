/* dense.h: dense numbers, counted from 1, for the files and lines that the rows of one or two snapshots name.
 *
 * Equal content has an equal number, whatever the function and the name table. So an analysis adds up in plain arrays.
 * A table from location ids to numbers makes this one load for each frame. Content is compared only between two name
 * tables, once for each file and line. Opening allocates room for everything that can come, so numbering never fails.
 *
 * Threading: belongs to one analysis; reads the name tables of immutable snapshots only.
 */
#ifndef HL_DENSE_H
#define HL_DENSE_H

#include "names.h"

/* From the ids of one table to numbers; 0: no number yet. Indexed by the id, or hashed if the table is far larger
 * than what the rows can name. */
typedef struct {
    uint32_t *numbers;
    uint32_t *ids; /* NULL: not hashed */
    size_t mask;
    uint64_t seed;
} hl_id_map;

/* Numbers found by the hash of their content, which the caller compares. Open addressing; never full. */
typedef struct {
    uint32_t *numbers;
    size_t mask;
} hl_content_index;

typedef struct {
    const char *bytes;
    uint32_t length;
    uint32_t hash; /* with two name tables */
    uint32_t rank; /* from 1; set by the sort */
} hl_dense_file;

typedef struct {
    uint32_t file; /* its number */
    uint32_t line;
} hl_dense_line;

typedef struct {
    const hl_names *names[2]; /* the second is NULL when there is one name table */
    bool by_line;             /* locations get the number of their line, otherwise that of their file */
    hl_id_map strings[2], locations[2];
    hl_content_index files_by_content, lines_by_content;
    hl_dense_file *files; /* from 1 on, like all numbers */
    hl_dense_line *lines;
    uint32_t file_count, line_count;
    uint64_t seed; /* of all hashes: snapshots may come from files whose authors must not know it */
    size_t most;   /* how many numbers there can be for locations */
} hl_dense;

/* Prepare numbers for all that `frames[i]` frames of names[i] can name. Close it even if opening failed. */
hl_status hl_dense_open(hl_dense *dense, const hl_names *const names[2], const size_t frames[2],
                        bool by_line) HL_MUST_USE;
void hl_dense_close(hl_dense *dense);
/* Give a number to a location of names[side] that has none yet. */
uint32_t hl_dense_add(hl_dense *dense, int side, hl_location_id id);

/* Room for `most` ids of those in use in `table`. *most is lowered to how many there are. */
bool hl_id_map_open(hl_id_map *map, const hl_table *table, size_t *most) HL_MUST_USE;
void hl_id_map_close(hl_id_map *map);
bool hl_content_index_open(hl_content_index *index, size_t most) HL_MUST_USE;

static inline uint32_t *hl_id_map_at(const hl_id_map *map, uint32_t id)
{
    if (HL_LIKELY(map->ids == NULL))
        return &map->numbers[id];
    size_t at = (size_t)hl_mix(map->seed ^ id) & map->mask;
    while (map->ids[at] != id && map->ids[at] != 0)
        at = (at + 1) & map->mask;
    map->ids[at] = id;
    return &map->numbers[at];
}

#endif
