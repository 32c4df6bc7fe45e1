/* test_hlsnap_hostile.c: .hlsnap files made up to do harm, and files of other versions, section by section. */

#include <stdlib.h>
#include <time.h>

#include "../../src/core/hlsnap_bytes.h"
#include "check.h"
#include "hlsnap_same.h"
#include "unmixed.h"

typedef struct {
    const char *kind;
    const void *payload;
    size_t length;
} part;

#define PART(kind, literal) {kind, literal, sizeof(literal) - 1}

/* One file "a", no function, line 1; one stack of it; one row of a block of 8 bytes. */
static const part plain[] = {
    PART("FILE", "\1\0\1a"),
    PART("FUNC", "\0"),
    PART("LOCS", "\1\0\0\2"),
    PART("STKS", "\1\1\0\1\0\1"),
    PART("ROWS", "\0\1\0\0\1\0\10\1\0"),
    PART("END ", ""),
};
enum { PLAIN = sizeof plain / sizeof *plain };

static void add_part(hl_hlsnap_buffer *to, const hl_hlsnap_crc *crc, const part *added)
{
    size_t start = to->length;
    hl_hlsnap_add_bytes(to, added->kind, 4);
    hl_hlsnap_add_fixed(to, 8, added->length);
    hl_hlsnap_add_bytes(to, added->payload, added->length);
    hl_hlsnap_add_fixed(to, 4, hl_hlsnap_crc_of(crc, to->bytes + start, to->length - start));
}

/* Read a file of these parts, with all checksums right. What is wrong with it; NULL: nothing. */
static const char *read_parts(uint16_t major, uint16_t minor, const part *parts, size_t count,
                              hl_hlsnap_content *content)
{
    hl_hlsnap_buffer made = {0};
    hl_hlsnap_crc crc;
    hl_hlsnap_error error;
    hl_hlsnap_crc_open(&crc);
    hl_hlsnap_add_bytes(&made, HL_HLSNAP_MAGIC, 8);
    hl_hlsnap_add_fixed(&made, 2, major);
    hl_hlsnap_add_fixed(&made, 2, minor);
    hl_hlsnap_add_fixed(&made, 4, hl_hlsnap_crc_of(&crc, made.bytes, made.length));
    for (size_t i = 0; i < count; i++)
        add_part(&made, &crc, &parts[i]);
    uint8_t *exact = malloc(made.length); /* so that the sanitizer sees its end */
    memcpy(exact, made.bytes, made.length);
    hl_os_free(made.bytes);
    hl_status status = hl_hlsnap_read(exact, made.length, content, &error);
    free(exact);
    if (!CHECK(status == HL_OK || status == HL_MALFORMED))
        return "another status";
    if (status == HL_MALFORMED)
        CHECK(error.what != NULL && error.where <= made.length && content->snapshot_count == 0);
    if (status == HL_MALFORMED || major == 1)
        CHECK(error.major == major && error.minor == minor);
    return status == HL_OK ? NULL : error.what;
}

static bool is_refused(uint16_t major, uint16_t minor, const part *parts, size_t count, const char *because)
{
    hl_hlsnap_content content;
    const char *what = read_parts(major, minor, parts, count, &content);
    if (what == NULL) {
        printf("not refused: %s\n", because);
        drop_content(&content);
        return false;
    }
    if (strstr(what, because) == NULL) {
        printf("refused because \"%s\", not \"%s\"\n", what, because);
        return false;
    }
    return true;
}

static bool is_read(uint16_t minor, const part *parts, size_t count)
{
    hl_hlsnap_content content;
    const char *what = read_parts(1, minor, parts, count, &content);
    if (what != NULL)
        printf("refused because \"%s\"\n", what);
    else
        drop_content(&content);
    return what == NULL;
}

/* `plain` with one part in another's place. */
static void put_in_place(part *parts, const part *other)
{
    memcpy(parts, plain, sizeof plain);
    for (int i = 0; i < PLAIN; i++)
        if (strcmp(plain[i].kind, other->kind) == 0)
            parts[i] = *other;
}

