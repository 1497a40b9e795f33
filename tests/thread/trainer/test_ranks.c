/* test_ranks.c - peers by MPI, with ranks that are threads: sums of several slices, every call of
 * MPI that fails once, and a rank that does not come. No rank may wait for ever, and none may miss
 * that another has failed. */
#include <math.h>
#include <time.h>

#include "loader/base/fault.h"
#include "support/ranks/thread_mpi.h"
#include "trainer/peers/mpi/mpi.h"

enum { RANKS = 3, SHORT_MS = 100, LONG_MS = 600000, MANY = 2 * (1 << 20) + 17, FEW = 1000 };

struct run {
    bool parts; /* ranks exchange them */
    bool comes; /* the last rank, to the last sync point */
    uint32_t timeout_ms, count;
    struct result {
        int rc;
        bool joined, held; /* held: an array, after a failure */
        stoker_error error;
    } result[RANKS];
};

static struct run run;

static float value(uint32_t rank, uint32_t i)
{
    return (float)(i % 1000) + (float)rank / 4;
}

static int sum(struct stk_peers *peers, stoker_error *error)
{
    float *const floats = world_floats(run.count); /* after a failure others may write to them */
    for (uint32_t i = 0; i < run.count; i++)
        floats[i] = value(my_rank, i);
    int rc = peers->ops->all_reduce(peers, floats, run.count, error);
    if (rc == STOKER_OK)
        rc = peers->ops->poll(peers, error);
    if (rc == STOKER_OK)
        rc = peers->ops->finish(peers, error);
    for (uint32_t i = 0; i < run.count && rc == STOKER_OK; i++) {
        float expected = value(0, i);
        for (uint32_t r = 1; r < RANKS; r++)
            expected += value(r, i);
        CHECK(floats[i] >= expected && floats[i] <= expected);
    }
    return rc;
}

static int broadcast(struct stk_peers *peers, stoker_error *error)
{
    uint32_t numbers[FEW];
    for (uint32_t i = 0; i < FEW; i++)
        numbers[i] = my_rank == 0 ? i : 0;
    const int rc = peers->ops->broadcast(peers, numbers, sizeof(numbers), error);
    for (uint32_t i = 0; i < FEW && rc == STOKER_OK; i++)
        CHECK(numbers[i] == i);
    return rc;
}

static int meet(struct stk_peers *peers, stoker_error *error)
{
    const struct stk_word *all = NULL;
    struct stk_word word = stk_peers_word(STK_SYNC_UPDATE, STOKER_OK, NULL);
    word.number[1] = 10 + my_rank;
    const int rc = stk_peers_agree(peers, &word, &all, error);
    for (uint32_t r = 0; r < RANKS && rc == STOKER_OK; r++)
        CHECK(all[r].number[1] == 10 + r);
    return rc;
}

/* Everything that a trainer asks of peers. */
static void talk(struct result *result)
{
    const struct stk_peers_options options = { .parts_ranks_max = run.parts ? RANKS : 1,
                                               .timeout_ms = run.timeout_ms,
                                               .floats_max = run.count };
    struct stk_peers *peers = NULL;
    stoker_error *const error = &result->error;
    double numbers[3] = { 1, 2, (double)my_rank };
    result->rc = stk_mpi_join(&peers, &thread_mpi, &options, RANKS, error);
    if (result->rc != STOKER_OK)
        return;
    result->joined = true;
    int rc = sum(peers, error);
    if (rc == STOKER_OK)
        rc = meet(peers, error);
    if (rc == STOKER_OK)
        rc = stk_peers_sum(peers, numbers, 3, error);
    if (rc == STOKER_OK)
        CHECK(numbers[2] >= 3 && numbers[2] <= 3);
    if (rc == STOKER_OK)
        rc = broadcast(peers, error);
    if (!run.comes && my_rank + 1 == RANKS) { /* far longer than the time-out */
        const struct timespec time = { .tv_nsec = 900 * 1000000 };
        (void)nanosleep(&time, NULL);
    }
    if (rc == STOKER_OK)
        rc = meet(peers, error);
    result->rc = rc;
    result->held = peers->holds_arrays;
    CHECK(rc != STOKER_OK || !result->held);
    stk_peers_leave(&peers);
}

static void *be_rank(void *argument)
{
    my_rank = (uint32_t)(uintptr_t)argument;
    talk(&run.result[my_rank]);
    return NULL;
}

