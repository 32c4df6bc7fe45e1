/* test_hlsnap.c: snapshots written as .hlsnap files come back as they were; files that were damaged do not. */

#include <stdlib.h>

#include "../../src/core/hlsnap_bytes.h"
#include "hlsnap_same.h"
#include "sample.h"

/* Where the checkout is: tests/core/meson.build says. */
static FILE *open_in_checkout(const char *path)
{
    char whole[4096];
    snprintf(whole, sizeof whole, "%s/%s", HL_CHECKOUT, path);
    return fopen(whole, "r");
}

static hl_hlsnap_file written(const hl_snapshot *snapshot)
{
    hl_hlsnap_file file;
    sample_must(hl_hlsnap_write(&snapshot, 1, NULL, 0, &file));
    return file;
}

/* Write the snapshots, read them, compare; the file's length. */
static size_t check_round_trip(const hl_snapshot *const *snapshots, size_t count)
{
    hl_hlsnap_file file;
    hl_hlsnap_content content;
    hl_hlsnap_error error;
    sample_must(hl_hlsnap_write(snapshots, count, NULL, 0, &file));
    if (CHECK_EQUAL(hl_hlsnap_read(file.bytes, file.length, &content, &error), HL_OK)) {
        CHECK_EQUAL(content.snapshot_count, count);
        CHECK_EQUAL(content.section_count, 0);
        CHECK_EQUAL(error.major, 1);
        CHECK_EQUAL(error.minor, 0);
        for (size_t i = 0; i < count; i++)
            CHECK(same_snapshot(content.snapshots[i], snapshots[i]));
        drop_content(&content);
    } else {
        printf("%s at %zu\n", error.what, error.where);
    }
    hl_os_free(file.bytes);
    return file.length;
}

static void random_snapshots_come_back(void)
{
    uint64_t seed = 1;
    for (int round = 0; round < 200; round++) {
        hl_names *names = sample_names(round % 2 == 0);
        hl_snapshot *snapshots[HL_HLSNAP_MOST_SNAPSHOTS];
        size_t count = 1 + check_below(&seed, HL_HLSNAP_MOST_SNAPSHOTS);
        for (size_t i = 0; i < count; i++) {
            uint32_t deepest = 1 + check_below(&seed, 30), variety = 1 + check_below(&seed, 1000);
            snapshots[i] = sample_snapshot(names, check_below(&seed, 200), deepest, variety, &seed);
            sample_vary(snapshots[i], &seed);
        }
        check_round_trip((const hl_snapshot *const *)snapshots, count);
        for (size_t i = 0; i < count; i++)
            hl_snapshot_drop(snapshots[i]);
        hl_names_drop(names);
    }
}

/* Two files of several moments each, of which one moment is read into one name table. */
static void one_moment_comes_into_a_names(void)
{
    uint64_t seed = 3;
    for (int round = 0; round < 20; round++) {
        hl_names *names = sample_names(true), *together = sample_names(false);
        for (int file = 0; file < 2; file++) {
            hl_snapshot *snapshots[HL_MOMENTS];
            hl_hlsnap_file made;
            hl_hlsnap_content content;
            hl_hlsnap_error error;
            for (int i = 0; i < HL_MOMENTS; i++) {
                snapshots[i] = sample_snapshot(names, 100, 20, 500, &seed);
                snapshots[i]->moment = (hl_moment)i;
            }
            sample_must(hl_hlsnap_write((const hl_snapshot *const *)snapshots, HL_MOMENTS, NULL, 0, &made));
            sample_must(hl_hlsnap_read_into(together, HL_PEAK, made.bytes, made.length, &content, &error));
            if (CHECK_EQUAL(content.snapshot_count, 1)) {
                CHECK(same_snapshot(content.snapshots[0], snapshots[HL_PEAK]));
                CHECK(content.snapshots[0]->names == together);
            }
            drop_content(&content);
            hl_os_free(made.bytes);
            for (int i = 0; i < HL_MOMENTS; i++)
                hl_snapshot_drop(snapshots[i]);
        }
        hl_names_drop(names);
        hl_names_drop(together);
    }
}

/* A snapshot of one row for each location given, which has a stack of its own. */
static hl_snapshot *snapshot_of(hl_names *names, const hl_location_id *locations, size_t count)
{
    hl_snapshot *snapshot;
    sample_must(hl_snapshot_new(names, count, &snapshot));
    for (size_t i = 0; i < count; i++) {
        sample_must(hl_names_stack(names, &locations[i], 1, 0, &snapshot->rows[i].stack));
        hl_names_release_location(names, locations[i]);
    }
    hl_snapshot_seal(snapshot, count);
    return snapshot;
}

