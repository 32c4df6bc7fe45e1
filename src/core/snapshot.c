/* snapshot.c: see snapshot.h. */

#include "snapshot.h"

const char *const hl_moment_names[HL_MOMENTS] = {
    [HL_LIVE] = "live",
    [HL_PEAK] = "peak",
    [HL_ALLOCATED] = "allocated",
};

static _Atomic size_t bytes_alive;

/* From this size on, rows have their own pages. A million rows would otherwise fault in page by page, which takes
 * longer than filling them. */
enum { OWN_PAGES_FROM = 4 << 20 };

static size_t bytes_of_pages(size_t room)
{
    size_t bytes = room * sizeof(hl_row), page = hl_os_page();
    return bytes < OWN_PAGES_FROM ? 0 : (bytes + page - 1) / page * page;
}

hl_status hl_snapshot_new(hl_names *names, size_t rows, hl_snapshot **snapshot)
{
    hl_snapshot *made = hl_os_alloc(1, sizeof *made);
    if (made == NULL)
        return HL_NO_MEMORY;
    size_t pages = bytes_of_pages(rows);
    made->rows = pages != 0 ? hl_os_map_dense(pages) : hl_os_alloc(rows, sizeof *made->rows);
    if (made->rows == NULL) {
        hl_os_free(made);
        return HL_NO_MEMORY;
    }
    made->holders = 1;
    made->room = rows;
    made->names = hl_names_hold(names);
    *snapshot = made;
    return HL_OK;
}

hl_status hl_snapshot_derive(const hl_snapshot *from, size_t rows, hl_snapshot **snapshot)
{
    hl_status status = hl_snapshot_new(from->names, rows, snapshot);
    if (status != HL_OK)
        return status;
    (*snapshot)->moment = from->moment;
    (*snapshot)->nframe = from->nframe;
    (*snapshot)->origins = from->origins;
    if (from->pin != 0)
        hl_names_pin_again(from->names, from->pin);
    (*snapshot)->pin = from->pin;
    return HL_OK;
}

void hl_snapshot_seal(hl_snapshot *snapshot, size_t row_count)
{
    uint64_t blocks = 0, bytes = 0;
    for (size_t i = 0; i < row_count; i++) {
        blocks += snapshot->rows[i].live;
        bytes += snapshot->rows[i].size * snapshot->rows[i].live;
    }
    hl_snapshot_seal_summed(snapshot, row_count, blocks, bytes);
}

void hl_snapshot_seal_summed(hl_snapshot *snapshot, size_t row_count, uint64_t blocks, uint64_t bytes)
{
    snapshot->row_count = row_count;
    snapshot->blocks = blocks;
    snapshot->bytes = bytes;
    atomic_fetch_add_explicit(&bytes_alive, row_count * sizeof(hl_row), memory_order_relaxed);
}

hl_snapshot *hl_snapshot_hold(hl_snapshot *snapshot)
{
    atomic_fetch_add_explicit(&snapshot->holders, 1, memory_order_relaxed);
    return snapshot;
}

static void free_snapshot(hl_snapshot *snapshot)
{
    if (snapshot->pin != 0)
        hl_names_unpin(snapshot->names, snapshot->pin);
    hl_names_drop(snapshot->names);
    atomic_fetch_sub_explicit(&bytes_alive, snapshot->row_count * sizeof(hl_row), memory_order_relaxed);
    size_t pages = bytes_of_pages(snapshot->room);
    if (pages != 0)
        hl_os_unmap(snapshot->rows, pages);
    else
        hl_os_free(snapshot->rows);
    hl_os_free(snapshot);
}

void hl_snapshot_drop_later(hl_snapshot *snapshot, hl_snapshot **list)
{
    if (atomic_fetch_sub_explicit(&snapshot->holders, 1, memory_order_acq_rel) != 1)
        return;
    snapshot->next_dropped = *list;
    *list = snapshot;
}

void hl_snapshot_free_all(hl_snapshot *list)
{
    while (list != NULL) {
        hl_snapshot *next = list->next_dropped;
        free_snapshot(list);
        list = next;
    }
}

void hl_snapshot_drop(hl_snapshot *snapshot)
{
    hl_snapshot *list = NULL;
    hl_snapshot_drop_later(snapshot, &list);
    hl_snapshot_free_all(list);
}

size_t hl_snapshot_memory(void)
{
    return atomic_load_explicit(&bytes_alive, memory_order_relaxed);
}
