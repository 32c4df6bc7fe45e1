/* linetable.h: from an instruction's offset to its line, by CPython's location table (co_linetable, 3.11 and later).
 *
 * The table's bytes are immutable for the life of a code object, so this is safe without the GIL, where asking the
 * interpreter is not. Any bytes are safe to decode: a truncated or wrong table gives 0, never a read outside it.
 */
#ifndef HL_LINETABLE_H
#define HL_LINETABLE_H

#include <stddef.h>
#include <stdint.h>

/* Where the last reading stopped, so that the next one of the same table, which mostly asks for a later instruction, goes
 * on from there: else a function of ten thousand lines would be read ten thousand times. Begins as zeros. */
typedef struct {
    size_t at;      /* the entry found, as an offset into the table */
    size_t covered; /* bytes of bytecode that the entries before it stand for */
    int64_t delta;  /* the line they lead to, less the first */
} hl_linetable_place;

/* The line of the instruction at byte `offset` of the bytecode, or 0 when it has none. The same answer as
 * PyCode_Addr2Line gives, but for its -1 and any negative line, which are 0 here. */
uint32_t hl_linetable_line(const uint8_t *table, size_t length, int first_line, size_t offset,
                           hl_linetable_place *place);

#endif
