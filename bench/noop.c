/* noop.c: what the benchmarks need in C; built by harness.py into a temporary folder, never installed.
 *
 * Two things: hooks on the public allocator API that only pass through, the floor below which no tracer built on that
 * API can go; and loops that allocate blocks of an exact size without a Python object in the way, so that sizes, counts
 * and times are those of the allocator alone.
 *
 * Invariants: slots[0..used) are blocks of the domain `kind`; nanoseconds[i] belongs to slots[i]. Both arrays are
 * mapped and touched by reserve(), before anything is measured.
 *
 * Threading: single-threaded benchmarks under the GIL; nothing here locks. But timed() is for several threads, and
 * keeps what it needs to itself.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <sys/mman.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))

/* ---- hooks that do nothing ---- */

static PyMemAllocatorEx real[3];
static int hooked;

static void *pass_malloc(void *ctx, size_t size)
{
    PyMemAllocatorEx *next = ctx;
    return next->malloc(next->ctx, size);
}

static void *pass_calloc(void *ctx, size_t count, size_t size)
{
    PyMemAllocatorEx *next = ctx;
    return next->calloc(next->ctx, count, size);
}

static void *pass_realloc(void *ctx, void *block, size_t size)
{
    PyMemAllocatorEx *next = ctx;
    return next->realloc(next->ctx, block, size);
}

static void pass_free(void *ctx, void *block)
{
    PyMemAllocatorEx *next = ctx;
    next->free(next->ctx, block);
}

static const PyMemAllocatorDomain domains[3] = {PYMEM_DOMAIN_RAW, PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};

static PyObject *noop_start(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    if (hooked) {
        PyErr_SetString(PyExc_RuntimeError, "the no-op hooks are already set");
        return NULL;
    }
    for (int i = 0; i < 3; i++) {
        PyMem_GetAllocator(domains[i], &real[i]);
        PyMemAllocatorEx hook = {&real[i], pass_malloc, pass_calloc, pass_realloc, pass_free};
        PyMem_SetAllocator(domains[i], &hook);
    }
    hooked = 1;
    Py_RETURN_NONE;
}

static PyObject *noop_stop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    if (hooked) {
        for (int i = 0; i < 3; i++)
            PyMem_SetAllocator(domains[i], &real[i]);
        hooked = 0;
    }
    Py_RETURN_NONE;
}

/* ---- blocks of an exact size ---- */

static void **slots;
static uint32_t *nanoseconds;
static size_t room, used;
static int kind;                   /* domain of the blocks in slots: 0 raw, 1 mem, 2 obj */
static uint64_t dice = 0x9e3779b9; /* state of the churn's pseudo-random numbers; fixed, so that runs repeat */

static inline void *block_new(int domain, size_t size)
{
    switch (domain) {
    case 0:
        return PyMem_RawMalloc(size);
    case 1:
        return PyMem_Malloc(size);
    default:
        return PyObject_Malloc(size);
    }
}

static inline void *block_resize(int domain, void *block, size_t size)
{
    switch (domain) {
    case 0:
        return PyMem_RawRealloc(block, size);
    case 1:
        return PyMem_Realloc(block, size);
    default:
        return PyObject_Realloc(block, size);
    }
}

static inline void block_free(int domain, void *block)
{
    switch (domain) {
    case 0:
        PyMem_RawFree(block);
        break;
    case 1:
        PyMem_Free(block);
        break;
    default:
        PyObject_Free(block);
    }
}

static inline uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint32_t since(uint64_t begin)
{
    uint64_t elapsed = now() - begin;
    return elapsed > UINT32_MAX ? UINT32_MAX : (uint32_t)elapsed;
}

static void *touched(size_t bytes)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return pages == MAP_FAILED ? NULL : memset(pages, 1, bytes);
}

