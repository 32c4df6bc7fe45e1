/* save.h: write a file so that it exists completely or not at all.
 *
 * For processes that may die at any moment and have no interpreter to help. It uses system calls only. It writes the
 * bytes to a file without a name, which then replaces `path`. Where the file system does not support that, it writes
 * to a file with another name. If `path` exists and is not a regular file (a pipe, a terminal), it writes to it
 * directly.
 *
 * Threading: no state of its own; async-signal-safe.
 */
#ifndef HL_SAVE_H
#define HL_SAVE_H

#include <stddef.h>
#include <stdint.h>

/* Returns 0, or the errno of the step that failed. Does not change errno itself. */
int hl_save(const char *path, const uint8_t *bytes, size_t length);

#endif
