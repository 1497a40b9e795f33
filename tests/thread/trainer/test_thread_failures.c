/* test_thread_failures.c - ranks that are threads, when one of them fails: the others are woken and
 * name it, nobody reads what another has freed, and no rank waits for its time-out unless a rank
 * really does not come. */
#include "support/ranks/rank_failure_cases.h"
#include "support/ranks/rank_threads.h"

#include "loader/base/fault.h"
#include "trainer/peers/threads/threads.h"

enum { FLOATS_MANY = 100003, ROUNDS = 20, LONG_MS = 600000, NTH_MAX = 2000 };

/* ---- peers alone ------------------------------------------------------------------- */

static struct stk_peers *join(void)
{
    struct stk_peers *peers = NULL;
    const struct stk_peers_options options = { .timeout_ms = LONG_MS,
                                               .floats_max = FLOATS_MANY,
                                               .group = rank_group,
                                               .group_rank = rank_in_group };
    CHECK(stk_threads_join(&peers, &options, NULL) == STOKER_OK);
    return peers;
}

static float value(uint32_t of, uint64_t i)
{
    return 1.0F / (float)(i % 977 + of * 3 + 1);
}

static float *fill(uint32_t of, uint64_t count)
{
    float *const floats = malloc(count * sizeof(*floats));
    CHECK(floats != NULL);
    for (uint64_t i = 0; i < count; i++)
        floats[i] = value(of, i);
    return floats;
}

/* The sum in the order of ranks, to the bit; more arrays than one sync point takes. */
static void sums(void)
{
    struct stk_peers *peers = join();
    for (uint64_t count = 1; count <= FLOATS_MANY; count = count * 7 + 3) {
        float *array[STK_SUMS_MAX + 3];
        for (uint32_t a = 0; a < STK_SUMS_MAX + 3; a++) {
            array[a] = fill(peers->rank, count);
            CHECK(peers->ops->all_reduce(peers, array[a], count, NULL) == STOKER_OK);
            CHECK(peers->ops->poll(peers, NULL) == STOKER_OK);
        }
        CHECK(peers->ops->finish(peers, NULL) == STOKER_OK);
        for (uint32_t a = 0; a < STK_SUMS_MAX + 3; a++) {
            for (uint64_t i = 0; i < count; i++) {
                float expected = value(0, i);
                for (uint32_t r = 1; r < peers->world_size; r++)
                    expected += value(r, i);
                CHECK(memcmp(&array[a][i], &expected, sizeof(expected)) == 0);
            }
            free(array[a]);
        }
    }
    stk_peers_leave(&peers);
}

static void begin_sums(struct stk_peers *peers, float *floats, uint32_t *begun)
{
    for (; peers->ops->has_room(peers); ++*begun) {
        floats[*begun] = (float)(peers->rank + 1);
        CHECK(peers->ops->all_reduce(peers, &floats[*begun], 1, NULL) == STOKER_OK);
    }
}

/* A rank begins sums within its pass, another one, which has no samples, behind it: they meet in
 * between. */
static void sums_begin_without_waiting(void)
{
    struct stk_peers *peers = join();
    float floats[STK_SUMS_MAX + 1];
    uint32_t begun = 0;
    double one = 1;
    if (peers->rank == 0)
        begin_sums(peers, floats, &begun);
    CHECK(stk_peers_sum(peers, &one, 1, NULL) == STOKER_OK);
    if (peers->rank != 0)
        begin_sums(peers, floats, &begun);
    CHECK(begun == STK_SUMS_MAX);
    CHECK(peers->ops->finish(peers, NULL) == STOKER_OK);
    const float expected = (float)(peers->world_size * (peers->world_size + 1) / 2);
    for (uint32_t i = 0; i < begun; i++)
        CHECK(floats[i] >= expected && floats[i] <= expected);
    CHECK(peers->ops->has_room(peers));
    stk_peers_leave(&peers);
}

/* What was gathered stays until the next call, also if another rank is already there. */
static void gathers_and_broadcasts(void)
{
    struct stk_peers *peers = join();
    for (uint64_t round = 0; round < 500; round++) {
        uint64_t mine[3] = { round, peers->rank, round * peers->rank };
        const void *all = NULL;
        CHECK(peers->ops->gather(peers, mine, sizeof(mine), &all, NULL) == STOKER_OK);
        const uint64_t *const rows = all;
        for (uint64_t r = 0; r < peers->world_size; r++)
            CHECK(rows[3 * r] == round && rows[3 * r + 1] == r && rows[3 * r + 2] == round * r);
        uint64_t sent = peers->rank == 0 ? round * 11 : 0;
        if (round % 3 == 0)
            CHECK(peers->ops->broadcast(peers, &sent, sizeof(sent), NULL) == STOKER_OK);
        CHECK(round % 3 != 0 || sent == round * 11);
    }
    stk_peers_leave(&peers);
}

