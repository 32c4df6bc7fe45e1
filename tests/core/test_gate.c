/* test_gate.c: the two sides of the gate never meet inside. */

#include <pthread.h>
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
        bool fast = hl_gate_enter_favoured(&gate);
        fast_ways += fast;
        visit();
        hl_gate_leave_favoured(&gate, fast);
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
    hl_gate_reset(&gate);
    bool fast = false;
    for (int i = 0; i <= HL_GATE_REOPEN; i++) {
        fast = hl_gate_enter_favoured(&gate);
        hl_gate_leave_favoured(&gate, fast);
    }
    CHECK_EQUAL(fast, hl_os_has_barrier());
}

/* A signal handler that has interrupted somebody inside is told so, and the gate works as before afterwards. */
static void a_handler_does_not_wait_for_whom_it_interrupts(void)
{
    hl_gate_reset(&gate);
    hl_gate_enter(&gate);
    CHECK(!hl_gate_try(&gate));
    hl_gate_leave(&gate);
    CHECK(hl_gate_try(&gate));
    CHECK(!hl_gate_try(&gate));
    hl_gate_leave(&gate);
    bool fast = false;
    for (int i = 0; i <= HL_GATE_REOPEN; i++) {
        fast = hl_gate_enter_favoured(&gate);
        if (i < HL_GATE_REOPEN)
            hl_gate_leave_favoured(&gate, fast);
    }
    CHECK(!hl_gate_try(&gate)); /* from inside, with the lock or without */
    /* Had it left the gate closed, the next one would think that nobody is inside. */
    CHECK(!hl_gate_try(&gate));
    hl_gate_leave_favoured(&gate, fast);
    CHECK(hl_gate_try(&gate));
    hl_gate_leave(&gate);
}

CHECK_MAIN(TEST(nobody_meets_inside), TEST(the_favoured_side_alone_ends_up_without_the_lock),
           TEST(a_handler_does_not_wait_for_whom_it_interrupts))
