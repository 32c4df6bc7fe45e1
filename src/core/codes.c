/* codes.c: see codes.h. */

#include "codes.h"

enum {
    MOST_CODES = (1 << 22) - 1,
    MOST_INSTRUCTIONS = (1 << 23) - 1,
    RECENT_BYTES = sizeof(hl_recent) << HL_CODES_RECENT_LOG2,
};

static uint32_t hash_address(uintptr_t address)
{
    return (uint32_t)hl_mix(address);
}

hl_status hl_codes_open(hl_codes *codes)
{
    *codes = (hl_codes){.code_generation = 1};
    hl_table_open(&codes->codes, sizeof(hl_code), MOST_CODES, false);
    hl_table_open(&codes->instructions, sizeof(hl_instruction), MOST_INSTRUCTIONS, false);
    codes->recent = hl_os_map(RECENT_BYTES);
    return codes->recent == NULL ? HL_NO_MEMORY : HL_OK;
}

void hl_codes_close(hl_codes *codes)
{
    if (codes->recent != NULL)
        hl_os_unmap(codes->recent, RECENT_BYTES);
    codes->recent = NULL;
    hl_table_close(&codes->codes);
    hl_table_close(&codes->instructions);
}

void hl_codes_clear(hl_codes *codes)
{
    hl_table_clear(&codes->codes);
    hl_table_clear(&codes->instructions);
    hl_os_discard(codes->recent, RECENT_BYTES);
}

size_t hl_codes_memory(const hl_codes *codes)
{
    return hl_table_memory(&codes->codes) + hl_table_memory(&codes->instructions) +
           hl_os_resident(codes->recent, RECENT_BYTES);
}

hl_location_id hl_codes_search(const hl_codes *codes, uintptr_t instruction)
{
    const hl_table *table = &codes->instructions;
    for (uint32_t at = hl_table_first(table, hash_address(instruction)); at != 0; at = hl_table_link(table, at)->next) {
        const hl_instruction *known = hl_table_at(table, at);
        if (known->instruction == instruction) {
            *hl_codes_recent(codes, instruction) = (hl_recent){instruction, known->location};
            return known->location;
        }
    }
    return 0;
}

hl_code_id hl_codes_find(const hl_codes *codes, uintptr_t address)
{
    const hl_table *table = &codes->codes;
    for (uint32_t at = hl_table_first(table, hash_address(address)); at != 0; at = hl_table_link(table, at)->next)
        if (hl_codes_at(codes, at)->address == address)
            return at;
    return 0;
}

hl_status hl_codes_add(hl_codes *codes, hl_names *names, uintptr_t address, hl_string_id file, hl_string_id name,
                       hl_code_id *id)
{
    hl_status status = hl_table_add(&codes->codes, hash_address(address), id);
    if (status != HL_OK) {
        hl_names_release_string(names, file);
        hl_names_release_string(names, name);
        return status;
    }
    *(hl_code *)hl_table_at(&codes->codes, *id) = (hl_code){.address = address, .file = file, .name = name};
    return HL_OK;
}

hl_status hl_codes_learn(hl_codes *codes, hl_names *names, hl_code_id code, uintptr_t instruction, uint32_t line,
                         hl_location_id *location)
{
    hl_code *owner = hl_table_at(&codes->codes, code);
    hl_status status = hl_names_location(names, owner->file, line, owner->name, location);
    if (status != HL_OK)
        return status;
    uint32_t id;
    status = hl_table_add(&codes->instructions, hash_address(instruction), &id);
    if (status != HL_OK) {
        hl_names_release_location(names, *location);
        return status;
    }
    *(hl_instruction *)hl_table_at(&codes->instructions, id) =
        (hl_instruction){.instruction = instruction, .location = *location, .next = owner->first};
    owner->first = id;
    return HL_OK;
}

static void forget(hl_codes *codes, hl_names *names, hl_code_id id)
{
    hl_code *code = hl_table_at(&codes->codes, id);
    for (uint32_t at = code->first; at != 0;) {
        hl_instruction *known = hl_table_at(&codes->instructions, at);
        uint32_t next = known->next;
        *hl_codes_recent(codes, known->instruction) = (hl_recent){0};
        hl_names_release_location(names, known->location);
        hl_table_remove(&codes->instructions, at);
        at = next;
    }
    hl_names_release_string(names, code->file);
    hl_names_release_string(names, code->name);
    code->address = 0;
    hl_table_remove(&codes->codes, id);
    if (++codes->code_generation == 0)
        codes->code_generation = 1; /* 0 means no generation */
}

bool hl_codes_forget(hl_codes *codes, hl_names *names, uintptr_t address)
{
    hl_code_id id = hl_codes_find(codes, address);
    if (id != 0)
        forget(codes, names, id);
    return id != 0;
}
