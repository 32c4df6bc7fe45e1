/* test_glob.c: hl_glob_match against answers of Python's fnmatch.fnmatchcase, and on bytes that are not UTF-8. */

#include <stdlib.h>

#include "../../src/core/glob.h"
#include "check.h"

typedef struct {
    const char *bytes;
    size_t length;
} text;

typedef struct {
    text pattern, name;
    bool matches;
} vector;

/* clang-format off */
#define T(literal) {literal, sizeof(literal) - 1}

static const vector plain[] = {
    {T(""), T(""), 1}, {T(""), T("a"), 0}, {T("a"), T(""), 0}, {T("a.py"), T("a.py"), 1}, {T("a.py"), T("aXpy"), 0},
    {T("a.py"), T("A.py"), 0}, {T("a.py"), T("a.py\n"), 0}, {T("{a,b}"), T("a"), 0}, {T("a\\*"), T("a\\b"), 1},
    {T("a\\*"), T("a*"), 0},
};

static const vector stars[] = {
    {T("*"), T(""), 1}, {T("*"), T("a/b\n.c"), 1}, {T("**"), T("x"), 1}, {T("a*"), T("a"), 1}, {T("a*"), T("ba"), 0},
    {T("*a"), T("ba"), 1}, {T("*a"), T("ab"), 0}, {T("*.py"), T("/usr/lib/x.py"), 1}, {T("*.py"), T("x.pyc"), 0},
    {T("*/json/*.py"), T("/lib/json/__init__.py"), 1}, {T("*/json/*.py"), T("/lib/json.py"), 0},
    {T("a*b*c"), T("aXbXbc"), 1}, {T("a*b*c"), T("aXbXbcd"), 0}, {T("*ab*ab"), T("abab"), 1},
    {T("*ab*ab"), T("aab"), 0}, {T("*aab"), T("aaab"), 1}, {T("<frozen *>"), T("<frozen importlib._bootstrap>"), 1},
};

static const vector any[] = {
    {T("?"), T("a"), 1}, {T("?"), T(""), 0}, {T("?"), T("ab"), 0}, {T("?"), T("\n"), 1}, {T("?"), T("\303\251"), 1},
    {T("?"), T("\360\237\230\200"), 1}, {T("?"), T("\355\240\200"), 1},
    {T("?" "?"), T("\355\240\200\355\260\200"), 1}, {T("*?"), T("a"), 1}, {T("*?"), T(""), 0}, {T("?*?"), T("a"), 0},
    {T("?*?"), T("ab"), 1},
};

static const vector sets[] = {
    {T("[ab]"), T("a"), 1}, {T("[ab]"), T("c"), 0}, {T("[ab]"), T(""), 0}, {T("[!ab]"), T("c"), 1},
    {T("[!ab]"), T("a"), 0}, {T("[!a]"), T("\n"), 1}, {T("[a-c]"), T("b"), 1}, {T("[a-c]"), T("d"), 0},
    {T("[a-c]"), T("-"), 0}, {T("[!a-c]"), T("b"), 0}, {T("[a-cx-z]"), T("y"), 1}, {T("[]]"), T("]"), 1},
    {T("[]a]"), T("a"), 1}, {T("[!]]"), T("]"), 0}, {T("[!]]"), T("a"), 1}, {T("[]-a]"), T("^"), 1},
    {T("[]-a]"), T("]"), 1}, {T("x[*]"), T("x*"), 1}, {T("x[*]"), T("xy"), 0}, {T("[?]"), T("?"), 1},
    {T("[?]"), T("a"), 0}, {T("[[]"), T("["), 1}, {T("[[]x"), T("[x"), 1}, {T("[^a]"), T("^"), 1},
    {T("[^a]"), T("a"), 1}, {T("[^a]"), T("b"), 0}, {T("[\\]"), T("\\"), 1}, {T("[\\-a]"), T("]"), 1},
    {T("[\\-a]"), T("\\"), 1}, {T("[&&]"), T("&"), 1}, {T("[~~|]"), T("|"), 1}, {T("*[0-9].py"), T("x7.py"), 1},
    {T("*[0-9]"), T("a1b2"), 1}, {T("[\303\251-\303\274]"), T("\303\266"), 1}, {T("[\303\251-\303\274]"), T("a"), 0},
    {T("[!\303\251]"), T("\303\251"), 0}, {T("[\355\240\200-\355\277\277]"), T("\355\262\200"), 1},
    {T("[\355\240\200-\355\277\277]"), T("\356\200\200"), 0},
    {T("[\360\237\230\200-\360\237\231\217]"), T("\360\237\230\220"), 1},
};

