/* glob.h: shell-style patterns.
 *
 * Threading: pure functions.
 */
#ifndef HL_GLOB_H
#define HL_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Does `name` match the shell-style pattern, with exactly the meaning of Python's fnmatch.fnmatchcase? Both UTF-8, lone
 * surrogates as three bytes; a byte that is not UTF-8 counts as one character, equal to itself only. Time is bounded by
 * pattern length x name length; no memory is allocated. */
bool hl_glob_match(const char *pattern, size_t pattern_length, const char *name, size_t name_length);

#endif
