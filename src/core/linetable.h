/* linetable.h: from an instruction's offset to its line, by CPython's location table (co_linetable, 3.11 and later).
 *
 * The bytes of the table do not change during the life of a code object. So this is safe without the GIL, and asking
 * the interpreter is not. Any bytes are safe to decode: a truncated or wrong table gives 0, and is never read past
 * its end.
 */
#ifndef HL_LINETABLE_H
#define HL_LINETABLE_H

#include <stddef.h>
#include <stdint.h>

/* Where the last reading stopped. The next reading of the same table usually asks for a later instruction and
 * continues from there. Otherwise a function of ten thousand lines would be read ten thousand times. Begins as zeros.
 */
typedef struct {
    size_t at;      /* the entry found, as an offset into the table */
    size_t covered; /* bytes of bytecode that the entries before it cover */
    int64_t delta;  /* the line they lead to, minus the first */
} hl_linetable_place;

/* The line of the instruction at byte `offset` of the bytecode, or 0 if it has none. The result is that of
 * PyCode_Addr2Line, except that -1 and any negative line are 0 here. */
uint32_t hl_linetable_line(const uint8_t *table, size_t length, int first_line, size_t offset,
                           hl_linetable_place *place);

#endif