static void odd_names_come_back(void)
{
    enum { LONG = 1 << 20, ODD = 256 + 8 };
    static char every[256][2], longest[LONG + 2], shared[600];
    hl_location_id locations[ODD];
    size_t count = 0;
    hl_names *names = sample_names(false);
    for (int i = 0; i < 256; i++)
        memcpy(every[i], (char[]){(char)(i < 128 ? i : 0xc0 | i >> 6), (char)(0x80 | (i & 0x3f))}, 2);
    memset(longest, 'x', sizeof longest);
    memset(shared, 's', sizeof shared);
    for (int i = 0; i < 256; i++)
        locations[count++] = sample_location(names, every[i], i < 128 ? 1 : 2, (uint32_t)i, "");
    locations[count++] = sample_location(names, every[128], 256, 0, "\355\240\200"); /* a lone surrogate */
    locations[count++] = sample_location(names, longest, LONG, UINT32_MAX, "f");
    locations[count++] = sample_location(names, longest, LONG + 2, 0, "\364\217\277\277"); /* the last character */
    locations[count++] = sample_location(names, "", 0, 1, "");
    for (size_t length = 254; length < 257; length++) /* names that share what may be shared, or more */
        locations[count++] = sample_location(names, shared, length * 2, 1, "f");
    hl_string_id file;
    sample_must(hl_names_string(names, "f", 1, &file));
    sample_must(hl_names_location(names, file, 7, 0, &locations[count++])); /* a function that is not known */
    hl_names_release_string(names, file);
    CHECK_EQUAL(count, ODD);
    const hl_snapshot *snapshot = snapshot_of(names, locations, count);
    check_round_trip(&snapshot, 1);
    hl_snapshot_drop((hl_snapshot *)snapshot);
    hl_names_drop(names);
}

