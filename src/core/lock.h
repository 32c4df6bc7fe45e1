/* lock.h: the smallest lock that parks, and that a fork can hold without harm.
 *
 * The lock is one word: free, held, held with sleepers (Drepper's "Futexes are tricky"), or held during a fork. An
 * uncontended pair costs two atomic exchanges and no call. This is why it is not a pthread_mutex_t. A holder never
 * blocks on anything else and never calls out of the core. So no lock order with the host's locks can arise.
 *
 * The exception is a fork. The forking thread takes the ledger's locks before the fork, so that the child finds
 * consistent tables. The C library may then run other libraries' fork handlers in that thread. Such a handler may
 * wait for other threads, or for the GIL that one of them has. So nobody may sleep for long behind a fork:
 *
 *   - The forking thread itself passes its own locks.
 *   - A hook waits a moment, which is enough for a fork that nobody delays, and then gives up
 *     (hl_lock_take_unless_forking).
 *   - Everybody else waits without the GIL (hl_lock_await_fork).
 */
#ifndef HL_LOCK_H
#define HL_LOCK_H

#include <stdatomic.h>

#include "os.h"

enum { HL_LOCK_FREE, HL_LOCK_HELD, HL_LOCK_CONTENDED, HL_LOCK_FORKING };

typedef struct {
    _Atomic uint32_t word;
} hl_lock;

/* This thread is forking. It holds every lock that is held during a fork. */
extern __thread bool hl_lock_forks_here;

/* Sleep until the fork that holds the lock is over. It may return early. Code that knows what a thread must not keep
 * while it sleeps (the GIL) puts a better function here, before there are threads. */
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

/* Returns false if another thread has held the lock during a fork for a while. */
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

/* The holder is forking, and has set hl_lock_forks_here. All sleepers check again. */
void hl_lock_begin_fork(hl_lock *lock);
/* The fork is over: in the parent; and in the child, where another library's handler may have started threads that
 * already sleep here. */
void hl_lock_end_fork(hl_lock *lock);

#endif
