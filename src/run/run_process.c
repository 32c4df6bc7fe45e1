/* run_process.c: how the memory of the process is composed when `heapledger run` writes a file. See run.h.
 *
 * This collects the same data in the same form as python/heapledger/_metadata.py, which a program uses to save a
 * snapshot. In a signal handler only the system is asked, because the interrupted code may hold the locks of the
 * allocators.
 *
 * Threading: no state.
 */

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../core/plain.h"
#include "run.h"

void hl_run_ask_allocators(hl_run_process *process)
{
    process->arenas_known = hl_process_arenas(&process->arenas);
    process->heap_known = hl_process_heap_of_c(&process->heap);
}

static void read_command(hl_hlsnap_buffer *line)
{
    char chunk[4096];
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    for (ssize_t got = 1; file >= 0 && got > 0;) {
        got = read(file, chunk, sizeof chunk);
        if (got > 0)
            hl_hlsnap_add_bytes(line, chunk, (size_t)got);
    }
    if (file >= 0)
        (void)close(file);
}

void hl_run_ask_system(hl_run_process *process)
{
    struct timespec now;
    process->command = (hl_hlsnap_buffer){0};
    read_command(&process->command);
    process->rss_known = hl_process_rss(&process->rss);
    clock_gettime(CLOCK_REALTIME, &now);
    process->time = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    if (!hl_process_pages(process->pages, sizeof process->pages))
        process->pages[0] = '\0';
}

static void put_bytes(hl_hlsnap_buffer *to, const char *key, uint64_t bytes)
{
    hl_plain_word(to, key);
    hl_plain_int(to, (int64_t)bytes);
}

typedef struct {
    const char *name;
    size_t length;
    uint64_t bytes;
} page_kind;

/* Finds the next line like "Rss:      1234 kB" at or after *text, and moves *text behind it. Returns false if there is
 * no such line. */
static bool next_kind(const char **text, page_kind *kind)
{
    while (**text != '\0') {
        const char *line = *text, *end = strchrnul(line, '\n');
        const char *at = memchr(line, ':', (size_t)(end - line));
        *text = *end == '\0' ? end : end + 1;
        if (at == NULL)
            continue;
        *kind = (page_kind){line, (size_t)(at - line), 0};
        at += 1 + strspn(at + 1, " \t");
        const char *digits = at;
        for (; *at >= '0' && *at <= '9'; at++)
            kind->bytes = kind->bytes * 10 + (uint64_t)(*at - '0');
        kind->bytes *= 1024;
        if (at > digits && end - at == 3 && memcmp(at, " kB", 3) == 0)
            return true;
    }
    return false;
}

static void put_pages(hl_hlsnap_buffer *to, const char *text)
{
    page_kind kind;
    size_t count = 0;
    if (text[0] == '\0') {
        hl_plain_none(to);
        return;
    }
    for (const char *at = text; next_kind(&at, &kind);)
        count++;
    hl_plain_dict(to, count);
    for (const char *at = text; next_kind(&at, &kind);) {
        hl_plain_text(to, kind.name, kind.length);
        hl_plain_int(to, (int64_t)kind.bytes);
    }
}

static void put_heap(hl_hlsnap_buffer *to, const hl_process_heap *heap)
{
    hl_plain_dict(to, 4);
    put_bytes(to, "heap", heap->heap);
    put_bytes(to, "mapped", heap->mapped);
    put_bytes(to, "used", heap->used);
    put_bytes(to, "free", heap->free);
}

void hl_run_put_process(hl_hlsnap_buffer *to, const hl_run_process *process, const hl_tracer_bytes *tables)
{
    hl_plain_dict(to, 5);
    put_bytes(to, "time", (uint64_t)process->time);
    hl_plain_word(to, "pages");
    put_pages(to, process->pages);
    hl_plain_word(to, "pymalloc_arenas");
    if (process->arenas_known)
        hl_plain_int(to, (int64_t)process->arenas);
    else
        hl_plain_none(to);
    hl_plain_word(to, "malloc");
    if (process->heap_known)
        put_heap(to, &process->heap);
    else
        hl_plain_none(to);
    hl_plain_word(to, "tables");
    hl_plain_dict(to, 6);
    put_bytes(to, "map", tables->map);
    put_bytes(to, "sites", tables->sites);
    put_bytes(to, "names", tables->names);
    put_bytes(to, "caches", tables->caches);
    put_bytes(to, "snapshots", tables->snapshots);
    put_bytes(to, "total", hl_tracer_bytes_total(tables));
}
