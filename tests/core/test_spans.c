/* test_spans.c: tables that grow and decline, beside a model: ids, chains, reuse counts, addresses, and memory that
 * goes back. */

#include <stdlib.h>

#include "../../src/core/index.h"
#include "check.h"

enum { MOST = 40 * HL_TABLE_SPAN, SIZE = 20 };

/* What the tables' items are. */
typedef struct {
    uint32_t value;
    uint32_t reuse_count;
    uint32_t more[3];
} item;

_Static_assert(sizeof(item) == SIZE, "a size that is no power of two");

/* By id; value 0: not in use. */
typedef struct {
    uint32_t value;
    uint32_t hash;
    uint32_t reuse_count;
    const void *at;
} model_item;

static hl_table table;
static model_item model[MOST + 1];
static uint32_t ids[MOST]; /* in use, in any order */
static uint32_t count;

static void begin(bool stable)
{
    hl_table_open(&table, sizeof(item), MOST, stable);
    table.reuse_count_at = offsetof(item, reuse_count);
    memset(model, 0, sizeof model);
    count = 0;
}

static hl_status add(uint32_t value, uint32_t hash)
{
    uint32_t id;
    hl_status status = hl_table_add(&table, hash, &id);
    if (status != HL_OK)
        return status;
    item *made = hl_table_at(&table, id);
    CHECK(id >= 1 && id <= MOST && model[id].value == 0);
    CHECK(made->reuse_count >= model[id].reuse_count);
    CHECK(made->reuse_count <= HL_MOST_REUSES);
    *made = (item){.value = value, .reuse_count = made->reuse_count, .more = {value, ~value, hash}};
    model[id] = (model_item){.value = value, .hash = hash, .reuse_count = made->reuse_count, .at = made};
    ids[count++] = id;
    return HL_OK;
}

static void remove_at(uint32_t place)
{
    uint32_t id = ids[place];
    ids[place] = ids[--count];
    model[id].value = 0;
    model[id].reuse_count++;
    hl_table_remove(&table, id);
}

static bool is_there(uint32_t id)
{
    const item *found = hl_table_at(&table, id);
    const model_item *wanted = &model[id];
    uint32_t at = hl_table_first(&table, wanted->hash);
    while (at != 0 && at != id)
        at = hl_table_link(&table, at)->next;
    return at == id && hl_table_link(&table, id)->hash == wanted->hash && found->value == wanted->value &&
           found->reuse_count == wanted->reuse_count && found->more[0] == wanted->value &&
           found->more[1] == ~wanted->value && found->more[2] == wanted->hash && (!table.stable || found == wanted->at);
}

static void compare(void)
{
    CHECK_EQUAL(table.count, count);
    uint32_t sought = 0;
    for (uint32_t id = 1; (id = hl_table_seek(&table, id)) != 0; id++) {
        CHECK_OR_RETURN(id <= MOST);
        sought += model[id].value != 0;
    }
    CHECK_EQUAL(sought, count);
    for (uint32_t i = 0; i < count; i++)
        CHECK_OR_RETURN(ids[i] <= table.used && is_there(ids[i]));
}

/* Up and down, each time to another height; every n-th allocation fails. */
static void live(uint64_t seed, bool stable, size_t fail)
{
    begin(stable);
    uint32_t value = 0;
    for (int turn = 0; turn < 12; turn++) {
        uint32_t goal = turn % 2 != 0 ? check_below(&seed, 50) : 1 + check_below(&seed, turn == 6 ? MOST : MOST / 4);
        for (uint32_t step = 0; step < 4 * MOST && count != goal; step++) {
            bool up = check_below(&seed, 4) == 0 ? count < goal : count > goal; /* three steps on, one back */
            hl_os_fail_every(fail);
            if (up && count > 0) {
                remove_at(check_below(&seed, 8) == 0 ? check_below(&seed, count) : count - 1);
            } else {
                value++;
                hl_status status = add(value, check_below(&seed, 5) == 0 ? value % 16 : (uint32_t)hl_mix(value));
                CHECK(status == HL_OK || fail != 0 || count == MOST);
            }
            hl_os_fail_every(0);
        }
        compare();
    }
    CHECK(table.buckets < 4 * HL_TABLE_SPAN);
    hl_table_close(&table);
}

