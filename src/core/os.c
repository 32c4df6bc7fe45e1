/* os.c: pages, scratch memory and futexes of Linux. See os.h. */

#include "os.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef HL_FAULTS
static _Atomic size_t fail_every, calls, failures;

size_t hl_os_fail_every(size_t n)
{
    atomic_store(&fail_every, n);
    atomic_store(&calls, 0);
    return atomic_exchange(&failures, 0);
}

static __thread bool libc_is_forbidden;

void hl_os_forbid_libc(bool forbidden)
{
    libc_is_forbidden = forbidden;
}

static bool must_fail(void)
{
    size_t n = atomic_load(&fail_every);
    if (n == 0 || (atomic_fetch_add(&calls, 1) + 1) % n != 0)
        return false;
    atomic_fetch_add(&failures, 1);
    return true;
}
#else
enum { libc_is_forbidden = false };

static inline bool must_fail(void)
{
    return false;
}
#endif

static void check_libc(void)
{
    if (libc_is_forbidden)
        abort();
}

size_t hl_os_page(void)
{
    static _Atomic size_t page;
    size_t known = atomic_load_explicit(&page, memory_order_relaxed);
    if (known == 0) {
        known = (size_t)sysconf(_SC_PAGESIZE);
        atomic_store_explicit(&page, known, memory_order_relaxed);
    }
    return known;
}

size_t hl_os_address_limit(void)
{
    struct rlimit limit;
    int host_errno = errno;
    bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    errno = host_errno;
    return limited ? (size_t)limit.rlim_cur : SIZE_MAX;
}

/* Nearly every mapping of ours is sparse or grows, so huge pages would only inflate it. errno belongs to the host: a
 * hook must not change it, whatever the system returns. */
static void *map(size_t bytes)
{
    int host_errno = errno;
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED)
        pages = NULL;
    else
        (void)madvise(pages, bytes, MADV_NOHUGEPAGE);
    errno = host_errno;
    return pages;
}

void *hl_os_map(size_t bytes)
{
    return must_fail() ? NULL : map(bytes);
}

void *hl_os_map_aligned(size_t bytes, size_t align)
{
    char *pages = hl_os_map(bytes + align);
    if (pages == NULL)
        return NULL;
    size_t before = (size_t)(-(uintptr_t)pages & (align - 1));
    if (before != 0)
        hl_os_unmap(pages, before);
    hl_os_unmap(pages + before + bytes, align - before);
    return pages + before;
}

void *hl_os_map_dense(size_t bytes)
{
    enum { HUGE_PAGE = 2 << 20 };
    char *pages = hl_os_map(bytes);
    if (pages == NULL || bytes < 2 * HUGE_PAGE)
        return pages;
    /* Only whole huge pages, so that parts which are never filled take no memory. */
    size_t before = (size_t)(-(uintptr_t)pages & (HUGE_PAGE - 1));
    int host_errno = errno;
    (void)madvise(pages + before, (bytes - before) / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    errno = host_errno;
    return pages;
}

void hl_os_unmap(void *pages, size_t bytes)
{
    int host_errno = errno;
    (void)munmap(pages, bytes);
    errno = host_errno;
}

void *hl_os_remap(void *pages, size_t old_bytes, size_t new_bytes)
{
    if (must_fail())
        return NULL;
    int host_errno = errno;
    void *moved = mremap(pages, old_bytes, new_bytes, MREMAP_MAYMOVE);
    errno = host_errno;
    return moved == MAP_FAILED ? NULL : moved;
}

void hl_os_discard(void *pages, size_t bytes)
{
    int host_errno = errno;
    if (madvise(pages, bytes, MADV_DONTNEED) != 0)
        memset(pages, 0, bytes); /* locked memory stays */
    errno = host_errno;
}

size_t hl_os_resident(const void *pages, size_t bytes)
{
    size_t page = hl_os_page(), resident = 0;
    unsigned char in_core[256];
    for (size_t at = 0; at < bytes; at += sizeof in_core * page) {
        size_t span = bytes - at < sizeof in_core * page ? bytes - at : sizeof in_core * page;
        if (mincore((char *)(uintptr_t)pages + at, span, in_core) != 0)
            return bytes;
        for (size_t i = 0; i < span / page; i++)
            resident += (in_core[i] & 1) * page;
    }
    return resident;
}

static __thread bool uses_pages;

void hl_os_use_pages(bool use)
{
    uses_pages = use;
}

/* Scratch memory in pages. Their length is stored before the bytes that the caller gets. */
typedef union {
    size_t bytes;
    max_align_t alignment;
} page_head;

static size_t paged_length(size_t count, size_t size)
{
    size_t bytes, page = hl_os_page();
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2)
        return 0;
    return (bytes + sizeof(page_head) + page - 1) / page * page;
}