static PyObject *noop_reserve(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_ssize_t count;
    if (!PyArg_ParseTuple(args, "ni", &count, &kind))
        return NULL;
    if (slots != NULL || count < 1) {
        PyErr_SetString(PyExc_ValueError, "reserve is called once, with a count above 0");
        return NULL;
    }
    slots = touched((size_t)count * sizeof *slots);
    nanoseconds = touched((size_t)count * sizeof *nanoseconds);
    if (slots == NULL || nanoseconds == NULL)
        return PyErr_NoMemory();
    room = (size_t)count;
    Py_RETURN_NONE;
}

static PyObject *no_room(void)
{
    PyErr_SetString(PyExc_ValueError, "more blocks than reserved, or too few held");
    return NULL;
}

/* fill(count, size): `count` more blocks of `size` bytes, all from the caller's line. */
static PyObject *noop_fill(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_ssize_t count, size;
    if (!PyArg_ParseTuple(args, "nn", &count, &size))
        return NULL;
    if ((size_t)count > room - used)
        return no_room();
    for (Py_ssize_t i = 0; i < count; i++) {
        char *block = block_new(kind, (size_t)size);
        if (block == NULL)
            return PyErr_NoMemory();
        block[0] = 1;
        slots[used++] = block;
    }
    Py_RETURN_NONE;
}

/* take(count): blocks of 1, 2, ... `count` bytes, each call of the allocator timed: `count` sites a line. */
static PyObject *noop_take(PyObject *Py_UNUSED(module), PyObject *arg)
{
    Py_ssize_t count = PyLong_AsSsize_t(arg);
    if (count == -1 && PyErr_Occurred())
        return NULL;
    if ((size_t)count > room - used)
        return no_room();
    for (Py_ssize_t size = 1; size <= count; size++) {
        uint64_t begin = now();
        void *block = block_new(kind, (size_t)size);
        nanoseconds[used] = since(begin);
        if (block == NULL)
            return PyErr_NoMemory();
        slots[used++] = block;
    }
    Py_RETURN_NONE;
}

/* release(): free every block held, each call timed. */
static PyObject *noop_release(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    for (size_t i = 0; i < used; i++) {
        uint64_t begin = now();
        block_free(kind, slots[i]);
        nanoseconds[i] = since(begin);
    }
    used = 0;
    Py_RETURN_NONE;
}

/* times(count): the first `count` timings, as native 32-bit integers. */
static PyObject *noop_times(PyObject *Py_UNUSED(module), PyObject *arg)
{
    Py_ssize_t count = PyLong_AsSsize_t(arg);
    if (count == -1 && PyErr_Occurred())
        return NULL;
    if ((size_t)count > room)
        return no_room();
    return PyBytes_FromStringAndSize((const char *)nanoseconds, count * (Py_ssize_t)sizeof *nanoseconds);
}

/* churn(steps, most): a block chosen at random is replaced by one of 1 to `most` bytes, `steps` times. */
static PyObject *noop_churn(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_ssize_t steps, most;
    if (!PyArg_ParseTuple(args, "nn", &steps, &most))
        return NULL;
    if (used == 0 || most < 1)
        return no_room();
    for (Py_ssize_t i = 0; i < steps; i++) {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        size_t slot = (size_t)(dice >> 32) % used;
        block_free(kind, slots[slot]);
        char *block = block_new(kind, 1 + (size_t)(dice & 0xffffffff) % (size_t)most);
        if (block == NULL) {
            slots[slot] = slots[--used];
            return PyErr_NoMemory();
        }
        block[0] = 1;
        slots[slot] = block;
    }
    Py_RETURN_NONE;
}

/* timed(domain, count, has_gil): `count` calls of the allocator and as many of free, with 64 blocks of 16 to 512 bytes
 * alive at a time, each timed, as native 32-bit integers. */
