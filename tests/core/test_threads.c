/* test_threads.c: the ledger behind its gate, used as the tracer uses it by many threads at once.
 *
 * Two threads pass a mutex to each other, as threads do with the main interpreter's GIL, and go in by the favoured
 * side; two go in by the other. All enter blocks and remove what another thread has entered. Meanwhile one thread takes
 * snapshots and reads them without the gate, and in the second test one replaces the whole ledger, as clear_traces()
 * does. Each thread keeps a model; when all have ended, the models add up to the ledger. Runs under the sanitizer for
 * threads too, which knows nothing of membarrier(2): there the gate is a plain lock.
 */

#include <pthread.h>
#include <stdlib.h>

#include "../../src/core/gate.h"
#include "stacks.h"

enum { FAVOURED = 2, OTHERS = 2, WORKERS = FAVOURED + OTHERS, ROUNDS = 6000, SNAPSHOTS = 40, BOX = 64 };

typedef struct {
    uintptr_t address;
    uint64_t size;
    uint32_t stack;
} block;

typedef struct {
    int number;
    uint64_t seed;
    uint64_t entered[STACKS], left[STACKS]; /* bytes */
    uint64_t blocks;                        /* addresses used */
    uint64_t removed, missed;
} worker;

static hl_gate gate = HL_GATE_INIT;
static hl_ledger ledger;
static pthread_mutex_t gil = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t box_lock = PTHREAD_MUTEX_INITIALIZER;
static block box[BOX]; /* blocks on their way to the thread that will remove them */
static unsigned in_box;
static _Atomic bool ended;

/* The way into the ledger, by the side that is the worker's. */
static hl_passage go_in(const worker *w)
{
    bool favoured = w->number < FAVOURED;
    if (favoured)
        pthread_mutex_lock(&gil);
    return hl_gate_enter_by(&gate, favoured);
}

static void go_out(const worker *w, hl_passage passage)
{
    hl_gate_leave_by(&gate, passage);
    if (w->number < FAVOURED)
        pthread_mutex_unlock(&gil);
}

static void enter(worker *w, block *b)
{
    b->address = ((uintptr_t)(w->number + 1) << 40) + w->blocks++ * 4096;
    b->size = 16 + check_below(&w->seed, 2000);
    b->stack = check_below(&w->seed, STACKS);
    hl_passage passage = go_in(w);
    block_enters(&ledger, b->address, b->size, 0, site_of(&ledger, b->stack, b->size, 0));
    go_out(w, passage);
    w->entered[b->stack] += b->size;
}

/* Half of them by way of a reallocation that fails first. */
static void leave(worker *w, const block *b)
{
    hl_passage passage = go_in(w);
    uint32_t clear_count = ledger.clear_count;
    hl_site_id site = check_below(&w->seed, 2) == 0 ? hl_ledger_detach(&ledger, b->address) : 0;
    go_out(w, passage);
    passage = go_in(w);
    if (site != 0 && ledger.clear_count == clear_count)
        hl_ledger_reattach(&ledger, b->address, site);
    bool there = block_leaves(&ledger, b->address, 0);
    go_out(w, passage);
    if (there) {
        w->left[b->stack] += b->size;
        w->removed++;
    } else {
        w->missed++;
    }
}

/* Put a block into the box, and take out another, which may be anybody's. */
static bool exchange(worker *w, const block *mine, block *other)
{
    bool got = false;
    pthread_mutex_lock(&box_lock);
    if (in_box == BOX) {
        unsigned at = check_below(&w->seed, BOX);
        *other = box[at];
        box[at] = *mine;
        got = true;
    } else {
        box[in_box++] = *mine;
    }
    pthread_mutex_unlock(&box_lock);
    return got;
}

static void *work(void *argument)
{
    worker *w = argument;
    for (int i = 0; i < ROUNDS; i++) {
        block mine, other;
        enter(w, &mine);
        if (exchange(w, &mine, &other))
            leave(w, &other);
    }
    return NULL;
}

/* As hl_tracer_snapshot does: NULL when there was no room, or the ledger was replaced meanwhile. */
static hl_snapshot *take_snapshot(hl_moment moment)
{
    hl_snapshot *snapshot;
    hl_gate_enter(&gate);
    size_t room = hl_ledger_rows(&ledger) + 4096;
    hl_names *names = hl_names_hold(ledger.names);
    uint32_t clear_count = ledger.clear_count;
    hl_gate_leave(&gate);
    hl_status status = hl_snapshot_new(names, room, &snapshot);
    hl_names_drop(names);
    if (status != HL_OK)
        return NULL;
    hl_gate_enter(&gate);
    status = ledger.clear_count != clear_count ? HL_FULL : hl_ledger_fill(&ledger, moment, snapshot, room);
    uint64_t total = moment == HL_PEAK ? ledger.peak : hl_ledger_traced(&ledger);
    hl_gate_leave(&gate);
    if (status == HL_OK) {
        CHECK_EQUAL(snapshot->bytes, total);
        return snapshot;
    }
    hl_snapshot_drop(snapshot);
    return NULL;
}

