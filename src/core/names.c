/* names.c: interning, references, pins. See names.h.
 *
 * References run downwards only (site -> stack -> location -> string), so a thing is reclaimed when its count falls
 * to zero. There is one exception: a dead stack that a pinned snapshot may name waits in limbo and keeps what it
 * refers to.
 */

#include "names.h"

#include <string.h>

enum {
    MOST_STRINGS = (1 << 22) - 1,
    MOST_LOCATIONS = (1 << 23) - 1,
    MOST_STACKS = (1 << 24) - 1,
    MOST_PRIVATE = (1 << 30) - 1, /* of each */
    MOST_REFS = 1 << 30,          /* of a string or location that is found again */
};
/* The references of a location stay below 2^32: MOST_REFS, one for each frame, and one for each location of its line.
 * So do those of a string: MOST_REFS, and two for each location. */
_Static_assert((uint64_t)MOST_REFS + HL_NAMES_MOST_FRAMES + MOST_PRIVATE <= UINT32_MAX, "references may wrap");
_Static_assert((uint64_t)MOST_REFS + UINT64_C(2) * MOST_PRIVATE <= UINT32_MAX, "references may wrap");

hl_lock hl_names_pin_lock;

hl_status hl_names_new(bool stable, hl_names **names)
{
    hl_names *made = hl_os_alloc(1, sizeof *made);
    if (made == NULL)
        return HL_NO_MEMORY;
    made->holders = 1;
    made->pins_made = 1;
    made->seed = stable ? 0 : hl_os_random() | 1;
    hl_table_open(&made->strings, sizeof(hl_string), stable ? MOST_STRINGS : MOST_PRIVATE, stable);
    hl_table_open(&made->locations, sizeof(hl_location), stable ? MOST_LOCATIONS : MOST_PRIVATE, stable);
    hl_table_open(&made->stacks, sizeof(hl_stack), stable ? MOST_STACKS : MOST_PRIVATE, stable);
    hl_status status = hl_pool_new(&made->pool);
    if (status == HL_OK)
        *names = made;
    else
        hl_names_drop(made);
    return status;
}

hl_names *hl_names_hold(hl_names *names)
{
    atomic_fetch_add_explicit(&names->holders, 1, memory_order_relaxed);
    return names;
}

void hl_names_drop(hl_names *names)
{
    if (atomic_fetch_sub_explicit(&names->holders, 1, memory_order_acq_rel) != 1)
        return;
    hl_table_close(&names->strings);
    hl_table_close(&names->locations);
    hl_table_close(&names->stacks);
    if (names->pool != NULL)
        hl_pool_free_all(names->pool);
    hl_region_close(&names->pins);
    hl_os_free(names);
}

bool hl_names_clear(hl_names *names)
{
    hl_table *tables[] = {&names->strings, &names->locations, &names->stacks};
    enum { TABLES = sizeof tables / sizeof *tables };
    bool may = atomic_load_explicit(&names->holders, memory_order_acquire) == 1;
    for (int i = 0; i < TABLES; i++)
        may = may && hl_table_is_small(tables[i]);
    if (!may)
        return false;
    for (int i = 0; i < TABLES; i++)
        hl_table_clear(tables[i]);
    hl_pool_clear(names->pool);
    names->frames = 0;
    names->limbo_first = names->limbo_last = 0;
    return true;
}

/* Strings. */

hl_status hl_names_string(hl_names *names, const char *bytes, size_t length, hl_string_id *id)
{
    if (length > UINT32_MAX)
        return HL_FULL;
    uint32_t hash = hl_hash_bytes(names->seed, bytes, length);
    for (uint32_t at = hl_table_first(&names->strings, hash); at != 0; at = hl_table_link(&names->strings, at)->next) {
        hl_string *string = hl_table_at(&names->strings, at);
        if (hl_table_link(&names->strings, at)->hash == hash && string->length == length &&
            memcmp(string->bytes, bytes, length) == 0) {
            if (string->refs >= MOST_REFS)
                return HL_FULL;
            string->refs++;
            *id = at;
            return HL_OK;
        }
    }
    char *copy = hl_pool_alloc(names->pool, length);
    if (copy == NULL)
        return HL_NO_MEMORY;
    hl_status status = hl_table_add(&names->strings, hash, id);
    if (status != HL_OK) {
        hl_pool_free(names->pool, copy, length);
        return status;
    }
    memcpy(copy, bytes, length);
    *(hl_string *)hl_table_at(&names->strings, *id) = (hl_string){.bytes = copy, .length = (uint32_t)length, .refs = 1};
    return HL_OK;
}

void hl_names_release_string(hl_names *names, hl_string_id id)
{
    hl_string *string = hl_table_at(&names->strings, id);
    if (--string->refs != 0)
        return;
    hl_pool_free(names->pool, string->bytes, string->length);
    hl_table_remove(&names->strings, id);
}

/* Locations. The first location with a (file, line) represents the line and is found by these two. The others with
 * that line keep it alive, and are found by it and their function. */

