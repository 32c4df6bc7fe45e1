/* process_memory.h: what the process's memory is made of, as the operating system, the C library and the interpreter
 * tell it.
 *
 * Threading: an attached thread state. Nothing here creates a Python object or sets a Python exception.
 */
#ifndef HL_PROCESS_MEMORY_H
#define HL_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the process in memory. A few microseconds. Any thread, signal handlers included. False: the system does not
 * tell. */
bool hl_process_rss(uint64_t *bytes);

/* What the system says of the process's pages (/proc/self/smaps_rollup), as a text. Milliseconds if there are
 * gigabytes. Any thread, signal handlers included. False: the system does not tell. */
bool hl_process_pages(char *text, size_t room);

/* Bytes in the arenas of the interpreter's allocator for small objects. It walks all pools: about a millisecond for
 * 100 MB. False: that allocator is not in use, is hidden below another tool's hooks, or cannot be asked safely. */
bool hl_process_arenas(uint64_t *bytes);

typedef struct {
    uint64_t heap;   /* bytes obtained from the system for the heap proper */
    uint64_t mapped; /* bytes in blocks that have a mapping of their own */
    uint64_t used;   /* bytes of the heap in blocks */
    uint64_t free;   /* bytes of the heap in none */
} hl_process_heap;
/* The C library's heap. False: the library does not tell. */
bool hl_process_heap_of_c(hl_process_heap *heap);

#endif
