/* churn.c: the interpreter's raw allocators, called in a loop by threads that hold no GIL.
 *
 * All threads share an array of slots. Each exchanges what it has just allocated for what it finds in a slot, and frees
 * that: so blocks are mostly freed by another thread than the one that made them. Every block begins with its own size,
 * so when all threads rest, the slots are the model: exactly these blocks are alive. common.py compiles and calls it.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

void *PyMem_RawMalloc(size_t size);
void *PyMem_RawCalloc(size_t count, size_t size);
void *PyMem_RawRealloc(void *block, size_t size);
void PyMem_RawFree(void *block);

size_t churn(uint64_t seed, size_t rounds, size_t *_Atomic *slots, size_t count, size_t smallest, size_t sizes);
void churn_for_ever(uint64_t seed, size_t *_Atomic *slots, size_t count, size_t smallest, size_t sizes);

static uint64_t draw(uint64_t *seed)
{
    uint64_t x = *seed += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
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
