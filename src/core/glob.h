/* glob.h: shell-style patterns.
 *
 * Threading: pure functions.
 */
#ifndef HL_GLOB_H
#define HL_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Whether `name` matches the shell-style pattern, with exactly the meaning of Python's fnmatch.fnmatchcase. Both are
 * UTF-8, with lone surrogates as three bytes. A byte that is not UTF-8 counts as one character that equals only
 * itself. The time is bounded by pattern length x name length. No memory is allocated. */
bool hl_glob_match(const char *pattern, size_t pattern_length, const char *name, size_t name_length);

#endif
