/* index.c: see index.h. */

#include "index.h"

enum {
    ITEMS_PER_BUCKET = 2, /* on average, before a bucket is split */
    BUCKETS_PER_ITEM = 2, /* before buckets are joined; far below the other limit, so that tables do not swing */
    MOST_JOINED = 4,      /* for one removal: more than needed to keep up */
    FEWEST_BUCKETS = 1024,
    MOST_WARM = 2, /* spans that keep their memory, for a program that moves around the edge of a span */
};

static uint32_t *heads(const hl_table *table)
{
    return (uint32_t *)(void *)table->heads.base;
}

static hl_link *link_of(const hl_table *table, uint32_t id)
{
    return (hl_link *)(void *)table->links.base + id;
}

static uint32_t bucket_of(const hl_table *table, uint32_t hash)
{
    uint32_t bucket = hash & ((2u << table->level) - 1);
    return bucket < table->buckets ? bucket : bucket & ((1u << table->level) - 1);
}

void hl_table_open(hl_table *table, uint32_t item_size, uint32_t most, bool stable)
{
    *table = (hl_table){.item_size = item_size, .most = most, .stable = stable};
}

/* Segments. */

static size_t directory_bytes(const hl_table *table)
{
    size_t bytes = ((size_t)table->most / HL_TABLE_SEGMENT + 1) * sizeof *table->segments, page = hl_os_page();
    return (bytes + page - 1) / page * page;
}

static size_t segment_bytes(const hl_table *table)
{
    size_t bytes = (size_t)table->item_size * HL_TABLE_SEGMENT, page = hl_os_page();
    return (bytes + page - 1) / page * page;
}

/* The first segment follows the directory of all segments. */
static hl_status make_segment(hl_table *table, uint32_t first_id)
{
    if (table->segments == NULL) {
        size_t directory = directory_bytes(table);
        table->segments = hl_os_map(directory + segment_bytes(table));
        if (table->segments == NULL)
            return HL_NO_MEMORY;
        table->segments[0] = (char *)table->segments + directory;
    }
    char **segment = &table->segments[first_id / HL_TABLE_SEGMENT];
    if (*segment == NULL)
        *segment = hl_os_map(segment_bytes(table));
    return *segment == NULL ? HL_NO_MEMORY : HL_OK;
}

void hl_table_close(hl_table *table)
{
    if (table->segments != NULL) {
        for (uint32_t i = 1; i <= table->most / HL_TABLE_SEGMENT && table->segments[i] != NULL; i++)
            hl_os_unmap(table->segments[i], segment_bytes(table));
        hl_os_unmap(table->segments, directory_bytes(table) + segment_bytes(table));
    }
    hl_region_close(&table->items);
    hl_region_close(&table->links);
    hl_region_close(&table->heads);
    hl_region_close(&table->spans);
    *table = (hl_table){0};
}

/* Buckets. */

/* One step of linear hashing: add bucket `buckets` and give it the items of its buddy that belong to it. */
static hl_status split(hl_table *table)
{
    uint32_t born = table->buckets;
    hl_status status = hl_region_ensure(&table->heads, ((size_t)born + 1) * sizeof(uint32_t));
    if (status != HL_OK)
        return status;
    heads(table)[born] = 0;
    table->buckets = born + 1;
    if (born == 0)
        return HL_OK;
    if (born >= 2u << table->level)
        table->level++;
    uint32_t buddy = born - (1u << table->level);
    uint32_t *from = &heads(table)[buddy];
    while (*from != 0) {
        uint32_t id = *from;
        hl_link *link = link_of(table, id);
        if (bucket_of(table, link->hash) == born) {
            *from = link->next;
            link->next = heads(table)[born];
            heads(table)[born] = id;
        } else {
            from = &link->next;
        }
    }
    return HL_OK;
}

/* The reverse: put the chain of the last bucket in front of its buddy's. */
static void join(hl_table *table)
{
    uint32_t last = --table->buckets;
    uint32_t *buddy = &heads(table)[last - (1u << table->level)];
    if (last == 1u << table->level)
        table->level--;
    uint32_t *end = &heads(table)[last];
    while (*end != 0)
        end = &link_of(table, *end)->next;
    *end = *buddy;
    *buddy = heads(table)[last];
}

static bool is_too_empty(const hl_table *table)
{
    return table->buckets > FEWEST_BUCKETS && table->buckets / BUCKETS_PER_ITEM > table->count;
}

