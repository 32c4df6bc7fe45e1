/* lock.c: see lock.h. */

#include "lock.h"

/* How long a hook waits for a fork: longer than most forks take, and short enough for a host whose fork handler waits
 * for this thread. After one thread has waited in vain, no other thread begins to wait in this fork. */
enum { PATIENCE = 100 /* milliseconds */ };

__thread bool hl_lock_forks_here;
static _Atomic bool out_of_patience; /* in the current fork */

static void sleep_until_forked(hl_lock *lock)
{
    hl_os_sleep_while(&lock->word, HL_LOCK_FORKING);
}

void (*hl_lock_await_fork)(hl_lock *lock) = sleep_until_forked;

static bool outwait_fork(hl_lock *lock)
{
    if (atomic_load_explicit(&out_of_patience, memory_order_relaxed))
        return false;
    for (int waited = 0; waited < PATIENCE; waited++) {
        hl_os_sleep_while_for(&lock->word, HL_LOCK_FORKING, 1);
        if (!hl_lock_is_forking(lock))
            return true;
    }
    atomic_store_explicit(&out_of_patience, true, memory_order_relaxed);
    return false;
}

/* Returns false if the lock is held during a fork, for longer than `patient` callers wait. */
static bool contend(hl_lock *lock, bool patient)
{
    if (hl_lock_forks_here)
        return true;
    uint32_t seen = atomic_load_explicit(&lock->word, memory_order_relaxed);
    for (;;) {
        if (seen == HL_LOCK_FORKING) {
            if (!patient || !outwait_fork(lock))
                return false;
            seen = atomic_load_explicit(&lock->word, memory_order_relaxed);
        } else if (seen == HL_LOCK_CONTENDED) {
            hl_os_sleep_while(&lock->word, HL_LOCK_CONTENDED);
            seen = atomic_load_explicit(&lock->word, memory_order_relaxed);
        } else if (atomic_compare_exchange_strong_explicit(&lock->word, &seen, HL_LOCK_CONTENDED, memory_order_acquire,
                                                           memory_order_relaxed)) {
            if (seen == HL_LOCK_FREE)
                return true; /* this may cause one wake too many later, because others may sleep */
            seen = HL_LOCK_CONTENDED;
        }
    }
}

bool hl_lock_contend(hl_lock *lock)
{
    return contend(lock, true);
}

void hl_lock_take_slowly(hl_lock *lock)
{
    while (!contend(lock, false))
        hl_lock_await_fork(lock);
}

void hl_lock_begin_fork(hl_lock *lock)
{
    atomic_store_explicit(&out_of_patience, false, memory_order_relaxed);
    atomic_store(&lock->word, HL_LOCK_FORKING);
    hl_os_wake_all(&lock->word);
}

void hl_lock_end_fork(hl_lock *lock)
{
    atomic_store(&lock->word, HL_LOCK_FREE);
    hl_os_wake_all(&lock->word);
}
