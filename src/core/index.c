/* index.c: see index.h. */

#include "index.h"

/* How many items a bucket holds on average before one is split. */
enum { ITEMS_PER_BUCKET = 2, FEWEST_STABLE_IDS = 4096 };

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

hl_status hl_table_open(hl_table *table, uint32_t item_size, uint32_t most, bool stable)
{
    *table = (hl_table){.item_size = item_size, .most = most};
    size_t ids = (size_t)most + 1;
    hl_status status = hl_region_open(&table->items, ids * item_size, FEWEST_STABLE_IDS * (size_t)item_size, stable);
    if (status == HL_OK)
        status = hl_region_open(&table->links, ids * sizeof(hl_link), FEWEST_STABLE_IDS * sizeof(hl_link), stable);
    if (status == HL_OK)
        status = hl_region_open(&table->heads, ids * sizeof(uint32_t), FEWEST_STABLE_IDS * sizeof(uint32_t), stable);
    if (status != HL_OK)
        hl_table_close(table);
    return status;
}

void hl_table_close(hl_table *table)
{
    hl_region_close(&table->items);
    hl_region_close(&table->links);
    hl_region_close(&table->heads);
    *table = (hl_table){0};
}

/* One step of linear hashing: bucket `buckets` comes into being and takes from its buddy what belongs to it. */
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

static hl_status next_id(hl_table *table, uint32_t *id)
{
    if (table->free_ids != 0) {
        *id = table->free_ids;
        return HL_OK;
    }
    if (table->used == table->most)
        return HL_FULL;
    size_t ids = (size_t)table->used + 2;
    hl_status status = hl_region_ensure(&table->items, ids * table->item_size);
    if (status == HL_OK)
        status = hl_region_ensure(&table->links, ids * sizeof(hl_link));
    *id = table->used + 1;
    return status;
}

hl_status hl_table_add(hl_table *table, uint32_t hash, uint32_t *id)
{
    uint32_t taken;
    hl_status status = next_id(table, &taken);
    if (status == HL_OK && (table->buckets == 0 || table->count >= table->buckets * ITEMS_PER_BUCKET)) {
        hl_status grown = split(table);
        if (table->buckets == 0)
            status = grown; /* later on, a bucket too few is only slower */
    }
    if (status != HL_OK)
        return status;
    if (taken == table->free_ids)
        table->free_ids = link_of(table, taken)->next;
    else
        table->used = taken;
    uint32_t *head = &heads(table)[bucket_of(table, hash)];
    *link_of(table, taken) = (hl_link){.hash = hash, .next = *head};
    *head = taken;
    table->count++;
    *id = taken;
    return HL_OK;
}

void hl_table_remove(hl_table *table, uint32_t id)
{
    hl_link *link = link_of(table, id);
    uint32_t *at = &heads(table)[bucket_of(table, link->hash)];
    while (*at != id)
        at = &link_of(table, *at)->next;
    *at = link->next;
    link->next = table->free_ids;
    table->free_ids = id;
    table->count--;
}

size_t hl_table_memory(const hl_table *table)
{
    return table->items.committed + table->links.committed + table->heads.committed;
}
