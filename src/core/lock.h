/* lock.h: the smallest lock that parks.
 *
 * One word: 0 free, 1 held, 2 held with sleepers (Drepper's "Futexes are tricky", third mutex). An uncontended pair
 * costs two atomic exchanges and no call, which is why it is not a pthread_mutex_t. Those on the path of an
 * allocation are held without blocking on anything else or calling out of the core, so no lock order with the host's locks
 * can arise.
 *
 * Whoever forks takes all locks before, so that no table is caught in the middle of a change, and says so: the host may
 * run code in that thread before they are given back (handlers of pthread_atfork), which then has them already. The
 * child's only thread calls hl_lock_reset: the thread that held the lock does not exist there.
 */
#ifndef HL_LOCK_H
#define HL_LOCK_H

#include <stdatomic.h>

#include "os.h"

typedef struct {
    _Atomic uint32_t word;
} hl_lock;

/* This thread has all locks there are: it forks. */
extern __thread bool hl_lock_has_all;

static inline void hl_lock_take(hl_lock *lock)
{
    uint32_t seen = 0;
    if (HL_LIKELY(
            atomic_compare_exchange_strong_explicit(&lock->word, &seen, 1, memory_order_acquire, memory_order_relaxed)))
        return;
    if (HL_UNLIKELY(hl_lock_has_all))
        return;
    if (seen != 2)
        seen = atomic_exchange_explicit(&lock->word, 2, memory_order_acquire);
    while (seen != 0) {
        hl_os_sleep_while(&lock->word, 2);
        seen = atomic_exchange_explicit(&lock->word, 2, memory_order_acquire);
    }
}

static inline bool hl_lock_try(hl_lock *lock)
{
    uint32_t seen = 0;
    return atomic_compare_exchange_strong_explicit(&lock->word, &seen, 1, memory_order_acquire, memory_order_relaxed);
}

static inline void hl_lock_give(hl_lock *lock)
{
    if (HL_UNLIKELY(hl_lock_has_all))
        return;
    if (HL_UNLIKELY(atomic_exchange_explicit(&lock->word, 0, memory_order_release) == 2))
        hl_os_wake_one(&lock->word);
}

static inline void hl_lock_reset(hl_lock *lock)
{
    atomic_store_explicit(&lock->word, 0, memory_order_relaxed);
}

#endif
