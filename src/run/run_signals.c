/* run_signals.c: files that are written in signal handlers. See run.h.
 *
 * If a signal ends a process by default, its handler is the last chance to write a file. If a process is blocked in a
 * call, a handler is the only way to make it write one. Python's own handlers do not suffice. A program can see them,
 * and they run only when the interpreter gets to it, which may be never. So our handlers are in C, and only the system
 * knows them: we install them after the interpreter has looked for handlers. A program that sets its own handler
 * replaces ours. Servers often restore the default before they send themselves the signal that stopped them. In that
 * case we put our handler back.
 *
 * A handler does only what POSIX allows: system calls, and our own code on memory that comes from the system in pages.
 * The interrupted thread may be using the ledger. In that case the handler returns, and a timer sends the signal again,
 * for at most a fifth of a second.
 *
 * If a signal ends the process by default, it still does so after the file is written. So the parent sees the same
 * status.
 *
 * Threading: a handler runs on any thread.
 */

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../core/digits.h"
#include "run.h"

/* Signals that end a process by default. Python handles or ignores the last two, so they end it only if a program
 * restores the default. */
static const int deadly[] = {SIGHUP,  SIGQUIT,   SIGALRM, SIGTERM, SIGUSR1, SIGUSR2,
                             SIGXCPU, SIGVTALRM, SIGPROF, SIGINT,  SIGPIPE};
enum { DEADLY = sizeof deadly / sizeof deadly[0], DEADLY_AT_FIRST = DEADLY - 2 };

enum { TRIES = 40, TRY_AGAIN = 5000000 /* nanoseconds */ };

static atomic_int tries;
static atomic_uint written; /* number of files in the series */
static int ticking;         /* the signal for --every; 0 if there is none */
static const char ours;     /* signals from our timers carry its address */

/* Lets the system send the signal once. Returns false if that is not possible. The timers of the C library may allocate
 * memory. The timers of the system do not. */
static bool set_timer(int signal, int64_t nanoseconds)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = signal};
    event.sigev_value.sival_ptr = (void *)(uintptr_t)&ours;
    struct itimerspec when = {.it_value = {nanoseconds / 1000000000, nanoseconds % 1000000000}};
    int timer;
    return syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) == 0 &&
           syscall(SYS_timer_settime, timer, 0, &when, NULL) == 0;
}

/* The interval runs from the end of one file to the next one. So the program makes progress, however long writing
 * takes. */
static void tick_later(void)
{
    (void)set_timer(ticking, (int64_t)hl_run_given.every * 1000000);
}

/* Returns true if the signal will come again. Otherwise *status is HL_OK or HL_STOPPED. */
static bool write_part(int signal, const char *part, char name[PATH_MAX], hl_status *status, int *error)
{
    *status = hl_run_write(true, part, name, error);
    if (*status == HL_BUSY && (hl_run_is_writing() || atomic_fetch_add(&tries, 1) < TRIES) &&
        set_timer(signal, TRY_AGAIN))
        return true;
    atomic_store(&tries, 0);
    if (*status == HL_BUSY) {
        *status = HL_OK;
        *error = EBUSY;
    }
    return false;
}

static void end_by(int signal)
{
    struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigset_t only;
    (void)sigaction(signal, &by_default, NULL);
    (void)sigemptyset(&only);
    (void)sigaddset(&only, signal);
    (void)raise(signal); /* stays pending until it is unblocked */
    (void)sigprocmask(SIG_UNBLOCK, &only, NULL);
}

static bool asks_for_file(int signal)
{
    return signal == hl_run_given.signal || signal == ticking;
}

static void write_in_series(int signal)
{
    char part[HL_DIGITS_ROOM + 8] = "-", name[PATH_MAX], digits[HL_DIGITS_ROOM];
    hl_status status;
    int error;
    unsigned number = atomic_load(&written) + 1;
    size_t width = (size_t)(hl_digits(digits, number, 10) - digits);
    strcat(strncat(part, "000", width < 4 ? 4 - width : 0), digits);
    if (write_part(signal, part, name, &status, &error))
        return;
    if (status == HL_OK && error == 0)
        atomic_store(&written, number);
    else if (status == HL_OK)
        hl_run_say_failure(name, error);
    if (signal == ticking)
        tick_later();
}

/* Returns true if the process must end now. */
static bool write_last(int signal)
{
    char name[PATH_MAX];
    hl_status status;
    int error;
    if (write_part(signal, "", name, &status, &error))
        return false;
    hl_run_tell(true, status, error, name);
    return true;
}

static void handle(int signal, siginfo_t *info, void *context)
{
    int host_errno = errno;
    (void)context;
    if (info->si_code == SI_TIMER && info->si_value.sival_ptr == &ours)
        (void)syscall(SYS_timer_delete, info->si_timerid);
    if (hl_run_is_newborn() && set_timer(signal, TRY_AGAIN)) {
        errno = host_errno;
        return;
    }
    /* The child of a vfork must not write, because it uses the memory of its parent. Neither must children that are not
     * followed. */
    bool writes = getpid() == hl_run_owner && !hl_run_has_left();
    if (!asks_for_file(signal)) {
        if (!writes || write_last(signal))
            end_by(signal);
    } else if (writes) {
        write_in_series(signal);
    }
    errno = host_errno;
}

static void catch(int signal, bool whatever)
{
    struct sigaction now, action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART};
    (void)sigemptyset(&action.sa_mask);
    if (sigaction(signal, NULL, &now) == 0 && (whatever || now.sa_handler == SIG_DFL))
        (void)sigaction(signal, &action, NULL);
}

void hl_run_catch_again(int signal)
{
    bool concerns_us = asks_for_file(signal);
    for (size_t i = 0; i < DEADLY; i++)
        concerns_us |= deadly[i] == signal;
    if (concerns_us && getpid() == hl_run_owner)
        catch(signal, false);
}

void hl_run_handler_set(int signal)
{
    static bool said;
    struct sigaction now;
    char number[HL_DIGITS_ROOM];
    hl_run_catch_again(signal);
    if (signal != hl_run_given.signal || said || hl_run_given.quiet || getpid() != hl_run_owner ||
        sigaction(signal, NULL, &now) != 0 || now.sa_sigaction == handle)
        return;
    said = true;
    (void)hl_digits(number, (uint64_t)signal, 10);
    hl_run_say("heapledger: the program handles signal ", number,
               " itself, so no file is written on it: choose another with --on-signal\n", NULL);
}

/* Finds an unused signal for the timer. This is the last unused one, because programs begin with the first. */
static int find_free_signal(void)
{
    for (int signal = SIGRTMAX; signal >= SIGRTMIN; signal--) {
        struct sigaction now;
        if (sigaction(signal, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            return signal;
    }
    return 0;
}

void hl_run_catch_signals(void)
{
    for (size_t i = 0; i < DEADLY_AT_FIRST; i++)
        catch(deadly[i], false);
    if (hl_run_given.signal != 0)
        catch(hl_run_given.signal, true);
    if (hl_run_given.every != 0 && (ticking = find_free_signal()) != 0) {
        catch(ticking, true);
        tick_later();
    }
}

void hl_run_forked_signals(void)
{
    atomic_store(&tries, 0);
    atomic_store(&written, 0);
    if (ticking != 0)
        tick_later();
}
