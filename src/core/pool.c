/* pool.c: see pool.h.
 *
 * Chunks come from the system 16 at a time (1 MB), so that the number of mappings stays small. Each chunk is in one
 * place:
 *
 *     fresh            never used
 *     partial[class]   some piece is free
 *     no list          every piece is in use: found again by masking the address of a freed piece
 *     empty            no piece is in use, any class may take it
 *
 * A few empty chunks stay warm (keep their memory), so that a program that moves around the edge of a chunk does not
 * pay for a system call each time. A mapping whose chunks are all empty is unmapped, with the headers. The last
 * mapping stays.
 */

#include "pool.h"

#include <string.h>

enum {
    CHUNK = 64 << 10,
    CHUNKS_PER_MAPPING = 16,
    LARGEST = 16 << 10,
    CLASSES = 37, /* see class_of */
    HEADER = 64,
    MOST_WARM = 4,
};

typedef struct chunk {
    struct chunk *next, *previous; /* in partial[class] or empty */
    struct chunk *next_mapping;    /* this and the next field link the first chunks of all mappings */
    struct chunk *previous_mapping;
    void *free_pieces;    /* freed and not reused, linked through their first word */
    uint32_t fresh;       /* offset of the first piece never handed out */
    uint32_t used;        /* pieces in use */
    uint32_t piece;       /* bytes of each */
    uint32_t touched;     /* bytes from the header on that are in memory, in whole pages */
    uint8_t class;        /* of the pieces */
    bool warm;            /* empty, with its memory kept */
    uint8_t place;        /* in its mapping */
    uint8_t empty_chunks; /* of the mapping that begins here */
} chunk;

_Static_assert(sizeof(chunk) <= HEADER, "a chunk's header fits before its first piece");

typedef struct large {
    struct large *next, *previous;
    size_t bytes; /* of the mapping */
} large;

_Static_assert(sizeof(large) <= HEADER, "a large piece's header fits before it");

struct hl_pool {
    chunk *partial[CLASSES];
    chunk *empty;
    char *fresh; /* the first of the chunks of the newest mapping that were not used yet */
    uint32_t fresh_count;
    chunk *mappings;
    large *larges;
    size_t warm; /* empty chunks that keep their memory */
    size_t bytes;
};

hl_status hl_pool_new(hl_pool **pool)
{
    *pool = hl_os_alloc(1, sizeof **pool);
    return *pool == NULL ? HL_NO_MEMORY : HL_OK;
}

static void unmap_all(chunk *mappings, large *larges)
{
    while (mappings != NULL) {
        chunk *first = mappings;
        mappings = first->next_mapping;
        hl_os_unmap(first, (size_t)CHUNK * CHUNKS_PER_MAPPING);
    }
    while (larges != NULL) {
        large *piece = larges;
        larges = piece->next;
        hl_os_unmap(piece, piece->bytes);
    }
}

void hl_pool_free_all(hl_pool *pool)
{
    unmap_all(pool->mappings, pool->larges);
    hl_os_free(pool);
}

static void push(chunk **list, chunk *c)
{
    c->previous = NULL;
    c->next = *list;
    if (c->next != NULL)
        c->next->previous = c;
    *list = c;
}

static void take_out(chunk **list, chunk *c)
{
    if (c->previous != NULL)
        c->previous->next = c->next;
    else
        *list = c->next;
    if (c->next != NULL)
        c->next->previous = c->previous;
}

/* The caller is about to write to the first `bytes` bytes. */
static void touch(hl_pool *pool, chunk *c, uint32_t bytes)
{
    if (bytes <= c->touched)
        return;
    uint32_t page = (uint32_t)hl_os_page(), now = (bytes + page - 1) / page * page;
    pool->bytes += now - c->touched;
    c->touched = now;
}

static chunk *fresh_chunk(hl_pool *pool)
{
    if (pool->fresh_count == 0) {
        pool->fresh = hl_os_map_aligned((size_t)CHUNK * CHUNKS_PER_MAPPING, CHUNK);
        if (pool->fresh == NULL)
            return NULL;
        pool->fresh_count = CHUNKS_PER_MAPPING;
        chunk *first = (chunk *)(void *)pool->fresh;
        first->next_mapping = pool->mappings;
        if (first->next_mapping != NULL)
            first->next_mapping->previous_mapping = first;
        pool->mappings = first;
    }
    chunk *c = (chunk *)(void *)pool->fresh;
    c->place = (uint8_t)(CHUNKS_PER_MAPPING - pool->fresh_count);
    pool->fresh += CHUNK;
    pool->fresh_count--;
    touch(pool, c, HEADER);
    return c;
}

static chunk *chunk_in(chunk *first, uint32_t place)
{
    return (chunk *)(void *)((char *)first + (size_t)CHUNK * place);
}

static chunk *first_of_mapping(chunk *c)
{
    return (chunk *)(void *)((char *)c - (size_t)CHUNK * c->place);
}

static void give_up_mapping(hl_pool *pool, chunk *first)
{
    for (uint32_t place = 0; place < CHUNKS_PER_MAPPING; place++) {
        chunk *c = chunk_in(first, place);
        take_out(&pool->empty, c);
        pool->warm -= c->warm;
        pool->bytes -= c->touched;
    }
    if (first->previous_mapping != NULL)
        first->previous_mapping->next_mapping = first->next_mapping;
    else
        pool->mappings = first->next_mapping;
    if (first->next_mapping != NULL)
        first->next_mapping->previous_mapping = first->previous_mapping;
    hl_os_unmap(first, (size_t)CHUNK * CHUNKS_PER_MAPPING);
}

