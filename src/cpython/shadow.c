/* shadow.c: the memory of the shadow. Its operations are in shadow_sync.h, which each frames_3XX.c compiles. */

#include "shadow.h"

/* The number of frames kept below the window. With them, a return from deep recursion finds its callers again. */
enum { BELOW = 4096 };

hl_status hl_shadow_open(hl_shadow *shadow, uint32_t window)
{
    size_t page = hl_os_page(), room = (size_t)window + BELOW;
    size_t each = sizeof(hl_seen) + sizeof(hl_context) + sizeof(hl_location_id) + sizeof(uint64_t);
    size_t bytes =
        room * each + sizeof(uint64_t) + window * sizeof(void *) + (sizeof(uint32_t) << HL_SHADOW_PLACES_LOG2);
    *shadow = (hl_shadow){
        .anywhere = window == 1, .window = window, .room = (uint32_t)room, .top = (uint32_t)room, .base_power = 1};
    shadow->bytes = (bytes + page - 1) / page * page;
    char *memory = hl_os_map(shadow->bytes);
    if (memory == NULL)
        return HL_NO_MEMORY;
    shadow->seen = (hl_seen *)(void *)memory;
    shadow->hashes = (uint64_t *)(void *)(shadow->seen + room);
    shadow->pending = (const void **)(void *)(shadow->hashes + room + 1);
    shadow->locations = (hl_location_id *)(void *)(shadow->pending + window);
    shadow->contexts = shadow->locations + room;
    shadow->places = shadow->contexts + room;
    for (uint32_t i = 0; i < window; i++)
        shadow->base_power *= HL_STACK_BASE;
    return HL_OK;
}

void hl_shadow_close(hl_shadow *shadow)
{
    if (shadow->seen != NULL)
        hl_os_unmap(shadow->seen, shadow->bytes);
    *shadow = (hl_shadow){0};
}
