/* test_collisions.c: names, stacks and ids chosen to have the same hash, or too many references, as a hostile file may
 * choose them. */

#include "../../src/core/dense.h"
#include "check.h"
#include "unmixed.h"

static uint32_t longest_chain(const hl_table *table)
{
    uint32_t longest = 0;
    for (uint32_t bucket = 0; bucket < table->buckets; bucket++) {
        uint32_t length = 0;
        for (uint32_t id = hl_table_first(table, bucket); id != 0; id = hl_table_link(table, id)->next)
            length++;
        longest = length > longest ? length : longest;
    }
    return longest;
}

/* Names chosen to have the same hash in a ledger's name table: a file of them must not make interning quadratic. */
static void chains_cannot_be_made_long(void)
{
    enum { FLOOD = 2000, LONGEST = 50 };
    static uint32_t ids[FLOOD];
    hl_names *names;
    hl_string_id file;
    CHECK_OR_RETURN(hl_names_new(false, &names) == HL_OK && hl_names_string(names, "f", 1, &file) == HL_OK);
    for (uint64_t i = 0; i < FLOOD; i++) {
        uint64_t word = unmixed(unmixed(i << 32)) ^ 8;
        char bytes[8];
        hl_string_id id;
        memcpy(bytes, &word, 8);
        CHECK_OR_RETURN(hl_names_string(names, bytes, 8, &id) == HL_OK);
    }
    CHECK(longest_chain(&names->strings) < LONGEST);
    for (uint32_t line = 0, count = 0; count < FLOOD; line++)
        if ((hl_mix((uint64_t)file << 32 | line) & 0xfff) == 0)
            CHECK_OR_RETURN(hl_names_location(names, file, line, 0, &ids[count++]) == HL_OK);
    CHECK(longest_chain(&names->locations) < LONGEST);
    for (uint32_t i = 0; i < FLOOD; i++) { /* a line with many functions, which the strings above name */
        hl_location_id id;
        CHECK_OR_RETURN(hl_names_location(names, file, 7, i + 1, &id) == HL_OK);
    }
    CHECK(longest_chain(&names->locations) < LONGEST);
    for (uint32_t pair = 0, count = 0; count < FLOOD; pair++) {
        hl_location_id locations[] = {ids[pair % FLOOD], ids[pair / FLOOD]};
        hl_stack_id id;
        if ((hl_mix(locations[1] * HL_STACK_BASE + locations[0]) & 0x3ff) != 0)
            continue;
        CHECK_OR_RETURN(hl_names_stack(names, locations, 2, 0, &id) == HL_OK);
        count++;
    }
    CHECK(longest_chain(&names->stacks) < LONGEST);
    hl_names_drop(names);
}

/* Two sequences of 1,024 locations that every polynomial with an odd base, modulo 2^64, maps to the same: the sequence
 * of Thue and Morse and its opposite. So all stacks made of these two have one hash, if that is a polynomial. */
static void stacks_cannot_be_made_to_collide(void)
{
    enum { PIECE = 1024, PIECES = 8, LONGEST = 20 };
    static hl_location_id locations[PIECE * PIECES];
    hl_location_id ids[2];
    hl_string_id file;
    hl_names *names;
    CHECK_OR_RETURN(hl_names_new(false, &names) == HL_OK && hl_names_string(names, "f", 1, &file) == HL_OK);
    CHECK_OR_RETURN(hl_names_location(names, file, 1, 0, &ids[0]) == HL_OK);
    CHECK_OR_RETURN(hl_names_location(names, file, 2, 0, &ids[1]) == HL_OK);
    for (uint32_t choice = 0; choice < 1 << PIECES; choice++) {
        hl_stack_id id;
        for (uint32_t i = 0; i < PIECE * PIECES; i++)
            locations[i] = ids[((uint32_t)__builtin_popcount(i % PIECE) ^ choice >> i / PIECE) & 1];
        CHECK_OR_RETURN(hl_names_stack(names, locations, PIECE * PIECES, 0, &id) == HL_OK);
    }
    CHECK(longest_chain(&names->stacks) < LONGEST);
    hl_names_drop(names);
}

