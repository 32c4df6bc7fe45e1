/* save.h: write a file so that it is there as a whole or not at all.
 *
 * For processes that may die at any moment and have no interpreter to help: system calls only. The bytes go to a file
 * without a name, which then takes the place of `path`; where the file system has no such files, to one with another name.
 * What is there and is no regular file (a pipe, a terminal) is written to directly.
 *
 * Threading: no state of its own; async-signal-safe.
 */
#ifndef HL_SAVE_H
#define HL_SAVE_H

#include <stddef.h>
#include <stdint.h>

/* 0, or the errno of what could not be done. errno itself is left as it was. */
int hl_save(const char *path, const uint8_t *bytes, size_t length);

#endif