static void extreme_numbers_come_back(void)
{
    static const hl_row rows[] = {
        {.size = UINT64_MAX, .live = 0, .allocated = (UINT64_C(1) << 56) - 1, .domain = UINT32_MAX, .origin = 31},
        {.size = 0, .live = UINT64_C(1) << 58, .allocated = 0, .domain = 0, .origin = 0},
        {.size = UINT64_C(1) << 58, .live = 3, .allocated = 1, .domain = 1u << 31, .origin = 30},
        {.size = 1, .live = (UINT64_C(1) << 58) - 1, .allocated = 5, .domain = UINT32_MAX, .origin = 31},
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    static const uint32_t totals[ROWS] = {0, 1, UINT32_MAX, 3};
    for (uint32_t depth = 0; depth < 5; depth++) {
        hl_names *names = sample_names(false);
        hl_snapshot *snapshot;
        sample_must(hl_snapshot_new(names, ROWS, &snapshot));
        hl_location_id locations[ROWS + 5];
        for (uint32_t i = 0; i < ROWS + 5; i++)
            locations[i] = sample_location(names, "f", 1, i % 2 == 0 ? UINT32_MAX - i : i, "f");
        for (uint32_t i = 0; i < ROWS; i++) {
            snapshot->rows[i] = rows[i];
            sample_must(hl_names_stack(names, locations + i, depth, totals[i], &snapshot->rows[i].stack));
        }
        snapshot->nframe = UINT32_MAX;
        snapshot->origins = (hl_origins){.count = HL_MOST_ORIGINS, .forks = UINT32_MAX, .ids = {UINT64_MAX, 0, 1}};
        hl_snapshot_seal(snapshot, ROWS);
        check_round_trip((const hl_snapshot *const *)&snapshot, 1);
        snapshot->rows[1].size = 1 << 7; /* now the blocks take more than can be counted */
        hl_hlsnap_file file;
        CHECK_EQUAL(hl_hlsnap_write((const hl_snapshot *const *)&snapshot, 1, NULL, 0, &file), HL_FULL);
        hl_snapshot_drop(snapshot);
        hl_names_drop(names);
    }
}

/* Every beginning of a deep recursion is a stack: the frames of all of them are many more than the bytes. */
static void deep_recursion_is_padded(void)
{
    enum { DEPTH = 1000, BARE = 6000 };
    hl_names *names = sample_names(false);
    hl_location_id locations[DEPTH];
    hl_snapshot *snapshot;
    sample_must(hl_snapshot_new(names, DEPTH, &snapshot));
    for (uint32_t i = 0; i < DEPTH; i++)
        locations[i] = sample_location(names, "f", 1, i == DEPTH - 1, "f");
    for (uint32_t i = 0; i < DEPTH; i++)
        sample_must(hl_names_stack(names, locations + i, DEPTH - i, DEPTH - i, &snapshot->rows[i].stack));
    hl_snapshot_seal(snapshot, DEPTH);
    size_t length = check_round_trip((const hl_snapshot *const *)&snapshot, 1);
    size_t frames = (size_t)DEPTH * (DEPTH + 1) / 2;
    CHECK(length > frames / HL_HLSNAP_FRAMES_PER_BYTE && length < frames / HL_HLSNAP_FRAMES_PER_BYTE + BARE);
    hl_snapshot_drop(snapshot);
    hl_names_drop(names);
}

/* Only what the rows name is written, and every name once, however many snapshots there are. */
static void nothing_is_written_in_vain(void)
{
    uint64_t seed = 5;
    hl_names *names = sample_names(false);
    hl_snapshot *big = sample_snapshot(names, 1000, 20, 1000, &seed);
    hl_location_id location = sample_location(names, "a", 1, 1, "f");
    const hl_snapshot *one = snapshot_of(names, &location, 1), *both[] = {big, big};
    CHECK(check_round_trip(&one, 1) < 150);
    const hl_snapshot *alone = big;
    size_t single = check_round_trip(&alone, 1);
    CHECK(check_round_trip(both, 2) < single + 8 * 1000);
    hl_snapshot_drop((hl_snapshot *)one);
    hl_snapshot_drop(big);
    hl_names_drop(names);
}

static void other_sections_pass_through(void)
{
    uint64_t seed = 4;
    hl_names *names = sample_names(false);
    const hl_snapshot *snapshot = sample_snapshot(names, 3, 3, 3, &seed);
    const uint8_t bytes[] = "any \0 bytes";
    const hl_hlsnap_section sections[] = {
        {.kind = {'M', 'O', 'R', 'E'}, .bytes = bytes, .length = sizeof bytes},
        {.kind = {'N', 'O', 'N', 'E'}, .bytes = NULL, .length = 0},
    };
    hl_hlsnap_file file;
    hl_hlsnap_content content;
    hl_hlsnap_error error;
    sample_must(hl_hlsnap_write(&snapshot, 1, sections, 2, &file));
    if (CHECK_EQUAL(hl_hlsnap_read(file.bytes, file.length, &content, &error), HL_OK)) {
        CHECK_EQUAL(content.section_count, 2);
        CHECK(memcmp(content.sections[0].kind, "MORE", 4) == 0 && content.sections[0].length == sizeof bytes);
        CHECK(memcmp(content.sections[0].bytes, bytes, sizeof bytes) == 0);
        CHECK(memcmp(content.sections[1].kind, "NONE", 4) == 0 && content.sections[1].length == 0);
        drop_content(&content);
    }
    hl_os_free(file.bytes);
    CHECK_EQUAL(hl_hlsnap_write(&snapshot, 1, sections, HL_HLSNAP_MOST_SECTIONS + 1, &file), HL_FULL);
    CHECK_EQUAL(hl_hlsnap_write(&snapshot, HL_HLSNAP_MOST_SNAPSHOTS + 1, NULL, 0, &file), HL_FULL);
    hl_snapshot_drop((hl_snapshot *)snapshot);
    hl_names_drop(names);
}

static void damage_is_found(void)
{
    uint64_t seed = 2;
    hl_names *names = sample_names(false);
    hl_snapshot *snapshot = sample_snapshot(names, 20, 5, 1000, &seed);
    sample_vary(snapshot, &seed);
    hl_hlsnap_file file = written(snapshot);
    hl_hlsnap_content content;
    hl_hlsnap_error error;
    for (size_t length = 0; length < file.length; length++) {
        uint8_t *cut = malloc(length == 0 ? 1 : length); /* of this very length, for the sanitizer */
        memcpy(cut, file.bytes, length);
        CHECK_EQUAL(hl_hlsnap_read(cut, length, &content, &error), HL_MALFORMED);
        CHECK(strcmp(error.what, length < 8 ? "is not a heapledger snapshot" : "is cut off") == 0);
        CHECK(error.where <= length);
        free(cut);
    }
    for (size_t i = 0; i < file.length * 8; i++) {
        file.bytes[i / 8] ^= (uint8_t)(1u << i % 8);
        CHECK_EQUAL(hl_hlsnap_read(file.bytes, file.length, &content, &error), HL_MALFORMED);
        CHECK(error.where <= file.length);
        file.bytes[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    hl_os_free(file.bytes);
    hl_snapshot_drop(snapshot);
    hl_names_drop(names);
}

static void failing_memory_is_survived(void)
{
    uint64_t seed = 3;
    hl_names *names = sample_names(false);
    hl_snapshot *snapshot = sample_snapshot(names, 3000, 12, 1000, &seed);
    hl_hlsnap_file file = written(snapshot), again;
    hl_hlsnap_content content;
    hl_hlsnap_error error;
    bool failed = true;
    for (size_t n = 1; failed; n++) {
        (void)hl_os_fail_every(n);
        hl_status status = hl_hlsnap_write((const hl_snapshot *const *)&snapshot, 1, NULL, 0, &again);
        size_t failures = hl_os_fail_every(n);
        CHECK_EQUAL(status, failures == 0 ? HL_OK : HL_NO_MEMORY);
        if (status == HL_OK) {
            CHECK(again.length == file.length && memcmp(again.bytes, file.bytes, file.length) == 0);
            hl_os_free(again.bytes);
        }
        failed = failures != 0;
        status = hl_hlsnap_read(file.bytes, file.length, &content, &error);
        failures = hl_os_fail_every(0);
        failed = failed || failures != 0;
        /* A table that cannot grow by a bucket is only slower, so a failure need not show. */
        CHECK(status == HL_OK || (status == HL_NO_MEMORY && failures != 0));
        if (status == HL_OK) {
            CHECK(same_snapshot(content.snapshots[0], snapshot));
            drop_content(&content);
        }
    }
    hl_os_free(file.bytes);
    hl_snapshot_drop(snapshot);
    hl_names_drop(names);
}

static void checksum_is_that_of_zlib(void)
{
    hl_hlsnap_crc crc;
    hl_hlsnap_crc_open(&crc);
    const uint8_t *bytes = (const uint8_t *)"123456789The quick brown fox jumps over the lazy dog";
    CHECK_EQUAL(hl_hlsnap_crc_of(&crc, bytes, 0), 0);
    CHECK_EQUAL(hl_hlsnap_crc_of(&crc, bytes, 9), 0xcbf43926);
    CHECK_EQUAL(hl_hlsnap_crc_of(&crc, bytes + 9, 43), 0x414fa339);
}

/* The bytes of the example in docs/format.md: pairs of digits with single spaces between, up to the remark. */
static size_t read_example(uint8_t *bytes, size_t room)
{
    FILE *file = open_in_checkout("docs/format.md");
    if (!CHECK(file != NULL))
        return 0;
    char line[1024];
    bool inside = false;
    size_t length = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "```", 3) == 0)
            inside = strcmp(line, "```hex\n") == 0;
        else if (inside)
            for (char *at = line; *at != ' ' && length < room; at += at[2] == ' ' ? 3 : 2)
                bytes[length++] = (uint8_t)strtoul((char[]){at[0], at[1], 0}, NULL, 16);
    }
    fclose(file);
    return length;
}

