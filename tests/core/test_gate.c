/* test_gate.c: the two sides of the gate never meet inside. */

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "../../src/core/gate.h"
#include "check.h"

enum { FAVOURED_ROUNDS = 3000000, OTHER_ROUNDS = 20000, OTHERS = 2 };

static hl_gate gate = HL_GATE_INIT;
static uint64_t guarded[2]; /* kept equal by whoever is inside */
static uint64_t torn, fast_ways;

static void visit(void)
{
    if (guarded[0] != guarded[1])
        torn++;
    guarded[0]++;
    __asm__ volatile("" ::: "memory");
    guarded[1]++;
}

static void *favoured(void *unused)
{
    for (int i = 0; i < FAVOURED_ROUNDS; i++) {
        hl_passage passage = hl_gate_enter_by(&gate, true);
        fast_ways += passage == HL_GATE_BY_FLAG;
        visit();
        hl_gate_leave_by(&gate, passage);
    }
    return unused;
}

static void *other(void *unused)
{
    for (int i = 0; i < OTHER_ROUNDS; i++) {
        hl_gate_enter(&gate);
        visit();
        hl_gate_leave(&gate);
        if (i % 50 == 0)
            usleep(100); /* long enough for the gate to open again */
    }
    return unused;
}

static void nobody_meets_inside(void)
{
    pthread_t threads[OTHERS + 1];
    guarded[0] = guarded[1] = torn = fast_ways = 0;
    CHECK_OR_RETURN(pthread_create(&threads[0], NULL, favoured, NULL) == 0);
    for (int i = 1; i <= OTHERS; i++)
        CHECK_OR_RETURN(pthread_create(&threads[i], NULL, other, NULL) == 0);
    for (int i = 0; i <= OTHERS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQUAL(torn, 0);
    CHECK_EQUAL(guarded[0], FAVOURED_ROUNDS + (uint64_t)OTHERS * OTHER_ROUNDS);
    CHECK_EQUAL(guarded[1], guarded[0]);
    if (hl_os_has_barrier()) /* else the gate is a plain lock, by design */
        CHECK(fast_ways > 0 && fast_ways < FAVOURED_ROUNDS);
}

static void the_favoured_side_alone_ends_up_without_the_lock(void)
{
    gate = (hl_gate)HL_GATE_INIT;
    hl_passage passage = HL_GATE_REFUSED;
    for (int i = 0; i <= HL_GATE_REOPEN; i++) {
        passage = hl_gate_enter_by(&gate, true);
        hl_gate_leave_by(&gate, passage);
    }
    CHECK_EQUAL(passage == HL_GATE_BY_FLAG, hl_os_has_barrier());
}

/* A signal handler that has interrupted somebody inside is told so, and the gate works as before afterwards. */
static void a_handler_does_not_wait_for_whom_it_interrupts(void)
{
    gate = (hl_gate)HL_GATE_INIT;
    hl_gate_enter(&gate);
    CHECK(!hl_gate_try(&gate));
    hl_gate_leave(&gate);
    CHECK(hl_gate_try(&gate));
    CHECK(!hl_gate_try(&gate));
    hl_gate_leave(&gate);
    hl_passage passage = HL_GATE_REFUSED;
    for (int i = 0; i <= HL_GATE_REOPEN; i++) {
        passage = hl_gate_enter_by(&gate, true);
        if (i < HL_GATE_REOPEN)
            hl_gate_leave_by(&gate, passage);
    }
    CHECK(!hl_gate_try(&gate)); /* from inside, with the lock or without */
    /* Had it left the gate closed, the next one would think that nobody is inside. */
    CHECK(!hl_gate_try(&gate));
    hl_gate_leave_by(&gate, passage);
    CHECK(hl_gate_try(&gate));
    hl_gate_leave(&gate);
}

/* --- a fork that goes on while others come by --- */

static void begin_fork(void)
{
    hl_gate_enter(&gate);
    hl_lock_forks_here = true;
    hl_lock_begin_fork(&gate.lock);
}

static void end_fork(void)
{
    hl_lock_forks_here = false;
    hl_lock_end_fork(&gate.lock);
}

static void *come_as_a_hook(void *favoured)
{
    hl_passage passage = hl_gate_enter_by(&gate, favoured != NULL);
    if (passage != HL_GATE_REFUSED)
        hl_gate_leave_by(&gate, passage);
    return passage == HL_GATE_REFUSED ? NULL : &gate;
}

static void *come_and_wait(void *unused)
{
    hl_gate_enter(&gate);
    hl_gate_leave(&gate);
    return unused;
}

static void *result_of(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    void *result = NULL;
    if (pthread_create(&thread, NULL, function, argument) == 0)
        pthread_join(thread, &result);
    return result;
}

static void a_hook_is_refused_in_a_long_fork(void)
{
    gate = (hl_gate)HL_GATE_INIT;
    begin_fork();
    CHECK(result_of(come_as_a_hook, NULL) == NULL);
    CHECK(result_of(come_as_a_hook, &gate) == NULL);
    for (int i = 0; i <= 2 * HL_GATE_REOPEN; i++) /* the forking thread itself passes, and opens the gate for nobody */
        CHECK(come_as_a_hook(&gate) != NULL);
    CHECK(result_of(come_as_a_hook, &gate) == NULL);
    end_fork();
    CHECK(result_of(come_as_a_hook, NULL) != NULL);
    CHECK(result_of(come_as_a_hook, &gate) != NULL);
}

static void a_hook_waits_for_a_short_fork(void)
{
    pthread_t thread;
    void *result = NULL;
    gate = (hl_gate)HL_GATE_INIT;
    begin_fork();
    CHECK_OR_RETURN(pthread_create(&thread, NULL, come_as_a_hook, NULL) == 0);
    usleep(5000);
    end_fork();
    pthread_join(thread, &result);
    CHECK(result != NULL);
}

/* Sleepers of before the fork and of during the fork: all of them must wake up. */
static void nobody_sleeps_on_after_a_fork(void)
{
    enum { EACH = 3 };
    pthread_t threads[2 * EACH];
    gate = (hl_gate)HL_GATE_INIT;
    hl_gate_enter(&gate);
    for (int i = 0; i < EACH; i++)
        CHECK_OR_RETURN(pthread_create(&threads[i], NULL, come_and_wait, NULL) == 0);
    usleep(5000);
    hl_lock_forks_here = true;
    hl_lock_begin_fork(&gate.lock);
    for (int i = EACH; i < 2 * EACH; i++)
        CHECK_OR_RETURN(pthread_create(&threads[i], NULL, come_and_wait, NULL) == 0);
    usleep(5000);
    end_fork();
    for (int i = 0; i < 2 * EACH; i++)
        pthread_join(threads[i], NULL);
}

/* --- a real-time thread --- */

static pthread_barrier_t favoured_is_in;
static struct timespec spent; /* processor time of the real-time thread in the gate */

static void *stay_inside_for_a_while(void *unused)
{
    CHECK(hl_gate_enter_by(&gate, true) == HL_GATE_BY_FLAG);
    pthread_barrier_wait(&favoured_is_in);
    for (volatile int i = 0; i < 20000000; i++)
        ; /* no system call, so that it goes on only if it gets the processor */
    hl_gate_leave_favoured(&gate);
    return unused;
}

static void *come_with_priority(void *unused)
{
    pthread_barrier_wait(&favoured_is_in);
    hl_gate_enter(&gate);
    hl_gate_leave(&gate);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return unused;
}

/* On one processor, a thread with real-time priority that only yields keeps out the thread it waits for. (The system
 * lets others have a twentieth of the processor, so that this would not last for ever.) */
static void a_real_time_thread_lets_others_finish(void)
{
    cpu_set_t one, all;
    pthread_t threads[2];
    pthread_attr_t attributes;
    struct sched_param priority = {.sched_priority = 1};
    gate = (hl_gate)HL_GATE_INIT;
    for (int i = 0; i <= HL_GATE_REOPEN; i++)
        (void)come_as_a_hook(&gate);
    if (!hl_os_has_barrier() || sched_getaffinity(0, sizeof all, &all) != 0)
        return; /* a plain lock, which parks */
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &priority);
    pthread_barrier_init(&favoured_is_in, NULL, 2);
    CHECK_OR_RETURN(sched_setaffinity(0, sizeof one, &one) == 0);
    bool allowed = pthread_create(&threads[1], &attributes, come_with_priority, NULL) == 0;
    if (!allowed) /* without the right to, the same with a plain thread */
        CHECK_OR_RETURN(pthread_create(&threads[1], NULL, come_with_priority, NULL) == 0);
    CHECK_OR_RETURN(pthread_create(&threads[0], NULL, stay_inside_for_a_while, NULL) == 0);
    (void)sched_setaffinity(0, sizeof all, &all);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    CHECK(spent.tv_sec == 0 && spent.tv_nsec < 20 * 1000 * 1000);
    pthread_attr_destroy(&attributes);
    pthread_barrier_destroy(&favoured_is_in);
}

CHECK_MAIN(TEST(nobody_meets_inside), TEST(the_favoured_side_alone_ends_up_without_the_lock),
           TEST(a_handler_does_not_wait_for_whom_it_interrupts), TEST(a_hook_is_refused_in_a_long_fork),
           TEST(a_hook_waits_for_a_short_fork), TEST(nobody_sleeps_on_after_a_fork),
           TEST(a_real_time_thread_lets_others_finish))
