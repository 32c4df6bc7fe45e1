/* pool.h: small pieces of memory, 8 bytes to 16 KB in steps of at most a quarter, from 64 KB chunks of our own.
 *
 *     chunk (64 KB, aligned) = header | piece | piece | ...       all pieces of a chunk have one size
 *
 * When the last piece of a chunk is freed, the chunk gives its memory back to the system, except for its first page,
 * which holds the header. A few empty chunks keep their memory. An empty chunk can serve any size. Chunks are mapped
 * sixteen at a time, and unmapped when all sixteen are empty. Larger requests are mapped one by one.
 *
 * Threading: none of its own; the owner's lock.
 */
#ifndef HL_POOL_H
#define HL_POOL_H

#include "os.h"

typedef struct hl_pool hl_pool;

hl_status hl_pool_new(hl_pool **pool) HL_MUST_USE;
void hl_pool_free_all(hl_pool *pool);
/* Free all pieces at once. Little of the memory stays. */
void hl_pool_clear(hl_pool *pool);
/* A piece of at least `bytes`, zeroed, aligned to 16 (to 8 if that is enough for it). NULL when there is no memory. */
void *hl_pool_alloc(hl_pool *pool, size_t bytes) HL_MUST_USE;
/* `bytes` as given to hl_pool_alloc. */
void hl_pool_free(hl_pool *pool, void *piece, size_t bytes);
/* Bytes obtained from the system and not given back. */
size_t hl_pool_memory(const hl_pool *pool);

#endif