static void random_lives_agree_with_the_model(void)
{
    for (uint64_t seed = 1; seed <= 4; seed++)
        live(seed, seed % 2 == 0, 0);
}

static void failing_memory_leaves_the_table_as_it_was(void)
{
    for (size_t fail = 1; fail < 6; fail++)
        live(fail, fail % 2 == 0, fail);
}

static void ids_ascend_as_long_as_nothing_is_removed(void)
{
    begin(true);
    for (uint32_t i = 0; i < MOST; i++) {
        CHECK_OR_RETURN(add(i + 1, i) == HL_OK);
        CHECK_OR_RETURN(ids[i] == i + 1 && table.used == i + 1);
    }
    CHECK_EQUAL(add(1, 1), HL_FULL);
    remove_at(12345);
    CHECK_EQUAL(add(1, 1), HL_OK);
    CHECK_EQUAL(ids[MOST - 1], 12346);
    compare();
    hl_table_close(&table);
}

/* All but one in 5,000 go, and with them nearly all of the memory, of the items as of the hash side. */
static void memory_is_given_back_after_a_peak(void)
{
    for (int stable = 0; stable < 2; stable++) {
        begin(stable != 0);
        for (uint32_t i = 0; i < MOST; i++)
            CHECK_OR_RETURN(add(i + 1, (uint32_t)hl_mix(i)) == HL_OK);
        size_t peak = hl_table_memory(&table), in_items = (MOST + 1) * (sizeof(item) + sizeof(hl_link));
        CHECK(peak >= in_items && peak < in_items + in_items / 8);
        for (uint32_t i = count; i > 0; i--)
            if ((i - 1) % 5000 != 0)
                remove_at(i - 1);
        compare();
        CHECK(hl_table_memory(&table) < peak / 3);
        CHECK(table.buckets <= HL_TABLE_SPAN);
        size_t resident = hl_os_resident(table.links.base, table.links.bytes);
        CHECK(resident <= (count + 3) * HL_TABLE_SPAN * sizeof(hl_link));
        for (uint32_t i = count; i < MOST; i++)
            CHECK_OR_RETURN(add(i + 1, (uint32_t)hl_mix(i)) == HL_OK);
        compare();
        CHECK_EQUAL(table.span_count, MOST / HL_TABLE_SPAN + 1);
        for (uint32_t id = 1; id <= MOST; id++)
            hl_table_remove(&table, id);
        CHECK(table.used < 3 * HL_TABLE_SPAN); /* passing by all is short again */
        hl_table_close(&table);
    }
}

/* A span is not given back for the sake of an id that has lived so often that the others of its span would have to
 * begin with its highest reuse counts. */
static void old_ids_do_not_age_the_others(void)
{
    begin(false);
    enum { EACH = 8 * HL_TABLE_SPAN, OLD = 5 * HL_TABLE_SPAN + 1 };
    for (uint32_t i = 0; i < EACH; i++)
        CHECK_OR_RETURN(add(i + 1, i) == HL_OK);
    ((item *)hl_table_at(&table, OLD))->reuse_count = model[OLD].reuse_count = HL_MOST_REUSES - 3;
    while (count > 0)
        remove_at(count - 1);
    for (uint32_t i = 0; i < EACH; i++)
        CHECK_OR_RETURN(add(i + 1, i) == HL_OK);
    for (uint32_t i = 0; i < EACH; i++)
        CHECK(ids[i] == OLD ? model[OLD].reuse_count == HL_MOST_REUSES - 2 : model[ids[i]].reuse_count <= 2);
    hl_table_close(&table);
}

CHECK_MAIN(TEST(random_lives_agree_with_the_model), TEST(failing_memory_leaves_the_table_as_it_was),
           TEST(ids_ascend_as_long_as_nothing_is_removed), TEST(memory_is_given_back_after_a_peak),
           TEST(old_ids_do_not_age_the_others))