hl_status hl_names_location(hl_names *names, hl_string_id file, uint32_t line, hl_string_id name, hl_location_id *id)
{
    uint32_t hash = (uint32_t)hl_mix(names->seed ^ ((uint64_t)file << 32 | line));
    hl_location_id line_id = 0, found = 0;
    for (uint32_t at = hl_table_first(&names->locations, hash); at != 0;
         at = hl_table_link(&names->locations, at)->next) {
        const hl_location *location = hl_table_at(&names->locations, at);
        if (location->file == file && location->line == line && location->line_id == at) {
            line_id = at;
            found = location->name == name ? at : 0;
            break;
        }
    }
    if (line_id != 0 && found == 0) {
        hash = (uint32_t)hl_mix(names->seed ^ ((uint64_t)line_id << 32 | name));
        for (found = hl_table_first(&names->locations, hash); found != 0;
             found = hl_table_link(&names->locations, found)->next) {
            const hl_location *location = hl_table_at(&names->locations, found);
            if (location->line_id == line_id && location->name == name)
                break;
        }
    }
    if (found != 0) {
        hl_location *location = hl_table_at(&names->locations, found);
        if (location->refs >= MOST_REFS)
            return HL_FULL;
        location->refs++;
        *id = found;
        return HL_OK;
    }
    hl_status status = hl_table_add(&names->locations, hash, id);
    if (status != HL_OK)
        return status;
    hl_location *made = hl_table_at(&names->locations, *id);
    uint32_t content = hl_table_link(&names->strings, file)->hash * 31 + line; /* all but the uppermost bit is kept */
    if (name != 0)
        content = content * 31 + hl_table_link(&names->strings, name)->hash;
    *made = (hl_location){.file = file,
                          .name = name,
                          .line = line,
                          .line_id = line_id == 0 ? *id : line_id,
                          .refs = 1,
                          .content = content};
    ((hl_string *)hl_table_at(&names->strings, file))->refs++;
    if (name != 0)
        ((hl_string *)hl_table_at(&names->strings, name))->refs++;
    if (line_id != 0)
        ((hl_location *)hl_table_at(&names->locations, line_id))->refs++;
    return HL_OK;
}

void hl_names_release_location(hl_names *names, hl_location_id id)
{
    hl_location *location = hl_table_at(&names->locations, id);
    if (--location->refs != 0)
        return;
    hl_names_release_string(names, location->file);
    if (location->name != 0)
        hl_names_release_string(names, location->name);
    hl_location_id line_id = location->line_id;
    hl_table_remove(&names->locations, id);
    if (line_id != id)
        hl_names_release_location(names, line_id);
}

/* Stacks. */

hl_status hl_names_stack(hl_names *names, const hl_location_id *locations, uint32_t depth, uint32_t total,
                         hl_stack_id *id)
{
    /* A polynomial has collisions that no seed prevents. So only the ledger uses it: nobody can forge its stacks. */
    uint64_t hash = names->seed;
    bool is_private = names->seed != 0;
    for (uint32_t i = depth; i > 0; i--)
        hash = is_private ? hl_mix(hash ^ locations[i - 1]) : hash * HL_STACK_BASE + locations[i - 1];
    return hl_names_stack_hashed(names, hash, locations, depth, total, id);
}

hl_status hl_names_stack_hashed(hl_names *names, uint64_t full_hash, const hl_location_id *locations, uint32_t depth,
                                uint32_t total, hl_stack_id *id)
{
    uint32_t hash = (uint32_t)hl_mix(full_hash);
    size_t bytes = (size_t)depth * sizeof *locations;
    for (uint32_t at = hl_table_first(&names->stacks, hash); at != 0; at = hl_table_link(&names->stacks, at)->next) {
        hl_stack *stack = hl_table_at(&names->stacks, at);
        /* A dead stack in limbo stays as its pins know it. If the same stack comes again, it gets a new id. */
        if (hl_table_link(&names->stacks, at)->hash == hash && stack->depth == depth && stack->refs != 0 &&
            memcmp(stack->locations, locations, bytes) == 0) {
            stack->refs++;
            *id = at;
            return HL_OK;
        }
    }
    if (depth > HL_NAMES_MOST_FRAMES - names->frames)
        return HL_FULL;
    hl_location_id *copy = hl_pool_alloc(names->pool, bytes);
    if (copy == NULL)
        return HL_NO_MEMORY;
    hl_status status = hl_table_add(&names->stacks, hash, id);
    if (status != HL_OK) {
        hl_pool_free(names->pool, copy, bytes);
        return status;
    }
    memcpy(copy, locations, bytes);
    uint64_t content = depth;
    for (uint32_t i = 0; i < depth; i++) {
        hl_location *location = hl_table_at(&names->locations, locations[i]);
        location->refs++;
        content = content * HL_STACK_BASE + location->content;
    }
    *(hl_stack *)hl_table_at(&names->stacks, *id) = (hl_stack){
        .locations = copy, .depth = depth, .total = total, .refs = 1, .born = names->pins_made, .content = content};
    names->frames += depth;
    names->stirred = true;
    return HL_OK;
}

