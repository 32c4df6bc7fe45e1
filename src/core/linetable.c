/* linetable.c: CPython's location table, read up to one instruction. See linetable.h.
 *
 *     table = entry entry ...       entry = 1 form:4 length-1:3 | payload, no byte of which has its top bit set
 *
 * An entry covers 1 to 8 code units of two bytes. Lines are deltas to the previous entry, starting at the first line
 * of the code object. An entry without a line does not affect those after it. The payload of the forms:
 *
 *     0-9    one byte of columns, same line          13   svarint line delta, no columns
 *     10-12  two bytes of columns, line + form - 10  14   svarint line delta, then three varints
 *                                                    15   nothing: no line
 *
 * A varint has six bits per byte, the lowest first. Bit 6 is set in all bytes but the last. An svarint has its sign
 * in the lowest bit.
 */

#include "linetable.h"

#include <stdbool.h>

enum { FORM_ONE_LINE = 10, FORM_NO_COLUMNS = 13, FORM_LONG = 14, FORM_NONE = 15 };

/* Read the svarint at `at`. Returns false if it does not end before `end` or does not fit the compiler's int. */
static bool read_svarint(const uint8_t *at, const uint8_t *end, int64_t *value)
{
    uint64_t bits = 0;
    for (unsigned shift = 0; at < end && shift < 36; shift += 6, at++) {
        bits |= (uint64_t)(*at & 0x3f) << shift;
        if ((*at & 0x40) == 0) {
            *value = (bits & 1) != 0 ? -(int64_t)(bits >> 1) : (int64_t)(bits >> 1);
            return true;
        }
    }
    return false;
}

uint32_t hl_linetable_line(const uint8_t *table, size_t length, int first_line, size_t offset,
                           hl_linetable_place *place)
{
    if (offset < place->covered)
        *place = (hl_linetable_place){0};
    const uint8_t *at = table + place->at, *end = table + length;
    size_t covered = place->covered;
    int64_t line = first_line + place->delta;
    while (at < end) {
        *place = (hl_linetable_place){.at = (size_t)(at - table), .covered = covered, .delta = line - first_line};
        uint8_t head = *at++;
        if ((head & 0x80) == 0)
            return 0;
        unsigned form = (head >> 3) & 15;
        int64_t delta = 0;
        if (form == FORM_NO_COLUMNS || form == FORM_LONG) {
            if (!read_svarint(at, end, &delta))
                return 0;
        } else if (form >= FORM_ONE_LINE && form < FORM_NO_COLUMNS) {
            delta = (int64_t)form - FORM_ONE_LINE;
        }
        line += delta;
        covered += ((head & 7u) + 1) * 2;
        if (offset < covered)
            return form == FORM_NONE || line < 0 || line > INT32_MAX ? 0 : (uint32_t)line;
        while (at < end && (*at & 0x80) == 0)
            at++;
    }
    return 0;
}