static const vector hyphens[] = {
    {T("[-a]"), T("-"), 1}, {T("[-a]"), T("a"), 1}, {T("[a-]"), T("-"), 1}, {T("[a-]"), T("a"), 1},
    {T("[a-]"), T("b"), 0}, {T("[!-a]"), T("-"), 0}, {T("[!-a]"), T("b"), 1}, {T("[--/]"), T("."), 1},
    {T("[--/]"), T("-"), 1}, {T("[--/]"), T("+"), 0}, {T("[+--]"), T(","), 1}, {T("[a--]"), T("a"), 0},
    {T("[a--]"), T("-"), 0}, {T("[a-c-e]"), T("d"), 0}, {T("[a-c-e]"), T("-"), 1}, {T("[a-c-e]"), T("e"), 1},
    {T("[a-b-c-d]"), T("-"), 1}, {T("[---]"), T("-"), 1}, {T("[a-a]"), T("a"), 1}, {T("[!!-a]"), T("A"), 0},
    {T("[!!-a]"), T("z"), 1},
};

static const vector reversed[] = {
    {T("[z-a]"), T("a"), 0}, {T("[z-a]"), T("m"), 0}, {T("[!z-a]"), T("m"), 1}, {T("[!z-a]"), T("-"), 1},
    {T("[z-ab]"), T("b"), 1}, {T("[z-ab]"), T("a"), 0}, {T("[z-ab-d]"), T("c"), 1}, {T("[z-a-c]"), T("-"), 1},
    {T("[z-a-c]"), T("c"), 1}, {T("[z-a-c]"), T("b"), 0}, {T("[z-a!b]"), T("b"), 0}, {T("[z-a!b]"), T("!"), 1},
    {T("[z-a!b]"), T("c"), 1}, {T("[z-a!]"), T("q"), 1}, {T("[z-a!-c]"), T("-"), 0}, {T("[z-a!-c]"), T("c"), 0},
    {T("[z-a!-c]"), T("b"), 1}, {T("[z-a!-c]"), T("!"), 1}, {T("[z-a!-!]"), T("!"), 0}, {T("[z-a!-!]"), T("-"), 0},
    {T("[z-a!-!]"), T("x"), 1}, {T("[z-a^b]"), T("^"), 1}, {T("[z-a^b]"), T("c"), 0}, {T("[z-a!--x]"), T("-"), 0},
    {T("[z-a!--x]"), T("x"), 0}, {T("[z-a!--x]"), T("5"), 1}, {T("[b-az-y!c]"), T("c"), 0},
    {T("[b-az-y!c]"), T("d"), 1}, {T("[a!]"), T("!"), 1}, {T("[a!]"), T("b"), 0},
};

static const vector unclosed[] = {
    {T("["), T("["), 1}, {T("[a"), T("[a"), 1}, {T("[a"), T("a"), 0}, {T("[!"), T("[!"), 1}, {T("[]"), T("[]"), 1},
    {T("[!]"), T("[!]"), 1}, {T("[!]"), T("x"), 0}, {T("a[b"), T("a[b"), 1}, {T("*["), T("x["), 1},
    {T("[[]"), T("["), 1}, {T("[["), T("[["), 1}, {T("[]]"), T("]"), 1}, {T("[a]]"), T("a]"), 1},
    {T("[a]]"), T("a"), 0}, {T("[a]["), T("a["), 1}, {T("*[a*"), T("x[ay"), 1}, {T("[z-a]"), T(""), 0},
};

