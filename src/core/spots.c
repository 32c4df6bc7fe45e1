/* spots.c: see spots.h. */

#include "spots.h"

/* 4,096 spots in 128 KB, or four times as many. A larger table would be too far away for the processor. With more
 * stacks than this, following the order of the sites is faster (hl_ledger_guess). */
enum { FEWEST = 12, MOST = 14, STEP = 2 };

enum { FIRST = 1 };

/* When only this many numbers are left, they begin again. One look at a stack never needs so many. Neither do all code
 * objects that die between two looks. */
#define LEFT (UINT32_C(1) << 24)

static void begin(hl_spots *spots)
{
    spots->root = spots->last_context = FIRST;
    hl_spots_set_callers(spots, FIRST);
}

static uint32_t log2_of(const hl_spots *spots)
{
    return (uint32_t)__builtin_ctzll(spots->mask / sizeof(hl_spot) + 1);
}

static size_t spot_bytes(uint32_t log2)
{
    return sizeof(hl_spot) << log2;
}

static size_t call_bytes(uint32_t log2)
{
    return sizeof(hl_call) << log2;
}

/* Replace the tables with empty ones of another size. False: no memory, and nothing has changed. */
static bool set_size(hl_spots *spots, uint32_t log2, bool alone)
{
    hl_spot *made = hl_os_map(spot_bytes(log2));
    hl_call *calls = alone ? NULL : hl_os_map(call_bytes(log2));
    if (made == NULL || (calls == NULL && !alone)) {
        if (made != NULL)
            hl_os_unmap(made, spot_bytes(log2));
        if (calls != NULL)
            hl_os_unmap(calls, call_bytes(log2));
        return false;
    }
    hl_spots was = *spots;
    if (was.spots != NULL)
        hl_os_unmap(was.spots, spot_bytes(log2_of(&was)));
    if (was.calls != NULL)
        hl_os_unmap(was.calls, call_bytes(log2_of(&was)));
    spots->spots = made;
    spots->calls = calls;
    spots->mask = spot_bytes(log2) - sizeof(hl_spot);
    return true;
}

hl_status hl_spots_open(hl_spots *spots, bool alone)
{
    *spots = (hl_spots){0};
    begin(spots);
    return set_size(spots, FEWEST, alone) ? HL_OK : HL_NO_MEMORY;
}

void hl_spots_close(hl_spots *spots)
{
    if (spots->spots != NULL)
        hl_os_unmap(spots->spots, spot_bytes(log2_of(spots)));
    if (spots->calls != NULL)
        hl_os_unmap(spots->calls, call_bytes(log2_of(spots)));
    *spots = (hl_spots){0};
}

void hl_spots_clear(hl_spots *spots)
{
    hl_os_discard(spots->spots, spot_bytes(log2_of(spots)));
    if (spots->calls != NULL)
        hl_os_discard(spots->calls, call_bytes(log2_of(spots)));
}

size_t hl_spots_memory(const hl_spots *spots)
{
    size_t calls = spots->calls == NULL ? 0 : hl_os_resident(spots->calls, call_bytes(log2_of(spots)));
    return hl_os_resident(spots->spots, spot_bytes(log2_of(spots))) + calls;
}

static void resize(hl_spots *spots, uint32_t log2)
{
    spots->missed = 0;
    (void)set_size(spots, log2, spots->calls == NULL);
}

void hl_spots_miss(hl_spots *spots, size_t sites, bool is_new)
{
    uint32_t log2 = log2_of(spots), places = UINT32_C(1) << log2;
    if (is_new)
        spots->missed -= spots->missed != 0;
    else if (HL_UNLIKELY(sites >= places && ++spots->missed >= places / 2 && log2 < MOST))
        resize(spots, log2 + STEP);
}

void hl_spots_shrink(hl_spots *spots, size_t sites)
{
    uint32_t log2 = log2_of(spots);
    while (log2 > FEWEST && sites <= (size_t)1 << log2 >> (STEP + 1)) /* the smaller table has room for twice as many */
        log2 -= STEP;
    if (log2 != log2_of(spots))
        resize(spots, log2);
}

void hl_spots_void(hl_spots *spots)
{
    spots->root = ++spots->last_context;
    if (spots->calls == NULL)
        hl_spots_set_callers(spots, spots->root);
}

bool hl_spots_begin_again(hl_spots *spots)
{
    if (HL_LIKELY(spots->last_context < UINT32_MAX - LEFT))
        return false;
    hl_spots_clear(spots);
    begin(spots);
    return true;
}