static void join_some(hl_table *table)
{
    for (int i = 0; i < MOST_JOINED && is_too_empty(table); i++)
        join(table);
    hl_region_shrink(&table->heads, (size_t)table->buckets * sizeof(uint32_t));
}

/* Spans. */

static hl_span *span_at(const hl_table *table, uint32_t number)
{
    return (hl_span *)(void *)table->spans.base + number;
}

static uint32_t span_of(uint32_t id)
{
    return id / HL_TABLE_SPAN + 1;
}

static uint32_t first_of(uint32_t number)
{
    return (number - 1) * HL_TABLE_SPAN;
}

static void push(hl_table *table, uint32_t *list, uint32_t number)
{
    hl_span *span = span_at(table, number);
    span->previous = 0;
    span->next = *list;
    if (span->next != 0)
        span_at(table, span->next)->previous = number;
    *list = number;
}

static void take_out(hl_table *table, uint32_t *list, uint32_t number)
{
    const hl_span *span = span_at(table, number);
    if (span->previous != 0)
        span_at(table, span->previous)->next = span->next;
    else
        *list = span->next;
    if (span->next != 0)
        span_at(table, span->next)->previous = span->previous;
}

static bool is_full(const hl_table *table, const hl_span *span, uint32_t number)
{
    return span->free == 0 && (span->fresh == HL_TABLE_SPAN || first_of(number) + span->fresh > table->most);
}

static uint32_t *reuse_count_of(const hl_table *table, uint32_t id)
{
    return (uint32_t *)(void *)((char *)hl_table_at(table, id) + table->reuse_count_at);
}

/* Analyses read `used` without the lock. What a snapshot names is in use, and below any value that they see. */
static void set_used(hl_table *table, uint32_t id)
{
    __atomic_store_n(&table->used, id, __ATOMIC_RELAXED);
}

static void become_cold(hl_table *table, uint32_t number)
{
    hl_span *span = span_at(table, number);
    span->cold = true;
    span->free = 0;
    span->fresh = number == 1 ? 1 : 0; /* there is no id 0 */
    push(table, &table->cold, number);
}

static __attribute__((noinline)) hl_status make_span(hl_table *table, uint32_t *number)
{
    size_t ids = ((size_t)table->span_count + 1) * HL_TABLE_SPAN;
    *number = table->span_count + 1;
    if (first_of(*number) > table->most)
        return HL_FULL;
    hl_status status = hl_region_ensure(&table->spans, ((size_t)*number + 1) * sizeof(hl_span));
    if (status == HL_OK)
        status = hl_region_ensure(&table->links, ids * sizeof(hl_link));
    if (status == HL_OK)
        status = table->stable ? make_segment(table, first_of(*number))
                               : hl_region_ensure(&table->items, ids * table->item_size);
    if (status != HL_OK)
        return status;
    table->span_count = *number;
    become_cold(table, *number);
    return HL_OK;
}

static hl_status span_with_room(hl_table *table, uint32_t *number)
{
    *number = table->partial != 0 ? table->partial : table->warm != 0 ? table->warm : table->cold;
    return *number != 0 ? HL_OK : make_span(table, number);
}

static __attribute__((noinline)) void become_partial(hl_table *table, hl_span *span, uint32_t number)
{
    take_out(table, span->cold ? &table->cold : &table->warm, number);
    table->warm_count -= !span->cold;
    span->cold = false;
    push(table, &table->partial, number);
}

static uint32_t take_id(hl_table *table, uint32_t number)
{
    hl_span *span = span_at(table, number);
    if (HL_UNLIKELY(span->used == 0))
        become_partial(table, span, number);
    uint32_t id = span->free;
    if (id != 0) {
        span->free = link_of(table, id)->next;
    } else {
        id = first_of(number) + span->fresh++;
        if (table->reuse_count_at != 0)
            *reuse_count_of(table, id) = span->reuse_count;
    }
    span->used++;
    if (HL_UNLIKELY(is_full(table, span, number)))
        take_out(table, &table->partial, number);
    if (id > table->used)
        set_used(table, id);
    return id;
}

/* The whole pages within [from, from + bytes). */
static void discard(char *from, size_t bytes)
{
    size_t page = hl_os_page(), before = (size_t)(-(uintptr_t)from & (page - 1));
    size_t whole = bytes < before ? 0 : (bytes - before) / page * page;
    if (whole != 0)
        hl_os_discard(from + before, whole);
}

