/* facts.c: what is known of the process and of the moment when a snapshot is taken.
 *
 * Taking a snapshot must stay cheap, so it comes with an array of numbers, of which python/heapledger/_metadata.py makes the
 * dict when somebody asks. The array is one object of a type without a freelist: numbers and tuples would come from the
 * program's freelists, and taking them from there would change what is traced. What takes longer to find out is asked
 * when the snapshot is saved.
 *
 * Threading: the GIL.
 */
#include "facts.h"

#include <time.h>
#include <unistd.h>

#include "../run/process_facts.h"

static PyObject *number_or_none(bool known, uint64_t number)
{
    return known ? PyLong_FromUnsignedLongLong(number) : Py_NewRef(Py_None);
}

enum { MOMENT = 2 }; /* its place among the numbers */

bool hl_py_facts_take(hl_snapshot *const *snapshots, size_t count, PyObject **taken)
{
    struct timespec now;
    uint64_t current, peak, rss = 0;
    hl_tracer_bytes tables;

    clock_gettime(CLOCK_REALTIME, &now);
    hl_tracer_traced(&current, &peak);
    hl_tracer_memory(&tables);
    bool known = hl_process_rss(&rss);
    for (size_t i = 0; i < count; i++) { /* what they add up to, even if a thread has allocated since */
        if (snapshots[i]->moment == HL_LIVE)
            current = snapshots[i]->bytes;
        if (snapshots[i]->moment == HL_PEAK)
            peak = snapshots[i]->bytes;
    }
    int64_t facts[] = {
        (int64_t)now.tv_sec * 1000000000 + now.tv_nsec,
        getpid(),
        HL_LIVE, /* each gets its own below */
        snapshots[0]->nframe,
        hl_tracer_numbers(),
        (int64_t)current,
        (int64_t)peak,
        (int64_t)hl_tracer_lost(),
        (int64_t)hl_tracer_interruptions(),
        known ? (int64_t)rss : -1,
        (int64_t)hl_tracer_bytes_total(&tables),
    };
    for (size_t i = 0; i < count; i++) {
        facts[MOMENT] = snapshots[i]->moment;
        taken[i] = PyByteArray_FromStringAndSize((const char *)facts, sizeof facts);
        if (taken[i] == NULL) {
            while (i > 0)
                Py_DECREF(taken[--i]);
            return false;
        }
    }
    return true;
}

PyObject *hl_py_facts_process(PyObject *module, PyObject *unused)
{
    uint64_t arenas = 0;
    hl_process_heap heap;

    (void)module, (void)unused;
    HL_OWN_WORK;
    bool known = hl_process_arenas(&arenas);
    PyObject *first = number_or_none(known, arenas);
    if (first == NULL)
        return NULL;
    if (!hl_process_heap_of_c(&heap))
        return Py_BuildValue("(NO)", first, Py_None);
    return Py_BuildValue("(N(KKKK))", first, (unsigned long long)heap.heap, (unsigned long long)heap.mapped,
                         (unsigned long long)heap.used, (unsigned long long)heap.free);
}
