/* os.h: the core's only access to the operating system.
 *
 * None of our memory may come from the allocators that we hook. So tables are in pages mapped here, and scratch
 * memory comes directly from libc. A port to another system changes only this file. Here tests can also make every
 * n-th allocation fail.
 *
 * Threading: any thread may call every function, with or without locks. None of them takes a lock of ours.
 */
#ifndef HL_OS_H
#define HL_OS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

/* Zeroed pages; `bytes` is a multiple of hl_os_page(). NULL when there are none. */
void *hl_os_map(size_t bytes) HL_MUST_USE;
/* The same with the address a multiple of `align`, a power of two. */
void *hl_os_map_aligned(size_t bytes, size_t align) HL_MUST_USE;
/* The same for an array that will be filled: huge pages wherever they fit, each with a single fault. */
void *hl_os_map_dense(size_t bytes) HL_MUST_USE;
void hl_os_unmap(void *pages, size_t bytes);
/* Grow or shrink a mapping made by hl_os_map; it may move when it grows. NULL leaves the old one as it was. */
void *hl_os_remap(void *pages, size_t old_bytes, size_t new_bytes) HL_MUST_USE;
/* Forget the content (it reads as zero) and give the memory back. The addresses stay. */
void hl_os_discard(void *pages, size_t bytes);
/* How many bytes of a mapping are in memory. */
size_t hl_os_resident(const void *pages, size_t bytes);
size_t hl_os_page(void);
/* How many bytes of addresses the process may have (ulimit -v); SIZE_MAX: no limit. */
size_t hl_os_address_limit(void);

/* Scratch memory for analysis, off the hook path. Zeroed. Freed with hl_os_free. */
void *hl_os_alloc(size_t count, size_t size) HL_MUST_USE;
/* Resize scratch memory; new bytes are not zeroed. NULL leaves the old block as it was. */
void *hl_os_resize(void *block, size_t count, size_t size) HL_MUST_USE;
void hl_os_free(void *block);

/* While it uses pages, the calling thread gets its scratch memory in whole pages from the system. A signal handler
 * needs this, because it may have interrupted the C library's allocator. So does a thread that holds the ledger. The
 * thread must free everything that it allocated before it switches back, and nothing that it had before. */
void hl_os_use_pages(bool use);

/* Sleep while *word holds `value`, without a limit or for some milliseconds; may return early. Wake one sleeper, or
 * all. */
void hl_os_sleep_while(_Atomic uint32_t *word, uint32_t value);
void hl_os_sleep_while_for(_Atomic uint32_t *word, uint32_t value, uint32_t milliseconds);
void hl_os_wake_one(_Atomic uint32_t *word);
void hl_os_wake_all(_Atomic uint32_t *word);

/* Make every running thread of the process pass a memory barrier. Only possible if hl_os_has_barrier() is true. */
bool hl_os_has_barrier(void);
void hl_os_barrier(void);
void hl_os_yield(void);
/* Let another thread that is nearly done continue. Call this in a loop with the number of the round. At first it only
 * yields. Later it sleeps: a real-time thread that only yields would keep the processor from a thread of lower
 * priority forever. */
void hl_os_pause(uint32_t attempt);

/* A number that no other process will draw. */
uint64_t hl_os_random(void);

/* While the ledger is held, nobody may call the C library's allocator: a replacement of it may call back into us.
 * Test builds abort if somebody does. */
#ifdef HL_FAULTS
void hl_os_forbid_libc(bool forbidden);
#else
static inline void hl_os_forbid_libc(bool forbidden)
{
    (void)forbidden;
}
#endif

#ifdef HL_FAULTS
/* Test builds only: from now on every n-th call that obtains memory fails (0: none). Returns how many have failed.
 * Tests of the extension find this function by name. */
__attribute__((visibility("default"))) size_t hl_os_fail_every(size_t n);
#endif

#endif