#define NUMBER "is not written as it should be"
#define BEYOND "goes beyond its section"
#define UNKNOWN "names what does not exist"
#define LONGER "longer than its content"
#define UNCOUNTABLE "add up to more than 64 bits"
#define UTF8 "not UTF-8"
/* 2^32 - 1, 2^32, 2^56, 2^63, 2^64 - 1 */
#define N32_LESS_1 "\xff\xff\xff\xff\x0f"
#define N32 "\x80\x80\x80\x80\x10"
#define N56 "\x80\x80\x80\x80\x80\x80\x80\x80\x01"
#define N63_LESS_1 "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
#define N63 "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"
#define N64_LESS_1 "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"

static const struct {
    part other;
    const char *because;
} offences[] = {
    {PART("FILE", ""), BEYOND},
    {PART("FILE", "\x81"), BEYOND},
    {PART("FILE", "\x81\0\0\1a"), NUMBER},
    {PART("FILE", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), NUMBER},
    {PART("FILE", "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"), NUMBER},
    {PART("FILE", "\2\0\1a"), BEYOND},
    {PART("FILE", N64_LESS_1 "\0\1a"), BEYOND},
    {PART("FILE", "\1\0\2a"), BEYOND},
    {PART("FILE", "\1\0" N64_LESS_1 "a"), BEYOND},
    {PART("FILE", "\1\1\1a"), "shares more"},
    {PART("FILE", "\2\0\1a\2\1b"), "shares more"},
    {PART("FILE", "\1\0\1ab"), LONGER},
    {PART("FILE", "\1\0\1\x80"), UTF8},
    {PART("FILE", "\2\0\2\xc3\xa4\1\0"), UTF8}, /* shares half a character */
    {PART("FUNC", "\1\1\xff"), UTF8},
    {PART("FUNC", "\1\2\xc1\x81"), UTF8},
    {PART("FUNC", "\1\2\xc3x"), UTF8},
    {PART("FUNC", "\1\1\xc3"), UTF8},
    {PART("FUNC", "\1\3\xe0\x9f\xbf"), UTF8},
    {PART("FUNC", "\1\4\xf0\x8f\xbf\xbf"), UTF8},
    {PART("FUNC", "\1\4\xf4\x90\x80\x80"), UTF8},
    {PART("FUNC", "\1\4\xf5\x80\x80\x80"), UTF8},
    {PART("FUNC", "\1\2a"), BEYOND},
    {PART("FUNC", "\3\0\0"), BEYOND},
    {PART("FUNC", "\0\0"), LONGER},
    {PART("LOCS", "\2\0\0\2"), BEYOND},
    {PART("LOCS", "\1\1\0\2"), UNKNOWN},
    {PART("LOCS", "\2\0\0\2\0\0\2"), UNKNOWN},
    {PART("LOCS", "\1\0\1\2"), UNKNOWN},
    {PART("LOCS", "\1\0" N64_LESS_1 "\2"), UNKNOWN},
    {PART("LOCS", "\1\0\0\1"), "line"},
    {PART("LOCS", "\1\0\0\x80\x80\x80\x80\x20"), "line"},
    {PART("LOCS", "\1\0\0\2\0"), LONGER},
    {PART("STKS", "\7\1\0\1\0\1"), BEYOND},
    {PART("STKS", "\1\2\0\1\0\1"), BEYOND},
    {PART("STKS", "\1" N64_LESS_1 "\0\1\0\1"), BEYOND},
    {PART("STKS", "\1\1\1\1\0\1"), "continues"},
    {PART("STKS", "\1\1\0\2\0\0\1"), "more frames than announced"},
    {PART("STKS", "\1\1\0" N64_LESS_1 "\0\1"), "more frames than announced"},
    {PART("STKS", "\2\1\0\1\0\1"), "fewer frames"},
    {PART("STKS", "\1\1\0\1\1\1"), UNKNOWN},
    {PART("STKS", "\2\1\0\2\0\0\1"), UNKNOWN},
    {PART("STKS", "\1\1\0\1\0\1\0\1"), LONGER},
    {PART("STKS", "\0\1\0\0\1"), "total depth"},
    {PART("STKS", "\1\1\0\1\0\2"), "total depth"},
    {PART("STKS", "\1\1\0\1\0\4"), "total depth"},
    {PART("STKS", "\1\1\0\1\0\xff\xff\xff\xff\x1f"), "total depth"},
    {PART("ROWS", "\3\1\0\0\0"), "moment"},
    {PART("ROWS", "\0" N32 "\0\0\0"), "frame limit"},
    {PART("ROWS", "\0\1" N32 "\0\0"), "forks"},
    {PART("ROWS", "\0\1\0\41\0"), "origins"},
    {PART("ROWS", "\0\1\0\1\0\0\0\0\0\0\0"), BEYOND},
    {PART("ROWS", "\0\1\0\0\2\0\10\1\0"), BEYOND},
    {PART("ROWS", "\0\1\0\0" N63 "\0\10\1\0"), BEYOND},
    {PART("ROWS", "\0\1\0\0\1\4\10\1\0"), UNKNOWN},
    {PART("ROWS", "\0\1\0\0\1\2\10\1\0"), UNKNOWN},
    {PART("ROWS", "\0\1\0\0\1\1" N32 "\0\10\1\0"), "domain"},
    {PART("ROWS", "\0\1\0\0\1\1\0\1\10\1\0"), "origin"},
    {PART("ROWS", "\0\1\0\0\1\0\10" N56 "\0"), "number of blocks"},
    {PART("ROWS", "\0\1\0\0\1\0\10\0\1"), "number of blocks"},
    {PART("ROWS", "\0\1\0\0\1\0\2" N63 N64_LESS_1), UNCOUNTABLE},
    {PART("ROWS", "\0\1\0\0\2\0\1" N63 N64_LESS_1 "\2\0" N63 N64_LESS_1), UNCOUNTABLE},
    {PART("ROWS", "\0\1\0\0\2\0" N63 "\1\0\2" N63 "\1\0"), UNCOUNTABLE},
    {PART("ROWS", "\0\1\0\0\1\0" N63 "\1\0"), UNCOUNTABLE},
    {PART("ROWS", "\0\1\0\0\1\0\0" N63 N64_LESS_1), UNCOUNTABLE}, /* blocks of no bytes count too */
    {PART("ROWS", "\0\1\0\0\1\0\10\1\0\0"), LONGER},
    {PART("ROWS", "\0\1\0\0\1\0\10\1"), BEYOND},
    {PART("END ", "\0"), LONGER},
};

