/* test_utf8.c: every character there and back, and bytes that are none. */

#include "../../src/core/utf8.h"
#include "check.h"

enum { LAST = 0x10ffff };

static size_t width_of(uint32_t character)
{
    return character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
}

static void every_character_comes_back(void)
{
    for (uint32_t character = 0; character <= LAST; character++) {
        char bytes[HL_UTF8_MOST];
        uint32_t found = LAST + 1;
        size_t width = hl_utf8_encode(character, bytes);
        CHECK_EQUAL(width, width_of(character));
        CHECK_EQUAL(hl_utf8_decode(bytes, width, &found), width);
        CHECK_EQUAL(found, character);
        CHECK_EQUAL(hl_utf8_decode(bytes, width - 1, &found), 0);
    }
}

static void bytes_are_those_of_the_standard(void)
{
    static const struct {
        uint32_t character;
        const char *bytes;
    } known[] = {
        {'a', "a"},
        {0x7f, "\x7f"},
        {0x80, "\xc2\x80"},
        {0xe9, "\xc3\xa9"},
        {0x7ff, "\xdf\xbf"},
        {0x800, "\xe0\xa0\x80"},
        {0x20ac, "\xe2\x82\xac"},
        {0xd800, "\xed\xa0\x80"},
        {0xdcff, "\xed\xb3\xbf"},
        {0xffff, "\xef\xbf\xbf"},
        {0x10000, "\xf0\x90\x80\x80"},
        {LAST, "\xf4\x8f\xbf\xbf"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char bytes[HL_UTF8_MOST];
        size_t width = hl_utf8_encode(known[i].character, bytes);
        CHECK_EQUAL(width, strlen(known[i].bytes));
        CHECK(memcmp(bytes, known[i].bytes, width) == 0);
    }
}

/* Any first byte before any continuation bytes: what is read is what would be written. */
static void no_character_has_two_forms(void)
{
    size_t found = 0;
    for (uint32_t first = 0; first < 256; first++) {
        for (uint32_t rest = 0; rest < 1 << 18; rest++) {
            unsigned char bytes[HL_UTF8_MOST] = {(unsigned char)first};
            for (int i = 1; i < HL_UTF8_MOST; i++)
                bytes[i] = (unsigned char)(0x80 | (rest >> 6 * (i - 1) & 0x3f));
            uint32_t character;
            size_t width = hl_utf8_decode(bytes, sizeof bytes, &character);
            if (width == 0)
                continue;
            char again[HL_UTF8_MOST];
            CHECK(hl_utf8_encode(character, again) == width && memcmp(again, bytes, width) == 0);
            found += width == HL_UTF8_MOST;
        }
    }
    CHECK_EQUAL(found, LAST + 1 - 0x10000);
}

static void what_is_cut_or_broken_is_none(void)
{
    static const char *const none[] = {
        "\x80",
        "\xbf",
        "\xc0\x80",
        "\xc1\xbf",
        "\xc3",
        "\xc3"
        "a",
        "\xe0\x9f\xbf",
        "\xe2\x82",
        "\xe2\x82"
        "a",
        "\xe2"
        "a\x82",
        "\xf0\x8f\xbf\xbf",
        "\xf0\x9f\x98",
        "\xf0\x9f\x98"
        "a",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff",
    };
    uint32_t character;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        CHECK_EQUAL(hl_utf8_decode(none[i], strlen(none[i]), &character), 0);
    CHECK_EQUAL(hl_utf8_decode("a", 0, &character), 0);
}

static void surrogates_are_known(void)
{
    CHECK(!hl_utf8_is_surrogate(0xd7ff));
    CHECK(hl_utf8_is_surrogate(0xd800));
    CHECK(hl_utf8_is_surrogate(0xdfff));
    CHECK(!hl_utf8_is_surrogate(0xe000));
    CHECK(!hl_utf8_is_surrogate(0x1d800));
}

CHECK_MAIN(TEST(every_character_comes_back), TEST(bytes_are_those_of_the_standard), TEST(no_character_has_two_forms),
           TEST(what_is_cut_or_broken_is_none), TEST(surrogates_are_known))
