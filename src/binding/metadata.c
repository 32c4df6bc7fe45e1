/* metadata.c: data about the process and the moment when a snapshot is taken.
 *
 * Taking a snapshot must stay cheap. So a snapshot comes with an array of numbers. python/heapledger/_metadata.py makes
 * a dict of it when the program reads the metadata. The array is one object of a type without a freelist. Separate
 * numbers and tuples would come from the program's freelists, which would change what is traced. Data that take longer
 * to find out are collected when the snapshot is saved.
 *
 * Threading: the GIL.
 */
#include "metadata.h"

#include <time.h>
#include <unistd.h>

#include "../run/process_memory.h"

static PyObject *number_or_none(bool known, uint64_t number)
{
    return known ? PyLong_FromUnsignedLongLong(number) : Py_NewRef(Py_None);
}

enum { MOMENT = 2 }; /* its index in the array */

bool hl_py_metadata_take(hl_snapshot *const *snapshots, size_t count, const hl_tracer_totals *tracer, PyObject **taken)
{
    struct timespec now;
    uint64_t rss = 0;

    clock_gettime(CLOCK_REALTIME, &now);
    bool known = hl_process_rss(&rss);
    int64_t raw_metadata[] = {
        (int64_t)now.tv_sec * 1000000000 + now.tv_nsec,
        getpid(),
        HL_LIVE, /* a placeholder; the loop below sets the moment of each snapshot */
        snapshots[0]->nframe,
        tracer->numbers,
        (int64_t)tracer->traced,
        (int64_t)tracer->peak,
        (int64_t)tracer->lost,
        tracer->interruptions,
        known ? (int64_t)rss : -1,
        (int64_t)hl_tracer_bytes_total(&tracer->memory),
    };
    for (size_t i = 0; i < count; i++) {
        raw_metadata[MOMENT] = snapshots[i]->moment;
        taken[i] = PyByteArray_FromStringAndSize((const char *)raw_metadata, sizeof raw_metadata);
        if (taken[i] == NULL) {
            while (i > 0)
                Py_DECREF(taken[--i]);
            return false;
        }
    }
    return true;
}

PyObject *hl_py_metadata_process_memory(PyObject *module, PyObject *unused)
{
    uint64_t arenas = 0;
    hl_process_heap heap;

    (void)module, (void)unused;
    HL_PY_OWN_WORK;
    bool known = hl_process_arenas(&arenas);
    PyObject *first = number_or_none(known, arenas);
    if (first == NULL)
        return NULL;
    if (!hl_process_heap_of_c(&heap))
        return Py_BuildValue("(NO)", first, Py_None);
    return Py_BuildValue("(N(KKKK))", first, (unsigned long long)heap.heap, (unsigned long long)heap.mapped,
                         (unsigned long long)heap.used, (unsigned long long)heap.free);
}