static void example_is_what_is_written(void)
{
    hl_names *names = sample_names(false);
    hl_location_id main_line = sample_location(names, "/app/main.py", 12, 7, "<module>");
    hl_location_id load = sample_location(names, "/app/load.py", 12, 300, "load"), unnamed;
    hl_string_id file;
    sample_must(hl_names_string(names, "/app/load.py", 12, &file));
    sample_must(hl_names_location(names, file, 299, 0, &unnamed));
    hl_snapshot *snapshot;
    sample_must(hl_snapshot_new(names, 3, &snapshot));
    snapshot->nframe = 2;
    snapshot->origins = (hl_origins){.count = 1, .ids = {0x1122334455667788}};
    snapshot->rows[0] = (hl_row){.size = 512, .live = 3, .allocated = 3};
    snapshot->rows[1] = (hl_row){.size = 64, .live = 1000, .allocated = 1200};
    snapshot->rows[2] = (hl_row){.size = 4096, .allocated = 1, .domain = 5};
    sample_must(hl_names_stack(names, (hl_location_id[]){load, main_line}, 2, 2, &snapshot->rows[0].stack));
    snapshot->rows[1].stack = snapshot->rows[0].stack;
    sample_must(hl_names_stack(names, (hl_location_id[]){unnamed, main_line}, 2, 9, &snapshot->rows[2].stack));
    hl_snapshot_seal(snapshot, 3);
    uint8_t example[1000];
    size_t length = read_example(example, sizeof example);
    hl_hlsnap_file made = written(snapshot);
    CHECK_EQUAL(length, made.length);
    CHECK(length == made.length && memcmp(made.bytes, example, length) == 0);
    hl_os_free(made.bytes);
    hl_snapshot_drop(snapshot);
    hl_names_drop(names);
}

CHECK_MAIN(TEST(random_snapshots_come_back), TEST(odd_names_come_back), TEST(extreme_numbers_come_back),
           TEST(deep_recursion_is_padded), TEST(nothing_is_written_in_vain), TEST(other_sections_pass_through),
           TEST(damage_is_found), TEST(failing_memory_is_survived), TEST(checksum_is_that_of_zlib),
           TEST(example_is_what_is_written), TEST(one_moment_comes_into_a_names))