/* A span whose reuse count is near the limit keeps its memory: otherwise its highest count would become the count of
 * all its items. */
static bool may_become_cold(hl_table *table, uint32_t number)
{
    hl_span *span = span_at(table, number);
    if (table->reuse_count_at == 0)
        return true;
    uint32_t first = first_of(number), greatest = span->reuse_count;
    for (uint32_t id = first == 0 ? 1 : first; id < first + span->fresh; id++)
        if (*reuse_count_of(table, id) > greatest)
            greatest = *reuse_count_of(table, id);
    if (greatest > HL_MOST_REUSES / 2)
        return false;
    span->reuse_count = greatest;
    return true;
}

static void give_back(hl_table *table, uint32_t number)
{
    uint32_t first = first_of(number);
    discard(hl_table_at(table, first), (size_t)table->item_size * HL_TABLE_SPAN);
    discard((char *)link_of(table, first), sizeof(hl_link) * HL_TABLE_SPAN);
    become_cold(table, number);
    uint32_t last = span_of(table->used);
    while (last > 1 && span_at(table, last)->cold)
        last--;
    if (last < span_of(table->used))
        set_used(table, first_of(last) + span_at(table, last)->fresh - 1);
}

static void give_id(hl_table *table, uint32_t id)
{
    uint32_t number = span_of(id);
    hl_span *span = span_at(table, number);
    if (HL_UNLIKELY(is_full(table, span, number)))
        push(table, &table->partial, number);
    link_of(table, id)->next = span->free;
    span->free = id;
    if (--span->used != 0)
        return;
    take_out(table, &table->partial, number);
    if (table->warm_count >= MOST_WARM && may_become_cold(table, number)) {
        give_back(table, number);
        return;
    }
    table->warm_count++;
    push(table, &table->warm, number);
}

uint32_t hl_table_seek_span(const hl_table *table, uint32_t id)
{
    uint32_t number = span_of(id), last = span_of(table->used);
    if (span_at(table, number)->used != 0)
        return id;
    do
        number++;
    while (number <= last && span_at(table, number)->used == 0);
    return number <= last ? first_of(number) : 0;
}

void hl_table_clear(hl_table *table)
{
    for (uint32_t number = 1; number <= table->span_count; number++) {
        hl_span *span = span_at(table, number);
        memset(hl_table_at(table, first_of(number)), 0, (size_t)span->fresh * table->item_size);
        *span = (hl_span){0};
    }
    table->count = table->buckets = table->level = table->span_count = 0;
    table->partial = table->warm = table->cold = table->warm_count = 0;
    set_used(table, 0);
}

/* Items. */

hl_status hl_table_add(hl_table *table, uint32_t hash, uint32_t *id)
{
    uint32_t number;
    hl_status status = span_with_room(table, &number);
    if (status == HL_OK && (table->buckets == 0 || table->count >= table->buckets * ITEMS_PER_BUCKET)) {
        hl_status grown = split(table);
        if (table->buckets == 0)
            status = grown; /* later on, a missing bucket only makes the table slower */
    }
    if (status != HL_OK)
        return status;
    *id = take_id(table, number);
    uint32_t *head = &heads(table)[bucket_of(table, hash)];
    *link_of(table, *id) = (hl_link){.hash = hash, .next = *head};
    *head = *id;
    table->count++;
    return HL_OK;
}

void hl_table_remove(hl_table *table, uint32_t id)
{
    hl_link *link = link_of(table, id);
    uint32_t *at = &heads(table)[bucket_of(table, link->hash)];
    while (*at != id)
        at = &link_of(table, *at)->next;
    *at = link->next;
    table->count--;
    if (table->reuse_count_at != 0)
        ++*reuse_count_of(table, id);
    give_id(table, id);
    if (HL_UNLIKELY(is_too_empty(table)))
        join_some(table);
}

size_t hl_table_memory(const hl_table *table)
{
    size_t ids = 0;
    for (uint32_t number = 1; number <= table->span_count; number++)
        ids += span_at(table, number)->cold ? 0 : span_at(table, number)->fresh;
    return ids * (table->item_size + sizeof(hl_link)) + table->buckets * sizeof(uint32_t) +
           (table->span_count + (size_t)1) * sizeof(hl_span);
}