/* The last rank fails while the others wait, or work on its array, or come later; arrays are freed
 * at once. */
static void a_failure_wakes_all(void)
{
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct stk_peers *peers = join();
        stoker_error error = { .message = "" };
        int rc = STOKER_OK;
        for (uint32_t sync_point = 0; rc == STOKER_OK; sync_point++) {
            float *const floats = fill(peers->rank, FLOATS_MANY / 10);
            if (peers->rank + 1 == peers->world_size && sync_point == round % 4)
                peers->ops->failed(peers, STOKER_EDEVICE, "the oven is cold");
            rc = peers->ops->all_reduce(peers, floats, FLOATS_MANY / 10, &error);
            if (rc == STOKER_OK)
                rc = peers->ops->finish(peers, &error);
            free(floats);
            CHECK(sync_point < 5);
        }
        CHECK(rc == STOKER_EPEER);
        CHECK(strstr(error.message, "the oven is cold") != NULL);
        char name[32];
        (void)snprintf(name, sizeof(name), "rank %u: ", peers->world_size - 1);
        CHECK(peers->rank + 1 == peers->world_size || strstr(error.message, name) != NULL);
        stoker_error again = { .message = "" };
        CHECK(peers->ops->poll(peers, &again) == STOKER_EPEER);
        CHECK(strcmp(error.message, again.message) == 0); /* the first cause */
        stk_peers_leave(&peers);
    }
}

/* Memory that ranks give for different things would be read beyond its end. */
static void ranks_that_call_different_functions(void)
{
    struct stk_peers *peers = join();
    stoker_error error = { .message = "" };
    uint64_t word = 7;
    const void *all = NULL;
    const int rc = peers->rank + 1 == peers->world_size
                       ? peers->ops->broadcast(peers, &word, sizeof(word), &error)
                       : peers->ops->gather(peers, &word, sizeof(word), &all, &error);
    CHECK(rc == STOKER_EPEER);
    CHECK(strstr(error.message, "came to receive what rank 0 sends, rank 0 to exchange words") !=
          NULL);
    stk_peers_leave(&peers);
}

/* ---- trainers ---------------------------------------------------------------------- */

static void fail_in_turn(void)
{
    gather_ranks();
    a_rank_that_ends_is_named();
    ranks_out_of_step_are_told();
    loaders_that_differ_are_told();
    a_slow_rank_is_named();
    gather_ranks();
}

/* Of a group of two: rank 0 creates a trainer, and nobody else. */
static void come_alone(void)
{
    stoker_model *model = network();
    stoker_trainer_options options = options_of("ref");
    stoker_trainer *trainer = NULL;
    stoker_error error = { .message = "" };
    if (rank_in_group == 0) {
        options.peer_timeout_ms = 50;
        CHECK(stoker_trainer_create(&trainer, model, &options, &error) == STOKER_EPEER);
        CHECK(strstr(error.message, "rank 1 did not come within 50 ms") != NULL);
    }
    stoker_model_destroy(&model);
}

static void take_one_rank(void)
{
    stoker_model *model = network();
    stoker_trainer_options options = options_of("ref");
    stoker_trainer *trainer = NULL;
    stoker_error error = { .message = "" };
    options.peer_rank = 0;
    options.peer_timeout_ms = LONG_MS;
    const int rc = stoker_trainer_create(&trainer, model, &options, &error);
    CHECK(rc == STOKER_EINVAL || rc == STOKER_EPEER);
    CHECK(strstr(error.message, "peer_rank = 0: two threads have it") != NULL);
    stoker_model_destroy(&model);
}

static void refuse(stoker_trainer_options options, const char *word)
{
    stoker_model *model = network();
    stoker_trainer *trainer = NULL;
    stoker_error error = { .message = "" };
    CHECK(stoker_trainer_create(&trainer, model, &options, &error) == STOKER_EINVAL);
    CHECK(strstr(error.message, word) != NULL);
    stoker_model_destroy(&model);
}