/* Everything that the rows name, which the ledger may have reclaimed in the meantime. */
static void read_snapshot(const hl_snapshot *snapshot)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < snapshot->row_count; i++) {
        const hl_row *row = &snapshot->rows[i];
        const hl_stack *stack = hl_names_get_stack(snapshot->names, row->stack);
        const hl_location *newest = hl_names_get_location(snapshot->names, stack->locations[0]);
        const hl_string *file = hl_names_get_string(snapshot->names, newest->file);
        CHECK(stack->depth == 1 + (newest->line - 1) % NFRAME);
        CHECK(file->length > 4 && memcmp(file->bytes, "file", 4) == 0);
        bytes += row->live * row->size;
    }
    CHECK_EQUAL(bytes, snapshot->bytes);
}

static void *look(void *taken)
{
    hl_snapshot *kept[3] = {0};
    for (unsigned i = 0; !atomic_load(&ended) || i < SNAPSHOTS; i++) {
        hl_snapshot *snapshot = take_snapshot(i % 2 == 0 ? HL_LIVE : HL_PEAK);
        hl_snapshot **oldest = &kept[i % 3];
        if (*oldest != NULL) {
            read_snapshot(*oldest);
            hl_snapshot_drop(*oldest);
        }
        *oldest = snapshot;
        *(unsigned *)taken += snapshot != NULL;
        if (i % 8 == 0) {
            hl_gate_enter(&gate);
            hl_ledger_reset_peak(&ledger);
            hl_gate_leave(&gate);
        }
    }
    for (int i = 0; i < 3; i++)
        if (kept[i] != NULL)
            hl_snapshot_drop(kept[i]);
    return NULL;
}

static void *replace(void *replaced)
{
    while (!atomic_load(&ended)) {
        hl_ledger fresh;
        if (hl_ledger_open(&fresh, NFRAME, 0) != HL_OK)
            continue;
        hl_gate_enter(&gate);
        hl_ledger old = ledger;
        fresh.clear_count = old.clear_count + 1;
        ledger = fresh;
        hl_gate_leave(&gate);
        hl_ledger_close(&old);
        ++*(unsigned *)replaced;
    }
    return NULL;
}

/* Run them all; returns how many times the ledger was replaced. */
static unsigned run(worker *workers, bool with_replacement)
{
    pthread_t threads[WORKERS], looker, replacer;
    unsigned taken = 0, replaced = 0;
    atomic_store(&ended, false);
    gate = (hl_gate)HL_GATE_INIT;
    in_box = 0;
    CHECK(hl_ledger_open(&ledger, NFRAME, 1) == HL_OK);
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (worker){.number = i, .seed = (uint64_t)i + 1};
        CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    CHECK(pthread_create(&looker, NULL, look, &taken) == 0);
    if (with_replacement)
        CHECK(pthread_create(&replacer, NULL, replace, &replaced) == 0);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&ended, true);
    pthread_join(looker, NULL);
    if (with_replacement)
        pthread_join(replacer, NULL);
    CHECK(taken > 0);
    CHECK(hl_ledger_validate(&ledger) == NULL);
    CHECK_EQUAL(ledger.lost, 0);
    return replaced;
}

static void the_models_of_all_threads_add_up_to_the_ledger(void)
{
    static worker workers[WORKERS];
    run(workers, false);
    uint64_t live[STACKS] = {0}, found[STACKS] = {0};
    for (int i = 0; i < WORKERS; i++) {
        CHECK_EQUAL(workers[i].missed, 0);
        CHECK(workers[i].removed > 0);
        for (int j = 0; j < STACKS; j++)
            live[j] += workers[i].entered[j] - workers[i].left[j];
    }
    hl_snapshot *snapshot = take_snapshot(HL_LIVE);
    CHECK_OR_RETURN(snapshot != NULL);
    CHECK_EQUAL(snapshot->blocks, BOX);
    for (size_t i = 0; i < snapshot->row_count; i++)
        found[stack_of(snapshot->names, snapshot->rows[i].stack)] += snapshot->rows[i].live * snapshot->rows[i].size;
    for (int j = 0; j < STACKS; j++)
        CHECK_EQUAL(found[j], live[j]);
    hl_snapshot_drop(snapshot);
    hl_ledger_close(&ledger);
}

static void a_ledger_that_is_replaced_stays_whole(void)
{
    static worker workers[WORKERS];
    CHECK(run(workers, true) > 0);
    uint64_t missed = 0;
    for (int i = 0; i < WORKERS; i++)
        missed += workers[i].missed;
    CHECK(missed > 0); /* what was entered before and removed after */
    hl_ledger_close(&ledger);
}

CHECK_MAIN(TEST(the_models_of_all_threads_add_up_to_the_ledger), TEST(a_ledger_that_is_replaced_stays_whole))
