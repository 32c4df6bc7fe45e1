/* fuzz_linetable.c: any bytes as a location table, read for any offset, against a second decoder written from the same
 * description (linetable.c's head) in the plainest way: it spreads the whole table out, one line for each code unit.
 *
 *     first line: 4 bytes | number of offsets: 1 | that many offsets: 2 each | the table
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/core/linetable.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum { MOST_UNITS = 1 << 16 };

typedef struct {
    uint32_t lines[MOST_UNITS];
    size_t count;
} spread;

static int64_t signed_number(const uint8_t *at, const uint8_t *end, int *known)
{
    uint64_t number = 0;
    for (int digit = 0; digit < 6; digit++) {
        if (at + digit >= end)
            break;
        number += (uint64_t)(at[digit] % 64) << (6 * digit);
        if (at[digit] / 64 % 2 == 0) {
            *known = 1;
            return number % 2 == 1 ? -(int64_t)(number / 2) : (int64_t)(number / 2);
        }
    }
    *known = 0;
    return 0;
}

/* Ends where the table does, or at the first entry that is none. */
static void spread_out(const uint8_t *table, size_t length, int first_line, spread *out)
{
    const uint8_t *at = table, *end = table + length;
    int64_t line = first_line;
    out->count = 0;
    while (at < end && *at >= 128) {
        int form = *at / 8 % 16, units = *at % 8 + 1, known = 1;
        at++;
        if (form == 13 || form == 14)
            line += signed_number(at, end, &known);
        if (form >= 10 && form <= 12)
            line += form - 10;
        if (!known)
            return;
        for (int i = 0; i < units && out->count < MOST_UNITS; i++)
            out->lines[out->count++] = form == 15 || line < 0 || line > INT32_MAX ? 0 : (uint32_t)line;
        while (at < end && *at < 128)
            at++;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static spread wanted;
    int32_t first_line;
    if (length < 5 || length < 5 + 2 * (size_t)bytes[4])
        return 0;
    memcpy(&first_line, bytes, 4);
    const uint8_t *offsets = bytes + 5, *given = offsets + 2 * (size_t)bytes[4];
    size_t table_length = (size_t)(bytes + length - given);
    uint8_t *table = malloc(table_length == 0 ? 1 : table_length); /* of this very length, for the sanitizer */
    if (table == NULL)
        return 0;
    memcpy(table, given, table_length);
    spread_out(table, table_length, first_line, &wanted);
    hl_linetable_place place = {0};
    for (size_t i = 0; i < bytes[4]; i++) {
        size_t offset = (size_t)(offsets[2 * i] | offsets[2 * i + 1] << 8);
        hl_linetable_place fresh = {0};
        uint32_t line = offset / 2 < wanted.count ? wanted.lines[offset / 2] : 0;
        uint32_t going_on = hl_linetable_line(table, table_length, first_line, offset, &place);
        uint32_t alone = hl_linetable_line(table, table_length, first_line, offset, &fresh);
        if (going_on != line || alone != line) {
            fprintf(stderr, "offset %zu: %u going on, %u alone, %u wanted\n", offset, going_on, alone, line);
            abort();
        }
    }
    free(table);
    return 0;
}