static PyObject *noop_timed(PyObject *Py_UNUSED(module), PyObject *args)
{
    enum { ALIVE = 64 };
    int domain, has_gil;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(args, "inp", &domain, &count, &has_gil))
        return NULL;
    PyObject *result = PyBytes_FromStringAndSize(NULL, 2 * count * (Py_ssize_t)sizeof(uint32_t));
    if (result == NULL)
        return NULL;
    uint32_t *times = (uint32_t *)PyBytes_AS_STRING(result);
    memset(times, 1, (size_t)PyBytes_GET_SIZE(result));
    void *alive[ALIVE] = {NULL};
    PyThreadState *state = has_gil ? NULL : PyEval_SaveThread();
    for (Py_ssize_t i = 0; i < count; i++) {
        size_t slot = (size_t)i % ALIVE;
        uint64_t begin = now();
        block_free(domain, alive[slot]);
        times[2 * i] = since(begin);
        begin = now();
        alive[slot] = block_new(domain, 16 * (1 + (size_t)i % 32));
        times[2 * i + 1] = since(begin);
    }
    for (size_t slot = 0; slot < ALIVE; slot++)
        block_free(domain, alive[slot]);
    if (state != NULL)
        PyEval_RestoreThread(state);
    return result;
}

/* ---- loops for counting instructions; callgrind collects inside hl_bench_* only ---- */

NOINLINE static void hl_bench_pairs(int domain, size_t size, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++)
        block_free(domain, block_new(domain, size));
}

NOINLINE static void hl_bench_sizes(int domain, size_t size, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++)
        block_free(domain, block_new(domain, size + (size_t)i));
}

NOINLINE static void hl_bench_resizes(int domain, size_t size, Py_ssize_t count)
{
    void *block = block_new(domain, size);
    for (Py_ssize_t i = 0; i < count; i++) {
        void *bigger = block_resize(domain, block, i & 1 ? size : 2 * size);
        if (bigger != NULL)
            block = bigger;
    }
    block_free(domain, block);
}

/* loop(name, domain, size, count) */
static PyObject *noop_loop(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *name;
    int domain;
    Py_ssize_t size, count;
    if (!PyArg_ParseTuple(args, "sinn", &name, &domain, &size, &count))
        return NULL;
    /* A neighbour stays alive meanwhile: an allocator's pool that empties and fills at every turn is not the usual. */
    void *neighbour = block_new(domain, (size_t)size);
    if (strcmp(name, "pairs") == 0)
        hl_bench_pairs(domain, (size_t)size, count);
    else if (strcmp(name, "sizes") == 0)
        hl_bench_sizes(domain, (size_t)size, count);
    else if (strcmp(name, "resizes") == 0)
        hl_bench_resizes(domain, (size_t)size, count);
    else
        PyErr_Format(PyExc_ValueError, "no loop called %s", name);
    block_free(domain, neighbour);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"start", noop_start, METH_NOARGS, "Set hooks that pass through on all three domains."},
    {"stop", noop_stop, METH_NOARGS, "stop(): take them away"},
    {"reserve", noop_reserve, METH_VARARGS, "reserve(count, domain): room for blocks; 0 raw, 1 mem, 2 obj"},
    {"fill", noop_fill, METH_VARARGS, "fill(count, size): allocate and keep"},
    {"take", noop_take, METH_O, "take(count): allocate 1, 2, ... count bytes, timed, and keep"},
    {"release", noop_release, METH_NOARGS, "release(): free all that is kept, timed"},
    {"times", noop_times, METH_O, "times(count): nanoseconds of the timed calls"},
    {"timed", noop_timed, METH_VARARGS, "timed(domain, count, has_gil): nanoseconds of each call, for any thread"},
    {"churn", noop_churn, METH_VARARGS, "churn(steps, most): replace kept blocks at random"},
    {"loop", noop_loop, METH_VARARGS, "loop(name, domain, size, count): pairs, sizes or resizes"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_noop",
    .m_doc = "No-op allocator hooks and exact allocations, for the benchmarks.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__noop(void); /* Python.h declares none */

PyMODINIT_FUNC PyInit__noop(void)
{
    return PyModule_Create(&module_def);
}