static void offences_are_named(void)
{
    part parts[PLAIN];
    CHECK(is_read(0, plain, PLAIN));
    for (size_t i = 0; i < sizeof offences / sizeof *offences; i++) {
        put_in_place(parts, &offences[i].other);
        if (!CHECK(is_refused(1, 0, parts, PLAIN, offences[i].because)))
            printf("offence %zu, in %s\n", i, offences[i].other.kind);
    }
}

static void extremes_are_read(void)
{
    static const part others[] = {
        PART("FILE", "\1\0\0"), /* a name of no bytes */
        PART("FILE", "\3\0\1a\1\0\0\0"),
        PART("FUNC", "\2\0\0"),
        PART("LOCS", "\1\0\0\xfe\xff\xff\xff\x1f"),     /* line 2^32 - 1 */
        PART("STKS", "\0\1\0\0\0"),                     /* a stack without frames */
        PART("STKS", "\1\1\0\1\0\xfd\xff\xff\xff\x1f"), /* a total of 2^32 - 1 */
        PART("STKS", "\1\1\0\1\0\1\0\0\0"),             /* padding */
        PART("ROWS", "\2" N32_LESS_1 N32_LESS_1 "\0\0"),
        PART("ROWS", "\0\1\0\0\1\1" N32_LESS_1 "\0\10\1\0"),
        PART("ROWS", "\0\1\0\0\1\0" N63_LESS_1 "\1\0"),
    };
    part parts[PLAIN];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        put_in_place(parts, &others[i]);
        if (!CHECK(is_read(0, parts, PLAIN)))
            printf("extreme %zu, in %s\n", i, others[i].kind);
    }
}

