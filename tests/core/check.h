/* check.h: all that a unit test of the core needs.
 *
 *     static void adds(void) { CHECK(1 + 1 == 2); CHECK_EQUAL(add(1, 1), 2); }
 *     CHECK_MAIN(TEST(adds))
 *
 * A failed check is printed and the test goes on; CHECK_OR_RETURN leaves it. With names as arguments the program runs
 * these tests only. The last line printed is "N passed, N failed" (tests, not checks); the exit status is 1 if any
 * failed.
 */
#ifndef HL_CHECK_H
#define HL_CHECK_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *name;
    void (*run)(void);
} check_test;

static unsigned check_failures; /* in the test that runs */

static inline bool check_that(bool holds, const char *what, const char *file, int line)
{
    if (!holds && check_failures++ < 20)
        printf("%s:%d: %s\n", file, line, what);
    return holds;
}

static inline bool check_equal(uint64_t found, uint64_t wanted, const char *what, const char *file, int line)
{
    if (found != wanted && check_failures++ < 20)
        printf("%s:%d: %s is %" PRIu64 ", not %" PRIu64 "\n", file, line, what, found, wanted);
    return found == wanted;
}

#define CHECK(condition) check_that((condition), #condition, __FILE__, __LINE__)
#define CHECK_EQUAL(found, wanted) check_equal((uint64_t)(found), (uint64_t)(wanted), #found, __FILE__, __LINE__)
#define CHECK_OR_RETURN(condition) \
    do {                           \
        if (!CHECK(condition))     \
            return;                \
    } while (0)

/* Numbers that look random and are the same in every run. */
static inline uint64_t check_random(uint64_t *seed)
{
    uint64_t x = *seed += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint32_t check_below(uint64_t *seed, uint32_t bound)
{
    return (uint32_t)(check_random(seed) % bound);
}

static inline int check_run(const check_test *tests, size_t count, int argc, char **argv)
{
    unsigned passed = 0, failed = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < count; i++) {
        bool wanted = argc < 2;
        for (int j = 1; j < argc; j++)
            wanted = wanted || strcmp(argv[j], tests[i].name) == 0;
        if (!wanted)
            continue;
        check_failures = 0;
        tests[i].run();
        if (check_failures != 0)
            printf("%s: %u checks failed\n", tests[i].name, check_failures);
        check_failures == 0 ? passed++ : failed++;
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed != 0 || passed == 0;
}

#define TEST(function) {#function, function}
#define CHECK_MAIN(...)                                                    \
    int main(int argc, char **argv)                                        \
    {                                                                      \
        static const check_test tests[] = {__VA_ARGS__};                   \
        return check_run(tests, sizeof tests / sizeof *tests, argc, argv); \
    }

#endif
