/* linetable.h: from an instruction's offset to its line, by CPython's location table (co_linetable, 3.11 and later).
 *
 * The table's bytes are immutable for the life of a code object, so this is safe without the GIL, where asking the
 * interpreter is not. Any bytes are safe to decode: a truncated or wrong table gives 0, never a read outside it.
 */
#ifndef HL_LINETABLE_H
#define HL_LINETABLE_H

#include <stddef.h>
#include <stdint.h>

/* The line of the instruction at byte `offset` of the bytecode, or 0 when it has none. The same answer as
 * PyCode_Addr2Line gives, but for its -1 and any negative line, which are 0 here. */
uint32_t hl_linetable_line(const uint8_t *table, size_t length, int first_line, size_t offset);

#endif
