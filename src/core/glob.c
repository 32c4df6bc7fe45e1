/* glob.c: shell-style matching with Python's meaning, on the code points of UTF-8. See glob.h.
 *
 *     *       any characters, newlines and slashes too        [seq]   a character of seq: a, or a-z
 *     ?       any one character                                [!seq]  a character not in seq
 *
 * There is no quoting. "[" without its "]" stands for itself, and so does "]" as the first character of a set. The
 * result of fnmatch.translate has the same meaning from 3.11 to 3.15. It uses a regular expression, which leaves
 * three quirks in how a set is read. They are reproduced here:
 *
 *   1. A hyphen makes a range if it has a character on both sides that belongs to no other range.
 *   2. A reversed range (z-a) is dropped. "!" then negates if it is the first of the remaining characters, even if it
 *      was not first before: "[z-a!b]" means "[!b]".
 *   3. If that "!" began a range ("[z-a!-c]"), the range falls apart: the set is everything except "-" and "c".
 *
 * The match is greedy with one point of return. If anything after the last "*" fails, that "*" takes one more
 * character. An earlier "*" never needs another try.
 */

#include "glob.h"

#include <string.h>

#include "utf8.h"

typedef struct {
    const unsigned char *at, *end;
} text;

/* Take one character; the text is not empty. A byte that begins no UTF-8 sequence is a character beyond Unicode. */
static uint32_t take(text *from)
{
    uint32_t character;
    size_t width = hl_utf8_decode(from->at, (size_t)(from->end - from->at), &character);
    if (width == 0)
        return 0x110000 + *from->at++;
    from->at += width;
    return character;
}

/* `set` begins after "[". Returns the place of the "]" that closes it, or NULL. */
static const unsigned char *close_of(text set)
{
    if (set.at < set.end && *set.at == '!')
        set.at++;
    if (set.at < set.end && *set.at == ']')
        set.at++;
    while (set.at < set.end && *set.at != ']')
        set.at++;
    return set.at < set.end ? set.at : NULL;
}

/* `set` is the text between the brackets. It is not empty. */
static bool set_has(text set, uint32_t code)
{
    bool negated = *set.at == '!', first = !negated, found = false;
    if (negated)
        set.at++;
    while (set.at < set.end) {
        uint32_t low = take(&set), high = low;
        bool range = set.end - set.at >= 2 && *set.at == '-'; /* quirk 1 */
        if (range) {
            set.at++;
            high = take(&set);
        }
        if (low > high)
            continue; /* quirk 2 */
        if (first && low == '!') {
            negated = true;
            found = range && (code == '-' || code == high); /* quirk 3 */
        } else {
            found = found || (low <= code && code <= high);
        }
        first = false;
    }
    return found != negated;
}

/* Skip what cannot match `sign`, the first byte of what must follow. Returns false if nothing can. ASCII is never
 * part of another character, so the search can go by bytes. */
static bool skip_to(text *from, unsigned char sign)
{
    if (sign >= 0x80 || sign == '*' || sign == '?' || sign == '[')
        return true;
    const unsigned char *found = memchr(from->at, sign, (size_t)(from->end - from->at));
    if (found != NULL)
        from->at = found;
    return found != NULL;
}

bool hl_glob_match(const char *pattern, size_t pattern_length, const char *name, size_t name_length)
{
    const unsigned char *bytes = (const unsigned char *)pattern;
    text rest = {bytes, bytes + pattern_length};
    text left = {(const unsigned char *)name, (const unsigned char *)name + name_length};
    text star_rest = {NULL, NULL}, star_left = {NULL, NULL}; /* where to return to: after the last star */
    const unsigned char *open_from = rest.end;               /* no "[" from here on is closed */
    for (;;) {
        if (rest.at < rest.end && *rest.at == '*') {
            rest.at++;
            star_rest = rest;
            star_left = left;
            continue;
        }
        if (rest.at == rest.end && left.at == left.end)
            return true;
        bool matches = false;
        if (rest.at < rest.end && left.at < left.end) {
            const unsigned char *sign = rest.at, *closed = NULL;
            uint32_t code = take(&left), wanted = take(&rest);
            if (wanted == '[' && sign < open_from) {
                closed = close_of(rest);
                if (closed == NULL)
                    open_from = sign;
            }
            if (closed != NULL) {
                matches = set_has((text){rest.at, closed}, code);
                rest.at = closed + 1;
            } else {
                matches = wanted == '?' || wanted == code;
            }
        }
        if (matches)
            continue;
        if (star_rest.at == NULL || star_left.at == star_left.end)
            return false;
        (void)take(&star_left);
        if (star_rest.at < star_rest.end && !skip_to(&star_left, *star_rest.at))
            return false;
        rest = star_rest;
        left = star_left;
    }
}
