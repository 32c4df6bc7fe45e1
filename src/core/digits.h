/* digits.h: a number as text, for code that may run in a signal handler.
 *
 * Threading: no state.
 */
#ifndef HL_DIGITS_H
#define HL_DIGITS_H

#include <stdint.h>

enum { HL_DIGITS_ROOM = 65 };

/* Write the number in base 2 to 16 and a terminator. Returns the place of the terminator. */
static inline char *hl_digits(char *at, uint64_t number, unsigned base)
{
    char digits[HL_DIGITS_ROOM];
    unsigned count = 0;
    do {
        digits[count++] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number != 0);
    while (count > 0)
        *at++ = digits[--count];
    *at = '\0';
    return at;
}

#endif
