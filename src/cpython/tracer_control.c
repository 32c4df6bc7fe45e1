/* tracer_control.c: control, and what the tracer does around a fork. See tracer_control.h. */

#include "tracer_control.h"

#include <pthread.h>

#include "../elf/interpose.h"
#include "hooks.h"

static hl_lock control;

/* Wait without the GIL, if this thread has one, because the thread that we wait for may need it. */

static PyThreadState *without_gil(void)
{
    PyThreadState *thread;
    (void)hl_frames_here(false, &thread);
    return thread == NULL ? NULL : PyEval_SaveThread();
}

static void with_gil_again(PyThreadState *thread)
{
    if (thread != NULL)
        PyEval_RestoreThread(thread);
}

void hl_tracer_take_control(void)
{
    if (hl_lock_try(&control))
        return;
    PyThreadState *thread = without_gil();
    hl_lock_take(&control);
    with_gil_again(thread);
}

void hl_tracer_give_control(void)
{
    hl_lock_give(&control);
}

static void await_fork(hl_lock *lock)
{
    PyThreadState *thread = without_gil();
    hl_os_sleep_while(&lock->word, HL_LOCK_FORKING);
    with_gil_again(thread);
}

static void after_fork_in_parent(void)
{
    hl_hooks_end_fork(false);
}

static void after_fork_in_child(void)
{
    hl_lock_end_fork(&control); /* the thread that had it is gone */
    hl_hooks_end_fork(true);
    hl_interpose_forked();
}

/* Before a fork, the C library calls the handlers in reverse order: the handler that was registered first runs last.
 * Ours holds locks from then on. So we register it as early as possible, when this library is loaded. */
static __attribute__((constructor)) void prepare_for_forks(void)
{
    hl_lock_await_fork = await_fork;
    (void)pthread_atfork(hl_hooks_begin_fork, after_fork_in_parent, after_fork_in_child);
}
