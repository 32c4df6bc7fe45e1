/* fuzz_filter.c: any bytes as patterns and file names, matched alone and as the filters of a snapshot.
 *
 *     two bytes of flags | two lengths, a byte each | pattern | name | the next filter ...
 *
 * The matcher has no second one to be compared with here (tests/api/test_glob.py compares it with the interpreter's);
 * it is held to what must follow from any answer. Snapshots are compared with the rules of filter_model.h.
 */

#include "../core/filter_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum { MOST_FILTERS = 6, MOST_LENGTH = 255 };

static void insist(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

static bool is_special(char c)
{
    return c == '*' || c == '?' || c == '[';
}

static void match(const char *pattern, size_t pattern_length, const char *name, size_t name_length)
{
    char made[4 * MOST_LENGTH + 2], longer[2 * MOST_LENGTH];
    bool matches = hl_glob_match(pattern, pattern_length, name, name_length);
    /* With a star at either end it matches the same and more. */
    made[0] = made[pattern_length + 1] = '*';
    memcpy(made + 1, pattern, pattern_length);
    if (matches) {
        insist(hl_glob_match(made, pattern_length + 2, name, name_length), "stars around a match do not match");
        insist(hl_glob_match(made, pattern_length + 1, name, name_length), "a star before a match does not match");
        memcpy(longer, name, name_length);
        memset(longer + name_length, 'x', name_length);
        /* A set that the pattern leaves open takes the star for one of its members. */
        if (memchr(pattern, '[', pattern_length) == NULL)
            insist(hl_glob_match(made, pattern_length + 2, longer, 2 * name_length), "nor does it with more behind it");
    }
    insist(hl_glob_match("*", 1, name, name_length), "a star does not match everything");
    /* Without special characters, and with each of them quoted, only the very name is matched. */
    size_t quoted = 0;
    for (size_t i = 0; i < name_length; i++) {
        if (is_special(name[i]))
            made[quoted++] = '[';
        made[quoted++] = name[i];
        if (is_special(name[i]))
            made[quoted++] = ']';
    }
    insist(hl_glob_match(made, quoted, name, name_length), "a quoted name does not match itself");
    bool plain = true, same = pattern_length == name_length && memcmp(pattern, name, name_length) == 0;
    for (size_t i = 0; i < pattern_length; i++)
        plain = plain && !is_special(pattern[i]);
    insist(!plain || matches == same, "a pattern without special characters matches something else");
}

static hl_filter filter_of(const uint8_t *flags, char *pattern, size_t length)
{
    hl_filter filter = {.inclusive = flags[0] & 1,
                        .any_line = flags[0] & 2,
                        .all_frames = flags[0] & 4,
                        .any_domain = flags[0] & 8,
                        .any_file = (flags[0] & 0xf0) == 0xf0,
                        .line = flags[1] % 6 - 1,
                        .domain = flags[1] / 6 % 5 - 1,
                        .pattern = pattern,
                        .pattern_length = length};
    if (filter.any_file)
        filter.any_domain = false;
    return filter;
}

static char *copy_of(const uint8_t *bytes, size_t length)
{
    char *copy = malloc(length == 0 ? 1 : length); /* of this very length, for the sanitizer */
    insist(copy != NULL, "no memory");
    memcpy(copy, bytes, length);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    hl_filter filters[MOST_FILTERS];
    char *patterns[MOST_FILTERS], *texts[MOST_FILTERS];
    size_t count = 0, at = 0;
    uint64_t seed = length;
    hl_names *names = sample_names(false);
    hl_snapshot *snapshot = sample_snapshot(names, 20, 3, 20, &seed);
    while (count < MOST_FILTERS && at + 4 <= length && at + 4 + bytes[at + 2] + bytes[at + 3] <= length) {
        const uint8_t *flags = bytes + at;
        size_t pattern_length = flags[2], name_length = flags[3];
        patterns[count] = copy_of(flags + 4, pattern_length);
        texts[count] = copy_of(flags + 4 + pattern_length, name_length);
        match(patterns[count], pattern_length, texts[count], name_length);
        filters[count] = filter_of(flags, patterns[count], pattern_length);
        at += 4 + pattern_length + name_length;
        count++;
    }
    check_failures = 0;
    check_filtered(snapshot, filters, count);
    insist(check_failures == 0, "a filtered snapshot is not what the rules say");
    for (size_t i = 0; i < count; i++) {
        free(patterns[i]);
        free(texts[i]);
    }
    hl_snapshot_drop(snapshot);
    hl_names_drop(names);
    return 0;
}
