/* test_save.c: what writes a file without an interpreter: scratch memory in signal handlers, plain data, whole
 * files. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/core/digits.h"
#include "../../src/core/plain.h"
#include "../../src/core/save.h"
#include "check.h"

/* Plain data, against encodings that python/heapledger/_plain.py makes. */

static hl_hlsnap_buffer made;

static bool is(const char *wanted, size_t length)
{
    bool same = !made.failed && made.length == length && memcmp(made.bytes, wanted, length) == 0;
    hl_os_free(made.bytes);
    made = (hl_hlsnap_buffer){0};
    return same;
}
#define IS(literal) CHECK(is(literal, sizeof(literal) - 1))

static void ints_are_as_short_as_can_be(void)
{
    static const struct {
        int64_t value;
        const char *bytes;
        size_t length;
    } cases[] = {
        {0, "i\1\0", 3},
        {127, "i\1\177", 3},
        {128, "i\2\200\0", 4},
        {-1, "i\1\377", 3},
        {-128, "i\1\200", 3},
        {-129, "i\2\177\377", 4},
        {32767, "i\2\377\177", 4},
        {32768, "i\3\0\200\0", 5},
        {INT64_MAX, "i\10\377\377\377\377\377\377\377\177", 10},
        {INT64_MIN, "i\10\0\0\0\0\0\0\0\200", 10},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hl_plain_int(&made, cases[i].value);
        CHECK(is(cases[i].bytes, cases[i].length));
    }
}

static void texts_that_are_not_utf8(void)
{
    hl_plain_word(&made, "a\303\244\342\202\254\360\237\230\200");
    IS("u\12a\303\244\342\202\254\360\237\230\200");
    hl_plain_word(&made, "\377x");
    IS("u\4\355\263\277x");
    hl_plain_word(&made, "\200\303");
    IS("u\6\355\262\200\355\263\203");
    hl_plain_word(&made, "\300\200"); /* overlong */
    IS("u\6\355\263\200\355\262\200");
    hl_plain_word(&made, "\355\240\200"); /* a surrogate */
    IS("u\11\355\263\255\355\262\240\355\262\200");
    hl_plain_word(&made, "\364\220\200\200"); /* beyond Unicode */
    IS("u\14\355\263\264\355\262\220\355\262\200\355\262\200");
}

static void containers(void)
{
    hl_plain_dict(&made, 2);
    hl_plain_word(&made, "a");
    hl_plain_none(&made);
    hl_plain_word(&made, "b");
    hl_plain_list(&made, 1);
    hl_plain_int(&made, 5);
    IS("d\2u\1aNu\1bl\1i\1\5");
}

/* Files. */

static char folder[] = "/tmp/heapledger-save-XXXXXX";
static char path[PATH_MAX];

static size_t content(const char *name, char *bytes, size_t room)
{
    FILE *file = fopen(name, "rb");
    if (file == NULL)
        return SIZE_MAX;
    size_t length = fread(bytes, 1, room, file);
    fclose(file);
    return length;
}

static void files_are_replaced_as_a_whole(void)
{
    char bytes[16];
    errno = 77;
    CHECK_EQUAL(hl_save(path, (const uint8_t *)"first", 5), 0);
    CHECK_EQUAL(content(path, bytes, sizeof bytes), 5);
    CHECK_EQUAL(hl_save(path, (const uint8_t *)"2nd", 3), 0);
    CHECK_EQUAL(content(path, bytes, sizeof bytes), 3);
    CHECK(memcmp(bytes, "2nd", 3) == 0);
    CHECK_EQUAL(errno, 77);
    struct stat file;
    CHECK(stat(path, &file) == 0 && (file.st_mode & 0777) == (0666 & ~umask(022)));
    CHECK_EQUAL(unlink(path), 0);
    CHECK_EQUAL(rmdir(folder), 0); /* nothing else is left */
    CHECK_EQUAL(mkdir(folder, 0700), 0);
}

static void what_cannot_be_written(void)
{
    char missing[PATH_MAX], long_name[PATH_MAX];
    snprintf(missing, sizeof missing, "%s/missing/x", folder);
    errno = 77;
    CHECK_EQUAL(hl_save(missing, (const uint8_t *)"x", 1), ENOENT);
    CHECK_EQUAL(hl_save("/dev/full", (const uint8_t *)"x", 1), ENOSPC);
    CHECK_EQUAL(hl_save("/dev/null", (const uint8_t *)"x", 1), 0);
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    long_name[0] = long_name[sizeof long_name - 10] = '/';
    CHECK(hl_save(long_name, (const uint8_t *)"x", 1) != 0);
    CHECK_EQUAL(errno, 77);
    CHECK_EQUAL(mkdir(path, 0700), 0);
    CHECK_EQUAL(hl_save(path, (const uint8_t *)"x", 1), EISDIR);
    CHECK_EQUAL(rmdir(path), 0);
    CHECK_EQUAL(rmdir(folder), 0);
    CHECK_EQUAL(mkdir(folder, 0700), 0);
}

/* Scratch memory. */

static void handlers_get_pages(void)
{
    hl_os_use_pages(true);
    char *block = hl_os_alloc(10, 10);
    CHECK_OR_RETURN(block != NULL);
    CHECK_EQUAL((uintptr_t)block % _Alignof(max_align_t), 0);
    CHECK_EQUAL((uintptr_t)block / hl_os_page(), ((uintptr_t)block - 2 * sizeof(size_t)) / hl_os_page());
    for (int i = 0; i < 100; i++)
        CHECK_EQUAL(block[i], 0);
    memset(block, 7, 100);
    char *grown = hl_os_resize(block, 1000000, 1);
    CHECK_OR_RETURN(grown != NULL);
    CHECK(grown[0] == 7 && grown[99] == 7);
    grown[999999] = 1;
    CHECK(hl_os_resize(grown, SIZE_MAX / 2, 4) == NULL);
    CHECK(hl_os_alloc(SIZE_MAX, 2) == NULL);
    CHECK_EQUAL(grown[999999], 1);
    hl_os_free(grown);
    hl_os_free(NULL);
    char *fresh = hl_os_resize(NULL, 5, 5);
    CHECK(fresh != NULL);
    hl_os_free(fresh);
    hl_os_use_pages(false);
    block = hl_os_alloc(1, 10);
    CHECK(block != NULL && malloc_usable_size(block) >= 10);
    hl_os_free(block);
}

static void numbers(void)
{
    char text[HL_DIGITS_ROOM];
    CHECK(hl_digits(text, 0, 10) == text + 1 && strcmp(text, "0") == 0);
    CHECK(hl_digits(text, UINT64_MAX, 10) == text + 20 && strcmp(text, "18446744073709551615") == 0);
    CHECK(hl_digits(text, UINT64_MAX, 2) == text + 64);
    (void)hl_digits(text, 0xabc, 16);
    CHECK(strcmp(text, "abc") == 0);
}

static void prepare(void)
{
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/x", folder);
}

static void clean_up(void)
{
    CHECK_EQUAL(rmdir(folder), 0);
}

CHECK_MAIN(TEST(ints_are_as_short_as_can_be), TEST(texts_that_are_not_utf8), TEST(containers), TEST(prepare),
           TEST(files_are_replaced_as_a_whole), TEST(what_cannot_be_written), TEST(clean_up), TEST(handlers_get_pages),
           TEST(numbers))