/* References are counted in 32 bits: before they wrap, the name table is full. */
static void references_do_not_wrap(void)
{
    hl_string_id file, again;
    hl_location_id locations[2], found;
    hl_stack_id stack;
    hl_names *names;
    CHECK_OR_RETURN(hl_names_new(false, &names) == HL_OK && hl_names_string(names, "f", 1, &file) == HL_OK);
    CHECK_OR_RETURN(hl_names_location(names, file, 1, 0, &locations[0]) == HL_OK);
    locations[1] = locations[0];
    names->frames = HL_NAMES_MOST_FRAMES - 2;
    CHECK_EQUAL(hl_names_stack(names, locations, 2, 0, &stack), HL_OK);
    CHECK_EQUAL(hl_names_stack(names, locations, 2, 0, &stack), HL_OK); /* which is there */
    CHECK_EQUAL(hl_names_stack(names, locations, 1, 0, &stack), HL_FULL);
    hl_names_release_stack(names, stack);
    hl_names_release_stack(names, stack);
    CHECK_EQUAL(names->frames, HL_NAMES_MOST_FRAMES - 2);
    ((hl_string *)hl_table_at(&names->strings, file))->refs = 1u << 31;
    CHECK_EQUAL(hl_names_string(names, "f", 1, &again), HL_FULL);
    ((hl_location *)hl_table_at(&names->locations, locations[0]))->refs = 1u << 31;
    CHECK_EQUAL(hl_names_location(names, file, 1, 0, &found), HL_FULL);
    hl_names_drop(names);
}

static size_t longest_run(const uint32_t *places, size_t count)
{
    size_t longest = 0, length = 0;
    for (size_t i = 0; i < count; i++) {
        length = places[i] != 0 ? length + 1 : 0;
        longest = length > longest ? length : longest;
    }
    return longest;
}

/* Analyses find ids, and the lines of two name tables, by hashes as well. */
static void numbers_cannot_be_made_to_collide(void)
{
    enum { FLOOD = 1000, LONGEST = 100, FAR = 1 << 24 };
    hl_table table = {.used = FAR};
    hl_id_map map = {0};
    size_t most = FLOOD;
    CHECK_OR_RETURN(hl_id_map_open(&map, &table, &most) && map.ids != NULL);
    for (uint32_t id = 1, count = 0; id < FAR && count < FLOOD; id++)
        if ((hl_mix(id) & map.mask) == 0)
            *hl_id_map_at(&map, id) = ++count;
    CHECK(longest_run(map.ids, map.mask + 1) < LONGEST);
    hl_id_map_close(&map);

    hl_names *names[2];
    hl_string_id file;
    hl_dense dense;
    CHECK_OR_RETURN(hl_names_new(false, &names[0]) == HL_OK && hl_names_new(false, &names[1]) == HL_OK);
    CHECK_OR_RETURN(hl_names_string(names[0], "f", 1, &file) == HL_OK);
    static hl_location_id ids[FLOOD];
    for (uint32_t line = 0, count = 0; count < FLOOD; line++)
        if ((hl_mix(UINT64_C(1) << 32 | line) & 0xfff) == 0) /* the first file has the number 1 */
            CHECK_OR_RETURN(hl_names_location(names[0], file, line, 0, &ids[count++]) == HL_OK);
    CHECK(hl_dense_open(&dense, (const hl_names *const[]){names[0], names[1]}, (size_t[]){FLOOD, 0}, true) == HL_OK);
    for (uint32_t i = 0; i < FLOOD; i++)
        CHECK_EQUAL(hl_dense_add(&dense, 0, ids[i]), i + 1);
    CHECK(longest_run(dense.lines_by_content.numbers, dense.lines_by_content.mask + 1) < LONGEST);
    hl_dense_close(&dense);
    hl_names_drop(names[0]);
    hl_names_drop(names[1]);
}

CHECK_MAIN(TEST(chains_cannot_be_made_long), TEST(stacks_cannot_be_made_to_collide), TEST(references_do_not_wrap),
           TEST(numbers_cannot_be_made_to_collide))
