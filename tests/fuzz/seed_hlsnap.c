/* seed_hlsnap.c FOLDER: write the files that fuzzing .hlsnap starts from, seed-0 and so on. They are the same every
 * time as long as the format is; tests/api/test_hlsnap_reader.py reads them too.
 */

#include <stdlib.h>

#include "../../src/core/hlsnap.h"
#include "../core/sample.h"

static void write_seed(const char *folder, int number, const hl_hlsnap_file *made)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/seed-%d", folder, number);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(made->bytes, 1, made->length, file) != made->length || fclose(file) != 0) {
        fprintf(stderr, "%s cannot be written\n", path);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    /* How many snapshots, rows, frames and different numbers each has. */
    static const uint32_t seeds[][4] = {{1, 0, 1, 1},   {1, 1, 1, 1},      {1, 8, 3, 3},        {2, 5, 4, 200},
                                        {3, 6, 2, 500}, {1, 12, 10, 1000}, {1, 30, 6, 1000000}, {8, 2, 2, 2}};
    uint64_t seed = 1;
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    for (int i = 0; i < (int)(sizeof seeds / sizeof *seeds); i++) {
        hl_names *names = sample_names(false);
        hl_snapshot *snapshots[HL_HLSNAP_MOST_SNAPSHOTS];
        hl_hlsnap_section more = {.kind = {'M', 'O', 'R', 'E'}, .bytes = (const uint8_t *)"more", .length = 4};
        hl_hlsnap_file made;
        for (uint32_t j = 0; j < seeds[i][0]; j++) {
            snapshots[j] = sample_snapshot(names, seeds[i][1], seeds[i][2], seeds[i][3], &seed);
            sample_vary(snapshots[j], &seed);
        }
        sample_must(hl_hlsnap_write((const hl_snapshot *const *)snapshots, seeds[i][0], &more, i % 2, &made));
        write_seed(argv[1], i, &made);
        hl_os_free(made.bytes);
        for (uint32_t j = 0; j < seeds[i][0]; j++)
            hl_snapshot_drop(snapshots[j]);
        hl_names_drop(names);
    }
    return 0;
}
