/* lock.h: the smallest lock that parks, and that a fork can hold without harm.
 *
 * One word: free, held, held with sleepers (Drepper's "Futexes are tricky"), or held over a fork. An uncontended pair
 * costs two atomic exchanges and no call, which is why it is not a pthread_mutex_t. A holder never blocks on anything
 * else and never calls out of the core, so no lock order with the host's locks can arise.
 *
 * The exception is a fork. The forking thread takes the ledger's locks before the fork, so that the child finds whole
 * tables. The C library may then run other libraries' fork handlers in that thread, and such a handler may wait for other
 * threads, or for the GIL that one of them has. So nobody may sleep for long behind a fork:
 *
 *   - the forking thread itself passes its own locks;
 *   - a hook waits a moment, which is enough for a fork that nobody delays, and then gives up
 *     (hl_lock_take_unless_forking);
 *   - everybody else waits without the GIL (hl_lock_await_fork).
 */
#ifndef HL_LOCK_H
#define HL_LOCK_H

#include <stdatomic.h>

#include "os.h"

enum { HL_LOCK_FREE, HL_LOCK_HELD, HL_LOCK_CONTENDED, HL_LOCK_FORKING };

typedef struct {
    _Atomic uint32_t word;
} hl_lock;

/* This thread forks, and holds every lock that is held over a fork. */
extern __thread bool hl_lock_forks_here;

/* Sleep until the fork that holds the lock is over. It may return early. Whoever knows what a thread must not keep while
 * it sleeps (the GIL) puts a better function here, before there are threads. */
extern void (*hl_lock_await_fork)(hl_lock *lock);

/* The unusual cases of the functions below. */
bool hl_lock_contend(hl_lock *lock) HL_MUST_USE;
void hl_lock_take_slowly(hl_lock *lock);

static inline bool hl_lock_try(hl_lock *lock)
{
    uint32_t seen = HL_LOCK_FREE;
    return atomic_compare_exchange_strong_explicit(&lock->word, &seen, HL_LOCK_HELD, memory_order_acquire,
                                                   memory_order_relaxed);
}

static inline void hl_lock_take(hl_lock *lock)
{
    if (HL_UNLIKELY(!hl_lock_try(lock)))
        hl_lock_take_slowly(lock);
}

/* False: another thread holds the lock over a fork, and has for a while. */
static inline bool hl_lock_take_unless_forking(hl_lock *lock)
{
    return HL_LIKELY(hl_lock_try(lock)) || hl_lock_contend(lock);
}

static inline void hl_lock_give(hl_lock *lock)
{
    if (HL_UNLIKELY(hl_lock_forks_here))
        return;
    if (HL_UNLIKELY(atomic_exchange_explicit(&lock->word, HL_LOCK_FREE, memory_order_release) == HL_LOCK_CONTENDED))
        hl_os_wake_one(&lock->word);
}

static inline bool hl_lock_is_forking(hl_lock *lock)
{
    return atomic_load(&lock->word) == HL_LOCK_FORKING;
}

/* The holder forks, and has set hl_lock_forks_here: whoever sleeps looks again. */
void hl_lock_begin_fork(hl_lock *lock);
/* The fork is over: in the parent; and in the child, where another library's handler may have started threads that sleep
 * here already. */
void hl_lock_end_fork(hl_lock *lock);

#endif