static void bad_options_are_named(void)
{
    stoker_peer_group *group = NULL;
    stoker_error error = { .message = "" };
    CHECK(stoker_peer_group_create(NULL, 2, &error) == STOKER_EINVAL);
    CHECK(stoker_peer_group_create(&group, 0, &error) == STOKER_EINVAL);
    CHECK(stoker_peer_group_create(&group, 257, &error) == STOKER_EINVAL);
    CHECK(strstr(error.message, "257") != NULL);
    stoker_peer_group_destroy(&group);
    stoker_peer_group_destroy(NULL);
    CHECK(stoker_peer_group_create(&group, 2, &error) == STOKER_OK);
    stoker_trainer_options options =
        stk_trainer_options(.backend = "ref", .peers = STOKER_PEERS_THREADS);
    refuse(options, "peer_group is NULL");
    options.peer_group = group;
    options.peer_rank = 2;
    refuse(options, "peer_rank = 2: expected 0 to 1");
    options.peers = STOKER_PEERS_NONE;
    options.peer_rank = 0;
    refuse(options, "only with peers");
    options.peer_group = NULL;
    options.peer_rank = 1;
    refuse(options, "only with peers");
    stoker_peer_group_destroy(&group);
}

/* ---- every allocation and thread start fails once ---------------------------------- */

static const char *swept;
static stoker_model *swept_model;
static _Atomic uint32_t failures;

/* A rank that failed says why; no other waited until its time was up. */
static void sweep_rank(void)
{
    stoker_trainer_options options = options_of(swept);
    stoker_trainer *trainer = NULL;
    stoker_error error = { .message = "" };
    options.threads = 2;
    options.peer_timeout_ms = LONG_MS;
    const int rc = stoker_trainer_create(&trainer, swept_model, &options, &error);
    if (rc != STOKER_OK) {
        CHECK(rc == STOKER_ENOMEM || rc == STOKER_ETHREAD || rc == STOKER_EPEER);
        CHECK(error.message[0] != '\0');
        CHECK(strstr(error.message, "did not come") == NULL);
        CHECK(strstr(error.message, "gave up") == NULL);
        failures++;
    }
    stoker_trainer_destroy(&trainer);
}

static void sweep(const char *backend)
{
    bool reached = true;
    uint64_t nth = 1;
    swept = backend;
    swept_model = network();
    for (; reached; nth++) {
        struct rank_thread rank_thread[2];
        stoker_peer_group *group = NULL;
        const int64_t live = stk_fault_live_bytes();
        CHECK(stoker_peer_group_create(&group, 2, NULL) == STOKER_OK);
        failures = 0;
        stk_fault_arm(STK_FAULT_ANY, nth);
        for (uint32_t r = 0; r < 2; r++) {
            rank_thread[r] = (struct rank_thread){ .group = group, .rank = r, .run = sweep_rank };
            CHECK(pthread_create(&rank_thread[r].thread, NULL, be_thread_rank, &rank_thread[r]) ==
                  0);
        }
        for (uint32_t r = 0; r < 2; r++)
            CHECK(pthread_join(rank_thread[r].thread, NULL) == 0);
        reached = stk_fault_disarm();
        CHECK(reached ? failures == 2 : failures == 0);
        stoker_peer_group_destroy(&group);
        CHECK(stk_fault_live_bytes() == live);
        CHECK(nth < NTH_MAX);
    }
    stoker_model_destroy(&swept_model);
    CHECK(nth > 30); /* they were reached */
}

static void a_group_without_memory(void)
{
    stoker_peer_group *group = NULL;
    stoker_error error = { .message = "" };
    stk_fault_arm(STK_FAULT_MEMORY, 1);
    CHECK(stoker_peer_group_create(&group, 2, &error) == STOKER_ENOMEM);
    CHECK(stk_fault_disarm());
    CHECK(group == NULL);
    CHECK(error.message[0] != '\0');
}

int main(void)
{
    bad_options_are_named();
    a_group_without_memory();
    for (uint32_t world_size = 2; world_size <= THREAD_RANKS_MAX; world_size++) {
        run_ranks(world_size, sums);
        run_ranks(world_size, sums_begin_without_waiting);
        run_ranks(world_size, gathers_and_broadcasts);
        run_ranks(world_size, a_failure_wakes_all);
        run_ranks(world_size, ranks_that_call_different_functions);
    }
    run_ranks(3, fail_in_turn);
    run_ranks(2, come_alone);
    run_ranks(2, take_one_rank);
    sweep("ref");
    sweep("cpu");
    return 0;
}
