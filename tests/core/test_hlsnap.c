/* test_hlsnap.c: snapshots written as .hlsnap files and read again; files that were damaged or made up to do harm. */

#include <stdlib.h>

#include "../../src/core/hlsnap.h"
#include "../../src/core/hlsnap_bytes.h"
#include "sample.h"

static bool same_string(const hl_book *a_book, hl_string_id a_id, const hl_book *b_book, hl_string_id b_id)
{
    if (a_id == 0 || b_id == 0)
        return a_id == b_id;
    const hl_string *a = hl_book_get_string(a_book, a_id), *b = hl_book_get_string(b_book, b_id);
    return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

static bool same_stack(const hl_book *a_book, hl_stack_id a_id, const hl_book *b_book, hl_stack_id b_id)
{
    const hl_stack *a = hl_book_get_stack(a_book, a_id), *b = hl_book_get_stack(b_book, b_id);
    if (a->depth != b->depth || a->total != b->total)
        return false;
    for (uint32_t i = 0; i < a->depth; i++) {
        const hl_location *x = hl_book_get_location(a_book, a->locations[i]);
        const hl_location *y = hl_book_get_location(b_book, b->locations[i]);
        if (x->line != y->line || !same_string(a_book, x->file, b_book, y->file) ||
            !same_string(a_book, x->name, b_book, y->name))
            return false;
    }
    return true;
}

static bool same_snapshot(const hl_snapshot *a, const hl_snapshot *b)
{
    if (a->moment != b->moment || a->nframe != b->nframe || a->row_count != b->row_count || a->blocks != b->blocks ||
        a->bytes != b->bytes || a->origins.count != b->origins.count || a->origins.forks != b->origins.forks ||
        memcmp(a->origins.ids, b->origins.ids, a->origins.count * sizeof *a->origins.ids) != 0)
        return false;
    for (size_t i = 0; i < a->row_count; i++) {
        const hl_row *x = &a->rows[i], *y = &b->rows[i];
        if (x->size != y->size || x->live != y->live || x->allocated != y->allocated || x->origin != y->origin ||
            x->domain != y->domain || !same_stack(a->book, x->stack, b->book, y->stack))
            return false;
    }
    return true;
}

static void drop_content(hl_hlsnap_content *content)
{
    for (size_t i = 0; i < content->snapshot_count; i++)
        hl_snapshot_drop(content->snapshots[i]);
}

static hl_hlsnap_file written(const hl_snapshot *snapshot)
{
    hl_hlsnap_file file;
    sample_must(hl_hlsnap_write(&snapshot, 1, NULL, 0, &file));
    return file;
}

static hl_snapshot *any_snapshot(hl_book *book, size_t rows, uint32_t deepest, uint32_t variety, uint64_t *seed)
{
    hl_snapshot *snapshot = sample_snapshot(book, rows, deepest, variety, seed);
    snapshot->moment = (hl_moment)check_below(seed, 3);
    snapshot->nframe = check_below(seed, 100);
    snapshot->origins.count = check_below(seed, 4);
    snapshot->origins.forks = check_below(seed, 4);
    for (uint32_t i = 0; i < snapshot->origins.count; i++)
        snapshot->origins.ids[i] = check_random(seed);
    for (size_t i = 0; i < rows && snapshot->origins.count != 0; i++)
        snapshot->rows[i].origin = (uint8_t)check_below(seed, snapshot->origins.count);
    return snapshot;
}

static void comes_back_as_it_was(void)
{
    uint64_t seed = 1;
    for (int round = 0; round < 200; round++) {
        hl_book *book = sample_book(round % 2 == 0);
        hl_snapshot *one = any_snapshot(book, check_below(&seed, 300), 1 + check_below(&seed, 30), 1000, &seed);
        hl_snapshot *two = any_snapshot(book, check_below(&seed, 100), 1 + check_below(&seed, 3), 3, &seed);
        const hl_snapshot *both[] = {one, two};
        hl_hlsnap_file file;
        hl_hlsnap_content content;
        hl_hlsnap_error error;
        sample_must(hl_hlsnap_write(both, 2, NULL, 0, &file));
        hl_book_drop(book);
        if (CHECK_EQUAL(hl_hlsnap_read(file.bytes, file.length, &content, &error), HL_OK)) {
            CHECK_EQUAL(content.snapshot_count, 2);
            CHECK_EQUAL(content.section_count, 0);
            CHECK(same_snapshot(content.snapshots[0], one));
            CHECK(same_snapshot(content.snapshots[1], two));
            drop_content(&content);
        } else {
            printf("%s at %zu\n", error.what, error.where);
        }
        hl_os_free(file.bytes);
        hl_snapshot_drop(one);
        hl_snapshot_drop(two);
    }
}

static void refuses_what_was_cut_or_changed(void)
{
    uint64_t seed = 2;
    hl_book *book = sample_book(false);
    hl_snapshot *snapshot = any_snapshot(book, 20, 5, 1000, &seed);
    hl_hlsnap_file file = written(snapshot);
    hl_hlsnap_content content;
    hl_hlsnap_error error;
    for (size_t length = 0; length < file.length; length++) {
        uint8_t *cut = malloc(length == 0 ? 1 : length); /* of this very length, for the sanitizer */
        memcpy(cut, file.bytes, length);
        CHECK_EQUAL(hl_hlsnap_read(cut, length, &content, &error), HL_MALFORMED);
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
    hl_book_drop(book);
}

static void survives_failing_memory(void)
{
    uint64_t seed = 3;
    hl_book *book = sample_book(false);
    hl_snapshot *snapshot = any_snapshot(book, 3000, 12, 1000, &seed);
    hl_hlsnap_file file = written(snapshot), again;
    hl_hlsnap_content content;
    hl_hlsnap_error error;
    for (size_t n = 1, reached = 0; reached < 2; n++) {
        (void)hl_os_fail_every(n);
        hl_status status = hl_hlsnap_write((const hl_snapshot *const *)&snapshot, 1, NULL, 0, &again);
        size_t failures = hl_os_fail_every(n);
        CHECK_EQUAL(status, failures == 0 ? HL_OK : HL_NO_MEMORY);
        if (status == HL_OK)
            hl_os_free(again.bytes);
        (void)hl_os_fail_every(n);
        status = hl_hlsnap_read(file.bytes, file.length, &content, &error);
        size_t more = hl_os_fail_every(0);
        CHECK(status == HL_NO_MEMORY ? more != 0 : status == HL_OK);
        if (status == HL_OK) {
            CHECK(same_snapshot(content.snapshots[0], snapshot));
            drop_content(&content);
        }
        reached += failures == 0 && more == 0;
    }
    hl_os_free(file.bytes);
    hl_snapshot_drop(snapshot);
    hl_book_drop(book);
}

CHECK_MAIN(TEST(comes_back_as_it_was), TEST(refuses_what_was_cut_or_changed), TEST(survives_failing_memory))
