/* churn.c: the interpreter's raw allocators, called in a loop by threads that hold no GIL.
 *
 * All threads share an array of slots. Each exchanges what it has just allocated for what it finds in a slot, and frees
 * that: so blocks are mostly freed by another thread than the one that made them. Every block begins with its own size,
 * so when all threads rest, the slots are the model: exactly these blocks are alive. common.py compiles and calls it.
 *
 * hand_over() puts an allocator below whatever will be hooked: one by which the next thread to allocate gets a block
 * before the call that frees it has returned. Any allocator may do that, but those there are do it once in a million
 * times; so this one finds who looks at a block, or at what is known of it, after it was freed.
 *
 * report() and withdraw() are for chaos.py: memory of other domains.
 */
#include <malloc.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

void *PyMem_RawMalloc(size_t size);
void *PyMem_RawCalloc(size_t count, size_t size);
void *PyMem_RawRealloc(void *block, size_t size);
void PyMem_RawFree(void *block);

typedef struct { /* the interpreter's PyMemAllocatorEx */
    void *context;
    void *(*allocate)(void *context, size_t size);
    void *(*allocate_zeroed)(void *context, size_t count, size_t size);
    void *(*reallocate)(void *context, void *block, size_t size);
    void (*release)(void *context, void *block);
} allocator;

enum { RAW = 0 }; /* PYMEM_DOMAIN_RAW */

void PyMem_GetAllocator(int domain, allocator *found);
void PyMem_SetAllocator(int domain, allocator *wanted);

int PyTraceMalloc_Track(unsigned int domain, uintptr_t address, size_t size);
int PyTraceMalloc_Untrack(unsigned int domain, uintptr_t address);

int report(unsigned int domain, uintptr_t address, size_t size);
int withdraw(unsigned int domain, uintptr_t address);
void hand_over(bool is_wanted);
size_t churn(uint64_t seed, size_t rounds, size_t *_Atomic *slots, size_t count, size_t smallest, size_t sizes);
void churn_for_ever(uint64_t seed, size_t *_Atomic *slots, size_t count, size_t smallest, size_t sizes);

static uint64_t draw(uint64_t *seed)
{
    uint64_t x = *seed += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static allocator below;
static void *_Atomic shelf; /* the block that was freed last, or NULL */
static atomic_bool is_handing_over;

static void *shelf_allocate(void *context, size_t size)
{
    void *found = atomic_load(&is_handing_over) ? atomic_exchange(&shelf, NULL) : NULL;
    if (found != NULL && malloc_usable_size(found) >= size)
        return found;
    below.release(context, found);
    return below.allocate(context, size);
}

static void *shelf_allocate_zeroed(void *context, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size)
        return NULL;
    void *block = shelf_allocate(context, count * size);
    return block == NULL ? NULL : memset(block, 0, count * size);
}

static void shelf_release(void *context, void *block)
{
    bool is_shelved = block != NULL && atomic_load(&is_handing_over);
    below.release(context, is_shelved ? atomic_exchange(&shelf, block) : block);
    if (is_shelved)
        sched_yield(); /* the others' turn, though we have not returned */
}

static void *shelf_reallocate(void *context, void *block, size_t size)
{
    if (block == NULL || !atomic_load(&is_handing_over))
        return below.reallocate(context, block, size);
    void *moved = shelf_allocate(context, size);
    if (moved == NULL)
        return NULL;
    size_t old = malloc_usable_size(block);
    memcpy(moved, block, old < size ? old : size);
    shelf_release(context, block);
    return moved;
}

/* From the first call on, which must come before the tracer has hooked anything, the allocator is there. It needs to be
 * called without another layer between it and malloc. */
void hand_over(bool is_wanted)
{
    if (below.allocate == NULL) {
        PyMem_GetAllocator(RAW, &below);
        allocator shelved = {below.context, shelf_allocate, shelf_allocate_zeroed, shelf_reallocate, shelf_release};
        PyMem_SetAllocator(RAW, &shelved);
    }
    atomic_store(&is_handing_over, is_wanted);
}

/* Returns how many blocks were made, each step of a reallocation being one. */
size_t churn(uint64_t seed, size_t rounds, size_t *_Atomic *slots, size_t count, size_t smallest, size_t sizes)
{
    size_t made = 0;
    for (size_t i = 0; i < rounds; i++) {
        uint64_t drawn = draw(&seed);
        size_t size = smallest + drawn % sizes, way = drawn >> 32 & 3;
        size_t *block = way == 0 ? PyMem_RawCalloc(1, size) : PyMem_RawMalloc(size);
        made += block != NULL;
        if (block != NULL && way == 1) {
            size = smallest + (drawn >> 16) % sizes;
            size_t *moved = PyMem_RawRealloc(block, size);
            if (moved == NULL)
                PyMem_RawFree(block);
            made += moved != NULL;
            block = moved;
        }
        if (block != NULL)
            block[0] = size;
        PyMem_RawFree(atomic_exchange(&slots[(drawn >> 40) % count], block));
    }
    return made;
}

/* Until the process ends: through the interpreter's finalization, if need be. */
void churn_for_ever(uint64_t seed, size_t *_Atomic *slots, size_t count, size_t smallest, size_t sizes)
{
    for (;;)
        churn(draw(&seed), 1000, slots, count, smallest, sizes);
}

/* As an extension does it. */
int report(unsigned int domain, uintptr_t address, size_t size)
{
    return PyTraceMalloc_Track(domain, address, size);
}

int withdraw(unsigned int domain, uintptr_t address)
{
    return PyTraceMalloc_Untrack(domain, address);
}