static void *paged_alloc(size_t count, size_t size)
{
    size_t bytes = paged_length(count, size);
    page_head *head = bytes != 0 ? map(bytes) : NULL;
    if (head == NULL)
        return NULL;
    head->bytes = bytes;
    return head + 1;
}

static void *paged_resize(void *block, size_t count, size_t size)
{
    if (block == NULL)
        return paged_alloc(count, size);
    page_head *head = (page_head *)block - 1;
    size_t bytes = paged_length(count, size);
    head = bytes != 0 ? hl_os_remap(head, head->bytes, bytes) : NULL;
    if (head == NULL)
        return NULL;
    head->bytes = bytes;
    return head + 1;
}

void *hl_os_alloc(size_t count, size_t size)
{
    if (must_fail())
        return NULL;
    if (HL_UNLIKELY(uses_pages))
        return paged_alloc(count, size);
    check_libc();
    return calloc(count == 0 ? 1 : count, size);
}

void *hl_os_resize(void *block, size_t count, size_t size)
{
    if (must_fail())
        return NULL;
    if (HL_UNLIKELY(uses_pages))
        return paged_resize(block, count, size);
    check_libc();
    return reallocarray(block, count == 0 ? 1 : count, size);
}

void hl_os_free(void *block)
{
    if (HL_UNLIKELY(uses_pages && block != NULL)) {
        hl_os_unmap((page_head *)block - 1, ((page_head *)block - 1)->bytes);
        return;
    }
    check_libc();
    free(block);
}

static void futex(_Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
    int host_errno = errno;
    (void)syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
    errno = host_errno;
}

void hl_os_sleep_while(_Atomic uint32_t *word, uint32_t value)
{
    futex(word, FUTEX_WAIT_PRIVATE, value, NULL);
}

void hl_os_sleep_while_for(_Atomic uint32_t *word, uint32_t value, uint32_t milliseconds)
{
    struct timespec timeout = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000L};
    futex(word, FUTEX_WAIT_PRIVATE, value, &timeout);
}

void hl_os_wake_one(_Atomic uint32_t *word)
{
    futex(word, FUTEX_WAKE_PRIVATE, 1, NULL);
}

void hl_os_wake_all(_Atomic uint32_t *word)
{
    futex(word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL);
}

static enum { UNKNOWN, YES, NO } _Atomic barrier;

bool hl_os_has_barrier(void)
{
#ifdef __SANITIZE_THREAD__
    return false; /* the sanitizer does not know this barrier */
#else
    int answer = atomic_load_explicit(&barrier, memory_order_relaxed);
    if (answer == UNKNOWN) {
        int host_errno = errno;
        long failed = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
        errno = host_errno;
        answer = failed == 0 ? YES : NO;
        atomic_store_explicit(&barrier, answer, memory_order_relaxed);
    }
    return answer == YES;
#endif
}

void hl_os_barrier(void)
{
    int host_errno = errno;
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) {
        /* Forbidden in the meantime (by a sandbox): do not try again. This time, wait long enough for every store to
         * have arrived. */
        atomic_store_explicit(&barrier, NO, memory_order_relaxed);
        (void)usleep(10000);
    }
    errno = host_errno;
}

void hl_os_yield(void)
{
    (void)sched_yield();
}

void hl_os_pause(uint32_t attempt)
{
    enum { YIELDS = 10, SHORTEST = 20000, LONGEST = 1000000 /* nanoseconds */ };
    if (attempt < YIELDS) {
        hl_os_yield();
        return;
    }
    int host_errno = errno;
    long sleep = attempt - YIELDS < 6 ? (long)SHORTEST << (attempt - YIELDS) : LONGEST;
    (void)nanosleep(&(struct timespec){.tv_nsec = sleep < LONGEST ? sleep : LONGEST}, NULL);
    errno = host_errno;
}

uint64_t hl_os_random(void)
{
    int host_errno = errno;
    uint64_t drawn;
    if (getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) != (ssize_t)sizeof drawn) {
        struct timespec now; /* early in the boot, or forbidden */
        clock_gettime(CLOCK_REALTIME, &now);
        drawn = (uint64_t)getpid() << 40 ^ (uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec;
    }
    errno = host_errno;
    return drawn;
}