/* Two names for the same thing do no harm: both lead to what is interned once. */
static void doubles_are_one(void)
{
    static const part doubles[] = {
        PART("FILE", "\2\0\1a\1\0"),
        PART("FUNC", "\2\1a\1a"),
        PART("LOCS", "\3\0\1\2\0\1\0\1\2\0"),
        PART("STKS", "\3\3\0\1\0\0\0\1\0\1\0\1\0\3"),
        PART("ROWS", "\0\1\0\0\3\0\10\1\0\0\10\1\0\0\10\1\0"),
        PART("END ", ""),
    };
    hl_hlsnap_content content;
    const char *what = read_parts(1, 0, doubles, PLAIN, &content);
    if (!CHECK(what == NULL)) {
        printf("%s\n", what);
        return;
    }
    const hl_snapshot *snapshot = content.snapshots[0];
    CHECK_EQUAL(snapshot->row_count, 3);
    CHECK_EQUAL(snapshot->bytes, 24);
    CHECK_EQUAL(snapshot->rows[0].stack, snapshot->rows[1].stack);
    CHECK_EQUAL(snapshot->names->strings.count, 1);
    CHECK_EQUAL(snapshot->rows[0].stack, snapshot->rows[2].stack);
    CHECK_EQUAL(snapshot->names->locations.count, 1);
    CHECK_EQUAL(snapshot->names->stacks.count, 1);
    drop_content(&content);
}

static void sections_stand_in_order(void)
{
    part parts[50];
    for (int i = 0; i < PLAIN - 1; i++) { /* one is missing, one stands twice, two are swapped */
        memcpy(parts, plain, sizeof plain);
        memmove(parts + i, parts + i + 1, (size_t)(PLAIN - 1 - i) * sizeof *parts);
        CHECK(is_refused(1, 0, parts, PLAIN - 1, i == 4 ? "has no snapshot" : "where it should not"));
        memcpy(parts + i + 1, plain + i, (size_t)(PLAIN - i) * sizeof *parts);
        parts[i] = plain[i];
        CHECK(i == 4 ? is_read(0, parts, PLAIN + 1) : is_refused(1, 0, parts, PLAIN + 1, "where it should not"));
        memcpy(parts, plain, sizeof plain);
        parts[i] = plain[i + 1];
        parts[i + 1] = plain[i];
        CHECK(is_refused(1, 0, parts, PLAIN, i == 4 ? "has no snapshot" : "where it should not"));
    }
    CHECK(is_refused(1, 0, plain, PLAIN - 1, "is cut off"));
    memcpy(parts, plain, sizeof plain);
    parts[PLAIN] = plain[PLAIN - 1];
    CHECK(is_refused(1, 0, parts, PLAIN + 1, "goes on after its end"));
    for (int count = 1; count <= HL_HLSNAP_MOST_SNAPSHOTS + 1; count++) {
        for (int i = 0; i < count; i++)
            parts[4 + i] = plain[4];
        parts[4 + count] = plain[5];
        CHECK(count <= HL_HLSNAP_MOST_SNAPSHOTS ? is_read(0, parts, (size_t)count + 5)
                                                : is_refused(1, 0, parts, (size_t)count + 5, "too many snapshots"));
    }
    for (int count = 31; count <= HL_HLSNAP_MOST_SECTIONS + 1; count++) {
        for (int i = 0; i < count; i++)
            parts[i] = (part)PART("MORE", "xyz");
        memcpy(parts + count, plain, sizeof plain);
        CHECK(count <= HL_HLSNAP_MOST_SECTIONS ? is_read(0, parts, (size_t)count + PLAIN)
                                               : is_refused(1, 0, parts, (size_t)count + PLAIN, "too many sections"));
    }
}

