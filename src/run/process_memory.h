/* process_memory.h: how the memory of the process is composed, according to the operating system, the C library and the
 * interpreter.
 *
 * Threading: an attached thread state. No function here creates a Python object or sets a Python exception.
 */
#ifndef HL_PROCESS_MEMORY_H
#define HL_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The resident memory of the process, in bytes. Takes a few microseconds. Any thread may call it, also in a signal
 * handler. Returns false if the system does not provide the number. */
bool hl_process_rss(uint64_t *bytes);

/* What the system reports about the pages of the process (/proc/self/smaps_rollup), as text. Takes milliseconds if the
 * process has gigabytes. Any thread may call it, also in a signal handler. Returns false if the system does not provide
 * the report. */
bool hl_process_pages(char *text, size_t room);

/* The bytes in the arenas of the interpreter's allocator for small objects. This walks all pools, which takes about a
 * millisecond for 100 MB. Returns false if that allocator is not in use, is hidden below another tool's hooks, or
 * cannot be asked safely. */
bool hl_process_arenas(uint64_t *bytes);

typedef struct {
    uint64_t heap;   /* bytes obtained from the system for the heap itself */
    uint64_t mapped; /* bytes in blocks that have their own mapping */
    uint64_t used;   /* bytes of the heap that are in blocks */
    uint64_t free;   /* bytes of the heap that are free */
} hl_process_heap;
/* The heap of the C library. Returns false if the library does not provide the numbers. */
bool hl_process_heap_of_c(hl_process_heap *heap);

#endif
