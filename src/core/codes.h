/* codes.h: what is known about running code: instruction -> location, until its code object dies.
 *
 * After a code object dies, its address may come back, and with it the addresses of its instructions. So everything
 * learnt from a code object is forgotten the moment its block is freed. `code_generation` grows, so that others who
 * remember what an instruction meant can notice.
 *
 * Threading: the ledger's lock.
 */
#ifndef HL_CODES_H
#define HL_CODES_H

#include "linetable.h"
#include "names.h"

typedef uint32_t hl_code_id;

typedef struct {
    uintptr_t address; /* of the code object, which is also its block's */
    hl_string_id file;
    hl_string_id name;
    uint32_t first; /* list of what was learnt of its instructions */
    hl_linetable_place place;
    bool is_ours; /* a function of our Python package: so are its locations (hl_names_set_ours) */
} hl_code;

typedef struct {
    uintptr_t instruction;
    hl_location_id location;
    uint32_t next; /* of the same code object */
} hl_instruction;

/* The last instructions asked for, each in the one place that its address gives it. */
typedef struct {
    uintptr_t instruction;
    hl_location_id location;
} hl_recent;

enum { HL_CODES_RECENT_LOG2 = 10 };

typedef struct {
    hl_table codes;
    hl_table instructions;
    hl_recent *recent;
    uint32_t code_generation;
} hl_codes;

hl_status hl_codes_open(hl_codes *codes) HL_MUST_USE;
void hl_codes_close(hl_codes *codes);
/* Forget all of them, when the name table is cleared too. */
void hl_codes_clear(hl_codes *codes);
size_t hl_codes_memory(const hl_codes *codes);

/* The location of an instruction, borrowed; 0 if it was not learnt. */
static inline hl_location_id hl_codes_location(const hl_codes *codes, uintptr_t instruction);
/* 0 if the code object is not known. */
hl_code_id hl_codes_find(const hl_codes *codes, uintptr_t address);
/* Takes over the caller's references to the strings, whatever the result. */
hl_status hl_codes_add(hl_codes *codes, hl_names *names, uintptr_t address, hl_string_id file, hl_string_id name,
                       hl_code_id *id) HL_MUST_USE;
/* From now on, the location of `line` in the code object's file is that of `instruction`. The result is borrowed. */
hl_status hl_codes_learn(hl_codes *codes, hl_names *names, hl_code_id code, uintptr_t instruction, uint32_t line,
                         hl_location_id *location) HL_MUST_USE;
/* The block at `address` is freed. Returns whether it was a known code object. */
bool hl_codes_forget(hl_codes *codes, hl_names *names, uintptr_t address);

static inline hl_code *hl_codes_at(const hl_codes *codes, hl_code_id id)
{
    return hl_table_at(&codes->codes, id);
}

static inline hl_recent *hl_codes_recent(const hl_codes *codes, uintptr_t instruction)
{
    return codes->recent + ((instruction * 0x9e3779b97f4a7c15u) >> (64 - HL_CODES_RECENT_LOG2));
}

/* The same as hl_codes_location, by search. Remembers the result. */
hl_location_id hl_codes_search(const hl_codes *codes, uintptr_t instruction);

static inline hl_location_id hl_codes_location(const hl_codes *codes, uintptr_t instruction)
{
    const hl_recent *recent = hl_codes_recent(codes, instruction);
    return HL_LIKELY(recent->instruction == instruction) ? recent->location : hl_codes_search(codes, instruction);
}

#endif