static void versions_are_told_apart(void)
{
    part parts[2 * PLAIN];
    for (uint32_t major = 0; major <= UINT16_MAX; major += major < 3 ? 1 : 4369)
        CHECK(major == 1 || is_refused((uint16_t)major, 0, plain, PLAIN, "another version"));
    for (int i = 0; i < PLAIN; i++) { /* sections that nobody knows, and more at the end of those that are known */
        char longer[64];
        memcpy(longer, plain[i].payload, plain[i].length);
        memcpy(longer + plain[i].length, "\1\2\377", 3);
        memcpy(parts, plain, sizeof plain);
        parts[i] = (part){plain[i].kind, longer, plain[i].length + 3};
        CHECK(is_read(1, parts, PLAIN));
        CHECK(is_refused(1, 0, parts, PLAIN, LONGER));
        parts[i] = (part)PART("WHAT", "\1\2\3");
        memcpy(parts + i + 1, plain + i, (size_t)(PLAIN - i) * sizeof *parts);
        CHECK(is_read(UINT16_MAX, parts, PLAIN + 1));
    }
}

/* A chain of DEPTH frames which STACKS stacks share, each with one frame of its own; `padding` zeros at the end. */
enum { DEPTH = 2050, STACKS = 500 };

static const char *read_deep(size_t padding, hl_hlsnap_content *content, size_t *length)
{
    hl_hlsnap_buffer locations = {0}, stacks = {0};
    hl_hlsnap_add_varint(&locations, STACKS);
    for (int i = 0; i < STACKS; i++)
        hl_hlsnap_add_bytes(&locations, i == 0 ? "\0\0\2" : "\1\0\2", 3);
    hl_hlsnap_add_varint(&stacks, DEPTH + STACKS);
    hl_hlsnap_add_varint(&stacks, STACKS);
    for (int i = 0; i < STACKS; i++) {
        hl_hlsnap_add_varint(&stacks, i == 0 ? 0 : (uint64_t)i + 1); /* 0: the root, then the end of the chain */
        hl_hlsnap_add_varint(&stacks, i == 0 ? DEPTH + 1 : 1);
        for (int j = 0; i == 0 && j < DEPTH; j++)
            hl_hlsnap_add_varint(&stacks, j == 0 ? 0 : 1);
        hl_hlsnap_add_varint(&stacks, i == 0 ? 1 : 0);
        hl_hlsnap_add_varint(&stacks, 0);
    }
    size_t bare = stacks.length;
    hl_hlsnap_add_zeros(&stacks, padding);
    part parts[PLAIN];
    memcpy(parts, plain, sizeof plain);
    parts[2] = (part){"LOCS", locations.bytes, locations.length};
    parts[3] = (part){"STKS", stacks.bytes, stacks.length};
    const char *what = read_parts(1, 0, parts, PLAIN, content);
    *length = bare;
    hl_os_free(locations.bytes);
    hl_os_free(stacks.bytes);
    return what;
}

static void frames_are_bounded_by_bytes(void)
{
    hl_hlsnap_content content;
    size_t bare, enough = ((size_t)(DEPTH + 1) * STACKS + HL_HLSNAP_FRAMES_PER_BYTE - 1) / HL_HLSNAP_FRAMES_PER_BYTE;
    const char *what = read_deep(0, &content, &bare);
    CHECK_OR_RETURN(what != NULL && strstr(what, "more frames than their section") != NULL);
    CHECK(enough > bare);
    what = read_deep(enough - bare - 1, &content, &bare);
    CHECK_OR_RETURN(what != NULL && strstr(what, "more frames than their section") != NULL);
    what = read_deep(enough - bare, &content, &bare);
    CHECK_OR_RETURN(what == NULL);
    size_t memory = hl_names_memory(content.snapshots[0]->names);
    CHECK(memory > 320 * enough);                           /* the worst case is near */
    CHECK(memory < 400 * enough + (size_t)2 * 1024 * 1024); /* and within what docs/format.md promises */
    drop_content(&content);
}