static void start(uint32_t failing_call, uint32_t failing_test)
{
    pthread_t thread[RANKS];
    memset(run.result, 0, sizeof(run.result));
    world_begin(RANKS, failing_call, failing_test);
    for (uintptr_t r = 0; r < RANKS; r++)
        CHECK(pthread_create(&thread[r], NULL, be_rank, (void *)r) == 0);
    for (uint32_t r = 0; r < RANKS; r++)
        CHECK(pthread_join(thread[r], NULL) == 0);
}

static void sums_of_several_slices(void)
{
    for (int parts = 0; parts < 2; parts++) {
        run = (struct run){ .parts = parts, .comes = true, .timeout_ms = LONG_MS, .count = MANY };
        start(NEVER, NEVER);
        for (uint32_t r = 0; r < RANKS; r++)
            CHECK(run.result[r].rc == STOKER_OK);
        world_end();
    }
}

/* What each rank reports after the failure of one. */
static void check_results(uint32_t index)
{
    const bool failed = run.result[RANKS - 1].rc != STOKER_OK;
    for (uint32_t r = 0; r < RANKS; r++) {
        const struct result *const result = &run.result[r];
        const bool known =
            result->rc == STOKER_OK || result->rc == STOKER_EPEER || result->rc == STOKER_ENOMEM;
        if (!known || (failed && result->rc == STOKER_OK))
            fprintf(stderr, "call %u, rank %u: %d: %s\n", index, r, result->rc,
                    result->error.message);
        CHECK(known);
        CHECK(!failed || result->rc != STOKER_OK);
        CHECK(result->rc == STOKER_OK || result->error.message[0] != '\0');
        /* Once all have joined, the rank that fails is named. */
        CHECK(result->rc == STOKER_OK || !result->joined || r + 1 == RANKS ||
              strstr(result->error.message, "rank 2") != NULL);
    }
}

/* start, memory of two notes and the first communicator fail before a rank can say so: the others
 * wait. */
enum { UNTOLD = 4 };

static void every_call_fails_once(void)
{
    for (int parts = 0; parts < 2; parts++) {
        uint32_t index = parts == 0 ? 0 : UNTOLD;
        bool failed = true;
        uint32_t held = 0;
        for (; failed; index++) {
            run = (struct run){ .parts = parts,
                                .comes = true,
                                .timeout_ms = index < UNTOLD ? SHORT_MS : LONG_MS,
                                .count = FEW };
            start(index, NEVER);
            failed = world->failed;
            CHECK(failed || run.result[0].rc == STOKER_OK);
            check_results(index);
            held += run.result[RANKS - 1].held ? 1 : 0;
            world_end();
        }
        CHECK(held == (parts == 0 ? 1 : 2)); /* the sum; the exchange, and the gathering of sums */
        CHECK(index >= 19);                  /* they were reached */
        CHECK(index < 60);
    }
}

/* The number of tests depends on how long a rank waits: the first ones, of each kind. A failed test
 * before the first communicator is known to one rank alone; one after an operation's end may find
 * the others done. */
static void tests_fail_too(void)
{
    for (uint32_t index = 0; index < 8; index++) {
        run = (struct run){ .comes = true, .timeout_ms = 150, .count = FEW };
        start(NEVER, index * 2);
        for (uint32_t r = 0; r < RANKS; r++)
            CHECK(run.result[r].rc == STOKER_OK || run.result[r].rc == STOKER_EPEER);
        world_end();
    }
}

/* Memory of our own. */
static void every_allocation_fails_once(void)
{
    for (uint64_t nth = 1; nth <= 9; nth++) { /* three in each rank */
        run = (struct run){ .comes = true, .timeout_ms = SHORT_MS, .count = FEW };
        stk_fault_arm(STK_FAULT_MEMORY, nth);
        start(NEVER, NEVER);
        CHECK(stk_fault_disarm());
        for (uint32_t r = 0; r < RANKS; r++)
            CHECK(run.result[r].rc == STOKER_ENOMEM || run.result[r].rc == STOKER_EPEER);
        world_end();
    }
}

static void a_rank_that_does_not_come_is_named(void)
{
    run = (struct run){ .timeout_ms = 200, .count = FEW };
    start(NEVER, NEVER);
    for (uint32_t r = 0; r + 1 < RANKS; r++) {
        CHECK(run.result[r].rc == STOKER_EPEER);
        CHECK(strstr(run.result[r].error.message, "rank 2 did not come") != NULL);
    }
    CHECK(run.result[RANKS - 1].rc == STOKER_EPEER);
    CHECK(strstr(run.result[RANKS - 1].error.message, "gave up") != NULL);
    world_end();
}

int main(void)
{
    sums_of_several_slices();
    every_call_fails_once();
    tests_fail_too();
    every_allocation_fails_once();
    a_rank_that_does_not_come_is_named();
    return 0;
}
