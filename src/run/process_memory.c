/* process_memory.c: see process_memory.h. */

#include "process_memory.h"

#include <Python.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "../core/os.h"
#include "../cpython/layers.h"

/* Every supported version exports this function, but not every version declares it. It is weak because a later version
 * may drop it. */
extern __attribute__((weak, visibility("default"))) int _PyObject_DebugMallocStats(FILE *out);

/* Reads a short file with system calls only. */
static bool read_text(const char *path, char *text, size_t room)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t length = read(file, text, room - 1);
    (void)close(file);
    if (length <= 0)
        return false;
    text[length] = '\0';
    return true;
}

bool hl_process_pages(char *text, size_t room)
{
    return read_text("/proc/self/smaps_rollup", text, room);
}

bool hl_process_rss(uint64_t *bytes)
{
    char text[128];
    if (!read_text("/proc/self/statm", text, sizeof text))
        return false;
    const char *at = strchr(text, ' '); /* the second number counts resident pages */
    uint64_t resident = 0;
    if (at == NULL)
        return false;
    for (at++; *at >= '0' && *at <= '9'; at++)
        resident = resident * 10 + (uint64_t)(*at - '0');
    *bytes = resident * hl_os_page();
    return true;
}

static void print_statistics(void *stream)
{
    (void)_PyObject_DebugMallocStats(stream);
}

/* The line looks like this: "16 arenas * 1048576 bytes/arena                 =           16,777,216". */
static bool read_arenas(const char *text, uint64_t *bytes)
{
    const char *line = strstr(text, " bytes/arena");
    if (line == NULL || (line = strchr(line, '=')) == NULL)
        return false;
    uint64_t number = 0;
    bool any = false;
    for (line++; *line != '\0' && *line != '\n'; line++) {
        if (*line >= '0' && *line <= '9') {
            number = number * 10 + (uint64_t)(*line - '0');
            any = true;
        }
    }
    *bytes = number;
    return any;
}

bool hl_process_arenas(uint64_t *bytes)
{
    char *text = NULL;
    size_t length = 0;

    if (_PyObject_DebugMallocStats == NULL)
        return false;
    FILE *stream = open_memstream(&text, &length);
    if (stream == NULL)
        return false;
    hl_layers_lift_object_malloc(print_statistics, stream);
    bool found = fclose(stream) == 0 && read_arenas(text, bytes);
    free(text);
    return found;
}

bool hl_process_heap_of_c(hl_process_heap *heap)
{
#ifdef HL_HAVE_MALLINFO2
    struct mallinfo2 info = mallinfo2();
    *heap = (hl_process_heap){info.arena, info.hblkhd, info.uordblks, info.fordblks};
    return true;
#else
    (void)heap;
    return false;
#endif
}