static chunk *empty_chunk(hl_pool *pool)
{
    chunk *c = pool->empty;
    take_out(&pool->empty, c);
    first_of_mapping(c)->empty_chunks--;
    pool->warm -= c->warm;
    c->warm = false;
    return c;
}

/* Sizes are 8, multiples of 16 up to 64, and then four for each power of two, so rounding up wastes little. */
static uint8_t class_of(size_t bytes, uint32_t *piece)
{
    if (bytes <= 64) {
        *piece = bytes <= 8 ? 8 : (uint32_t)(bytes + 15) / 16 * 16;
        return (uint8_t)(*piece / 16);
    }
    uint32_t last = (uint32_t)bytes - 1, shift = 29 - (uint32_t)__builtin_clz(last),
             quarter = last >> shift; /* 4 to 7 */
    *piece = (quarter + 1) << shift;
    return (uint8_t)(4 * (shift - 4) + quarter + 1);
}

/* The offset of a chunk's first piece. Powers of two, which the map requests, cross as few pages as possible. */
static uint32_t first_piece(uint32_t piece)
{
    enum { LEAST_PAGE = 4096 };
    if (piece <= HEADER || (piece & (piece - 1)) != 0)
        return HEADER;
    return piece < LEAST_PAGE ? piece : LEAST_PAGE;
}

static chunk *open_chunk(hl_pool *pool, uint8_t class, uint32_t piece)
{
    chunk *c = pool->empty != NULL ? empty_chunk(pool) : fresh_chunk(pool);
    if (c == NULL)
        return NULL;
    c->class = class;
    c->piece = piece;
    c->used = 0;
    c->free_pieces = NULL;
    c->fresh = first_piece(piece);
    push(&pool->partial[class], c);
    return c;
}

static void close_chunk(hl_pool *pool, chunk *c)
{
    push(&pool->empty, c);
    chunk *first = first_of_mapping(c);
    c->warm = pool->warm < MOST_WARM;
    if (c->warm) {
        pool->warm++;
    } else {
        uint32_t page = (uint32_t)hl_os_page();
        hl_os_discard((char *)c + page, CHUNK - page);
        pool->bytes -= c->touched - page;
        c->touched = page;
    }
    if (++first->empty_chunks == CHUNKS_PER_MAPPING && (first->next_mapping != NULL || first->previous_mapping != NULL))
        give_up_mapping(pool, first);
}

static bool is_full(const chunk *c)
{
    return c->free_pieces == NULL && c->fresh + c->piece > CHUNK;
}

static void *alloc_large(hl_pool *pool, size_t bytes)
{
    size_t page = hl_os_page();
    size_t mapped = (bytes + HEADER + page - 1) / page * page;
    large *piece = hl_os_map(mapped);
    if (piece == NULL)
        return NULL;
    piece->bytes = mapped;
    piece->next = pool->larges;
    if (piece->next != NULL)
        piece->next->previous = piece;
    pool->larges = piece;
    pool->bytes += mapped;
    return (char *)piece + HEADER;
}

static void free_large(hl_pool *pool, void *memory)
{
    large *piece = (large *)(void *)((char *)memory - HEADER);
    if (piece->previous != NULL)
        piece->previous->next = piece->next;
    else
        pool->larges = piece->next;
    if (piece->next != NULL)
        piece->next->previous = piece->previous;
    pool->bytes -= piece->bytes;
    hl_os_unmap(piece, piece->bytes);
}

void *hl_pool_alloc(hl_pool *pool, size_t bytes)
{
    if (bytes > LARGEST)
        return alloc_large(pool, bytes);
    uint32_t size;
    uint8_t class = class_of(bytes, &size);
    chunk *c = pool->partial[class];
    if (c == NULL) {
        c = open_chunk(pool, class, size);
        if (c == NULL)
            return NULL;
    }
    void *piece = c->free_pieces;
    if (piece != NULL) {
        memcpy(&c->free_pieces, piece, sizeof c->free_pieces);
    } else {
        piece = (char *)c + c->fresh;
        c->fresh += size;
        touch(pool, c, c->fresh);
    }
    c->used++;
    if (is_full(c))
        take_out(&pool->partial[class], c);
    return memset(piece, 0, size);
}

void hl_pool_free(hl_pool *pool, void *piece, size_t bytes)
{
    if (bytes > LARGEST) {
        free_large(pool, piece);
        return;
    }
    chunk *c = (chunk *)((uintptr_t)piece & ~(uintptr_t)(CHUNK - 1));
    if (is_full(c))
        push(&pool->partial[c->class], c);
    memcpy(piece, &c->free_pieces, sizeof c->free_pieces);
    c->free_pieces = piece;
    if (--c->used == 0) {
        take_out(&pool->partial[c->class], c);
        close_chunk(pool, c);
    }
}

void hl_pool_clear(hl_pool *pool)
{
    chunk *newest = pool->mappings;
    unmap_all(newest == NULL ? NULL : newest->next_mapping, pool->larges);
    *pool = (hl_pool){.mappings = newest, .fresh = pool->fresh, .fresh_count = pool->fresh_count};
    if (newest == NULL)
        return;
    newest->next_mapping = NULL;
    newest->empty_chunks = 0;
    uint32_t opened = CHUNKS_PER_MAPPING - pool->fresh_count;
    for (uint32_t place = 0; place < opened; place++) {
        pool->bytes += chunk_in(newest, place)->touched;
        close_chunk(pool, chunk_in(newest, place));
    }
}

size_t hl_pool_memory(const hl_pool *pool)
{
    return pool->bytes;
}
