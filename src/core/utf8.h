/* utf8.h: characters as UTF-8. Lone surrogates have three bytes, as with Python's "surrogatepass".
 *
 * Threading: pure functions; async-signal-safe.
 */
#ifndef HL_UTF8_H
#define HL_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HL_UTF8_MOST = 4 }; /* bytes of a character */

/* Read the character at the beginning of `bytes`. Returns how many bytes it has, or 0 if no character begins there:
 * forms that are longer than necessary and numbers beyond the last character are none. */
static inline size_t hl_utf8_decode(const void *bytes, size_t length, uint32_t *character)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* that needs so many bytes */
    const unsigned char *at = bytes;
    if (length == 0)
        return 0;
    *character = at[0];
    if (at[0] < 0x80)
        return 1;
    size_t width = at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf5 ? 4 : 0;
    if (width == 0 || width > length)
        return 0;
    *character &= 0x7fu >> width;
    for (size_t i = 1; i < width; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        *character = *character << 6 | (at[i] & 0x3f);
    }
    return *character < least[width] || *character > 0x10ffff ? 0 : width;
}

/* Write a character. Returns how many bytes it has. */
static inline size_t hl_utf8_encode(uint32_t character, char bytes[HL_UTF8_MOST])
{
    size_t width = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    if (width == 1) {
        bytes[0] = (char)character;
        return 1;
    }
    for (size_t i = width - 1; i > 0; i--, character >>= 6)
        bytes[i] = (char)(0x80 | (character & 0x3f));
    bytes[0] = (char)(0xf00u >> width | character);
    return width;
}

static inline bool hl_utf8_is_surrogate(uint32_t character)
{
    return character >> 11 == 0xd800 >> 11;
}

#endif