void hl_names_set_ours(hl_names *names, hl_location_id id)
{
    ((hl_location *)hl_table_at(&names->locations, id))->is_ours = true;
}

void hl_names_set_total(hl_names *names, hl_stack_id id, uint32_t total)
{
    /* Readers of a snapshot take no lock, so the store is atomic. */
    __atomic_store_n(&((hl_stack *)hl_table_at(&names->stacks, id))->total, total, __ATOMIC_RELAXED);
}

static void forget_stack(hl_names *names, hl_stack_id id)
{
    hl_stack *stack = hl_table_at(&names->stacks, id);
    for (uint32_t i = 0; i < stack->depth; i++)
        hl_names_release_location(names, stack->locations[i]);
    names->frames -= stack->depth;
    hl_pool_free(names->pool, stack->locations, (size_t)stack->depth * sizeof *stack->locations);
    hl_table_remove(&names->stacks, id);
}

static hl_pin *pin_at(const hl_names *names, uint32_t place)
{
    return (hl_pin *)(void *)names->pins.base + place;
}

/* The place of the first pin with a number above `number`. */
static uint32_t first_pin_after(const hl_names *names, uint64_t number)
{
    uint32_t low = 0, high = names->pin_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (pin_at(names, middle)->number > number)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Was any pin made while the stack was alive? */
static bool is_pinned(hl_names *names, const hl_stack *stack)
{
    hl_lock_take(&hl_names_pin_lock);
    uint32_t at = first_pin_after(names, stack->born);
    bool found = at < names->pin_count && pin_at(names, at)->number <= stack->died;
    hl_lock_give(&hl_names_pin_lock);
    return found;
}

void hl_names_release_stack(hl_names *names, hl_stack_id id)
{
    hl_stack *stack = hl_table_at(&names->stacks, id);
    if (--stack->refs != 0)
        return;
    stack->died = names->pins_made;
    names->stirred = true;
    if (!is_pinned(names, stack)) {
        forget_stack(names, id);
        return;
    }
    stack->limbo = 0;
    if (names->limbo_first == 0)
        names->limbo_first = id;
    else
        ((hl_stack *)hl_table_at(&names->stacks, names->limbo_last))->limbo = id;
    names->limbo_last = id;
}

uint32_t hl_names_sweep(hl_names *names, uint32_t most)
{
    uint32_t swept = 0;
    hl_stack_id kept = 0; /* the first that stays: when it comes round again, all have been checked */
    for (; most > 0 && names->limbo_first != 0 && names->limbo_first != kept; most--) {
        hl_stack_id id = names->limbo_first;
        hl_stack *stack = hl_table_at(&names->stacks, id);
        names->limbo_first = stack->limbo;
        if (!is_pinned(names, stack)) {
            forget_stack(names, id);
            swept++;
            continue;
        }
        if (kept == 0)
            kept = id;
        stack->limbo = 0; /* to the end of the queue */
        if (names->limbo_first == 0)
            names->limbo_first = id;
        else
            ((hl_stack *)hl_table_at(&names->stacks, names->limbo_last))->limbo = id;
        names->limbo_last = id;
    }
    return swept;
}

/* Pins. */

uint64_t hl_names_pin(hl_names *names)
{
    uint64_t pin = 0;
    hl_lock_take(&hl_names_pin_lock);
    hl_pin *last = names->pin_count > 0 ? pin_at(names, names->pin_count - 1) : NULL;
    if (last != NULL && last->number == names->pins_made && !names->stirred) {
        last->held++; /* nothing has changed since */
        pin = names->pins_made;
    } else if (hl_region_ensure(&names->pins, (names->pin_count + 1) * sizeof(hl_pin)) == HL_OK) {
        pin = ++names->pins_made;
        *pin_at(names, names->pin_count++) = (hl_pin){.number = pin, .held = 1};
        names->stirred = false;
    }
    hl_lock_give(&hl_names_pin_lock);
    return pin;
}

void hl_names_pin_again(hl_names *names, uint64_t pin)
{
    hl_lock_take(&hl_names_pin_lock);
    pin_at(names, first_pin_after(names, pin - 1))->held++;
    hl_lock_give(&hl_names_pin_lock);
}

void hl_names_unpin(hl_names *names, uint64_t pin)
{
    hl_lock_take(&hl_names_pin_lock);
    uint32_t at = first_pin_after(names, pin - 1);
    if (--pin_at(names, at)->held == 0) {
        names->pin_count--;
        memmove(pin_at(names, at), pin_at(names, at + 1), (names->pin_count - at) * sizeof(hl_pin));
    }
    hl_lock_give(&hl_names_pin_lock);
}

size_t hl_names_memory(const hl_names *names)
{
    return hl_table_memory(&names->strings) + hl_table_memory(&names->locations) + hl_table_memory(&names->stacks) +
           hl_pool_memory(names->pool);
}