/* Not UTF-8: every bad byte is one character, equal to itself only. */
static const vector bad_bytes[] = {
    {T("?"), T("\377"), 1}, {T("\377"), T("\377"), 1}, {T("\377"), T("\376"), 0}, {T("??"), T("\303\050"), 1},
    {T("?"), T("\303"), 1}, {T("??"), T("\300\200"), 1}, {T("?"), T("\300\200"), 0}, {T("???"), T("\340\200\200"), 1},
    {T("????"), T("\364\220\200\200"), 1}, {T("?"), T("\364\217\277\277"), 1}, {T("[\377]"), T("\377"), 1},
    {T("[!\377]"), T("\303\277"), 1}, {T("[a-\377]"), T("\303\251"), 1}, {T("*\200"), T("\303\251\200"), 1},
    {T("\303*"), T("\303\251"), 0}, {T("[\303"), T("[\303"), 1},
};
/* clang-format on */

/* Copies of the exact size, so that the sanitizer sees a read past the end. */
static bool match(text pattern, text name)
{
    char *pattern_copy = malloc(pattern.length), *name_copy = malloc(name.length);
    if (pattern.length != 0)
        memcpy(pattern_copy, pattern.bytes, pattern.length);
    if (name.length != 0)
        memcpy(name_copy, name.bytes, name.length);
    bool matches = hl_glob_match(pattern_copy, pattern.length, name_copy, name.length);
    free(pattern_copy);
    free(name_copy);
    return matches;
}

static void check_vectors(const vector *vectors, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!CHECK(match(vectors[i].pattern, vectors[i].name) == vectors[i].matches))
            printf("    pattern %s, name %s\n", vectors[i].pattern.bytes, vectors[i].name.bytes);
}

#define VECTORS(array)                                      \
    static void matches_##array(void)                       \
    {                                                       \
        check_vectors(array, sizeof array / sizeof *array); \
    }
VECTORS(plain)
VECTORS(stars)
VECTORS(any)
VECTORS(sets)
VECTORS(hyphens)
VECTORS(reversed)
VECTORS(unclosed)
VECTORS(bad_bytes)

static void survives_random_bytes(void)
{
    static const char signs[] = "**??[[]]!!--ab";
    uint64_t seed = 1;
    for (int i = 0; i < 50000; i++) {
        char bytes[24];
        for (size_t j = 0; j < sizeof bytes; j++)
            bytes[j] =
                check_below(&seed, 3) == 0 ? (char)check_random(&seed) : signs[check_below(&seed, sizeof signs - 1)];
        text pattern = {bytes, check_below(&seed, 14)}, name = {bytes + 14, check_below(&seed, 10)};
        (void)match(pattern, name);
    }
    CHECK(true);
}

/* One star to return to is enough: more would take exponential time here. */
static void many_stars_are_cheap(void)
{
    char pattern[400], name[4000];
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = i % 2 == 0 ? '*' : 'a';
    pattern[sizeof pattern - 1] = 'b';
    memset(name, 'a', sizeof name);
    CHECK(!hl_glob_match(pattern, sizeof pattern, name, sizeof name));
    memset(pattern, '[', sizeof pattern);
    pattern[0] = '*';
    memset(name, '[', sizeof name);
    CHECK(hl_glob_match(pattern, sizeof pattern, name, sizeof name));
}

CHECK_MAIN(TEST(matches_plain), TEST(matches_stars), TEST(matches_any), TEST(matches_sets), TEST(matches_hyphens),
           TEST(matches_reversed), TEST(matches_unclosed), TEST(matches_bad_bytes), TEST(survives_random_bytes),
           TEST(many_stars_are_cheap))
