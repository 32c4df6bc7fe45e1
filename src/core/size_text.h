/* size_text.h: a number of bytes as people read it: 512 B, 1.5 KiB, 23.4 MiB.
 *
 * The commands (python/heapledger/command/_text.py) and the page (report/page/text.js) write sizes in the same way:
 * tests/sizes.txt has the cases that all three must agree on.
 *
 * Threading: pure function; async-signal-safe.
 */
#ifndef HL_SIZE_TEXT_H
#define HL_SIZE_TEXT_H

#include <string.h>

#include "digits.h"

enum { HL_SIZE_TEXT_ROOM = 16 };

/* The first unit in which the number has three digits before the point at most, rounded to a tenth, and from the middle
 * to the even one. Returns `text`. */
static inline const char *hl_size_text(uint64_t bytes, char text[HL_SIZE_TEXT_ROOM])
{
    static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
    enum { LAST = sizeof units / sizeof *units - 1 };
    unsigned unit = 0;
    if (bytes < 1024) {
        strcpy(hl_digits(text, bytes, 10), units[unit]);
        return text;
    }
    uint64_t tenths;
    do {
        unsigned shift = 10 * ++unit;
        uint64_t half = (uint64_t)1 << (shift - 1);
        unsigned __int128 all = (unsigned __int128)bytes * 10;
        tenths = (uint64_t)(all >> shift);
        uint64_t rest = (uint64_t)all & (2 * half - 1);
        tenths += rest > half || (rest == half && tenths % 2 == 1);
    } while (tenths >= 10000 && unit < LAST);
    char *at = hl_digits(text, tenths / 10, 10);
    at = hl_digits(stpcpy(at, "."), tenths % 10, 10);
    strcpy(at, units[unit]);
    return text;
}

#endif