/* --- 202,500 names of files, all of one hash in a name table without a secret --- */

enum { HALVES = 450, HALF = 16, ASCII_TRIES = 1 << 20 };
#define EACH_BYTE(value) (UINT64_C(0x0101010101010101) * (value))

/* Halves of names, in ASCII, each of which takes the hash from `before` to `after`. */
static bool choose_halves(uint64_t before, uint64_t after, char halves[HALVES][HALF])
{
    uint32_t count = 0;
    for (uint64_t i = 0; i < ASCII_TRIES && count < HALVES; i++) {
        uint64_t first = hl_mix(i) & EACH_BYTE(0x7f), second = hl_mix(before ^ first) ^ unmixed(after);
        if ((second & EACH_BYTE(0x80)) != 0)
            continue;
        memcpy(halves[count], &first, 8);
        memcpy(halves[count++] + 8, &second, 8);
    }
    return count == HALVES;
}

/* The processor time it takes to read a file with every first half before every second half; 0: it was not read. */
static double seconds_to_read(char first[HALVES][HALF], char second[HALVES][HALF])
{
    hl_hlsnap_buffer names = {0};
    hl_hlsnap_add_varint(&names, HALVES * HALVES);
    for (int i = 0; i < HALVES * HALVES; i++) {
        bool shares = i % HALVES != 0;
        hl_hlsnap_add_varint(&names, shares ? HALF : 0);
        hl_hlsnap_add_varint(&names, shares ? HALF : 2 * HALF);
        if (!shares)
            hl_hlsnap_add_bytes(&names, first[i / HALVES], HALF);
        hl_hlsnap_add_bytes(&names, second[i % HALVES], HALF);
    }
    part parts[PLAIN];
    put_in_place(parts, &(part){"FILE", names.bytes, names.length});
    clock_t began = clock();
    bool read = is_read(0, parts, PLAIN);
    clock_t ended = clock();
    hl_os_free(names.bytes);
    return read ? (double)(ended - began + 1) / CLOCKS_PER_SEC : 0;
}

/* Names that collide are read as fast as others. With one chain for all it would be twenty billion comparisons. */
static void names_that_collide_take_no_longer(void)
{
    enum { AT_MOST = 10, MIDDLE = 1, END = 2 };
    static char first[HALVES][HALF], second[HALVES][HALF];
    CHECK_OR_RETURN(choose_halves(2 * HALF, MIDDLE, first) && choose_halves(MIDDLE, END, second));
    char name[2 * HALF];
    uint32_t hash = (uint32_t)hl_mix(END); /* of the bytes that are left after the last whole word: none */
    for (int i = 0; i < HALVES; i++) {
        memcpy(name, first[i], HALF);
        memcpy(name + HALF, second[HALVES - 1 - i], HALF);
        CHECK_EQUAL(hl_hash_bytes(0, name, sizeof name), hash);
    }
    double colliding = seconds_to_read(first, second);
    for (int i = 0; i < HALVES; i++) {
        first[i][0] ^= 1;
        second[i][0] ^= 1;
    }
    double others = seconds_to_read(first, second);
    if (!CHECK(colliding > 0 && others > 0 && colliding < AT_MOST * others))
        printf("%f seconds, and %f for names that do not collide\n", colliding, others);
}

CHECK_MAIN(TEST(offences_are_named), TEST(extremes_are_read), TEST(doubles_are_one), TEST(sections_stand_in_order),
           TEST(versions_are_told_apart), TEST(frames_are_bounded_by_bytes), TEST(names_that_collide_take_no_longer))
