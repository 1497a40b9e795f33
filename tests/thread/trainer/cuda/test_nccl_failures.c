/* test_nccl_failures.c - ranks with stand-in GPUs, of which one fails, is slow, leaves or cannot
 * capture: nobody waits for ever, and every rank learns which it was, if a channel is left that
 * can say so.
 *
 *   words by threads always words by NCCL as torchrun's processes: unless NCCL itself or a GPU has
 *   failed; then the others end at the time-out */
#include "support/cuda_kernels.h"
#include "support/rank_threads.h"
#include "support/standin_nccl/standin_nccl.h"
#include "trainer/peers/nccl/functions.h"

#include <time.h>
#include <unistd.h>

enum { RANKS = 2, STEPS = 4, CALLS_MAX = 400, INTERNAL_ERROR = 3 };

/* What each rank has seen, and what it is to do. */
static struct result {
    int rc;
    bool created;
    stoker_error error;
    stoker_trainer_capture capture;
} results[RANKS];

static uint32_t timeout_ms;
static bool by_nccl; /* how words go */
static uint32_t port;
static const char *devices[RANKS];
static bool leaves[RANKS]; /* after its first step */

/* The variables of torchrun, of the rank that this thread is. */
char *secure_getenv(const char *name);
char *secure_getenv(const char *name)
{
    static _Thread_local char number[16];
    const bool is_rank = strcmp(name, "RANK") == 0 || strcmp(name, "LOCAL_RANK") == 0;
    const bool is_size = strcmp(name, "WORLD_SIZE") == 0 || strcmp(name, "LOCAL_WORLD_SIZE") == 0;
    const bool is_port = strcmp(name, "STOKER_PORT") == 0;
    if (!by_nccl || !(is_rank || is_size || is_port))
        return getenv(name);
    (void)snprintf(number, sizeof(number), "%u", is_rank ? rank_in_group : is_size ? RANKS : port);
    return number;
}

static void begin(void)
{
    standin_nccl_reset();
    standin_cuda_reset(RANKS);
    standin_cuda_delay(5);
    standin_cuda_use_kernels();
    memset(results, 0, sizeof(results));
    memset(leaves, 0, sizeof(leaves));
    for (uint32_t r = 0; r < RANKS; r++)
        devices[r] = "cuda";
    timeout_ms = 20000;
    port = 15000 + (port == 0 ? (uint32_t)getpid() * 7919U : port + 1) % 15000;
}

static void end(void)
{
    CHECK(standin_nccl_violations() == 0);
    CHECK(standin_nccl_live() == 0);
    CHECK(standin_cuda_violations() == 0);
    CHECK(standin_cuda_live() == 0);
}

static stoker_model *small(void)
{
    stoker_model *model = NULL;
    const uint32_t shape[1] = { FLOATS };
    CHECK(stoker_model_create(&model, shape, 1, NULL) == 0);
    (void)stoker_model_batch_norm(model, "bn", NULL);
    stk_test_linear(model, "fc", CLASSES);
    CHECK(stoker_model_softmax_cross_entropy(model, 0) == 0);
    return model;
}

static stoker_batch *flat(struct samples *samples, uint64_t first)
{
    stoker_batch *const batch = batch_of(samples, first, BATCH);
    batch->images.rank = 2;
    batch->images.shape[1] = FLOATS;
    return batch;
}

static void train(stoker_trainer *trainer, struct result *result)
{
    struct samples samples;
    const uint32_t steps = leaves[rank_in_group] ? 1 : STEPS;
    stoker_evaluation sum = { 0 };
    for (uint32_t i = 0; i < steps && result->rc == STOKER_OK; i++)
        result->rc = stoker_trainer_step(trainer, flat(&samples, (uint64_t)i * BATCH), NULL);
    if (result->rc == STOKER_OK && steps == STEPS)
        result->rc = stoker_trainer_evaluated(trainer, &sum);
    stoker_trainer_get_capture(trainer, &result->capture);
    if (result->rc != STOKER_OK)
        result->error = *stoker_trainer_error(trainer);
}

static void be_rank(void)
{
    struct result *const result = &results[rank_in_group];
    stoker_trainer *trainer = NULL;
    stoker_model *model = small();
    stoker_trainer_options options = options_of(devices[rank_in_group]);
    options.batch_size = BATCH;
    options.sync_batch_norm = true;
    options.peer_timeout_ms = timeout_ms;
    if (by_nccl) {
        leave_peers(&options);
        options.peers = STOKER_PEERS_AUTO;
    }
    result->rc = stoker_trainer_create(&trainer, model, &options, &result->error);
    result->created = result->rc == STOKER_OK;
    if (result->created)
        train(trainer, result);
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}

static void run(void)
{
    run_ranks(RANKS, be_rank);
    end();
}

static void show(void)
{
    for (uint32_t r = 0; r < RANKS; r++)
        fprintf(stderr, "rank %u: %d: %s\n", r, results[r].rc, results[r].error.message);
}

#define SHOWN(holds) ((holds) ? (void)0 : (show(), stk_check_failed(__FILE__, __LINE__, #holds)))

static void all_are_well(void)
{
    for (uint32_t r = 0; r < RANKS; r++)
        SHOWN(results[r].rc == STOKER_OK);
}

/* Every rank has an error that names `failed`, and has the words. */
static void all_name(uint32_t failed, const char *words)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "rank %u: ", failed);
    for (uint32_t r = 0; r < RANKS; r++) {
        SHOWN(results[r].rc < 0);
        SHOWN(r == failed || results[r].rc == STOKER_EPEER);
        SHOWN(strstr(results[r].error.message, words) != NULL);
        SHOWN(r == failed || strstr(results[r].error.message, name) != NULL);
    }
}

/* True if both ranks have queued everything, since one could not capture. */
static bool captured_nothing(void)
{
    for (uint32_t r = 0; r < RANKS; r++)
        if (results[r].capture.refused != 1 || results[r].capture.queued != STEPS)
            return false;
    return true;
}

/* One that fails while it is captured ends the capture. The last calls end the run, when all is
 * done. */
static void each_call_fails(uint32_t failing)
{
    uint64_t calls = 0;
    uint64_t captures = 0;
    begin();
    run();
    all_are_well();
    calls = standin_nccl_calls(failing);
    CHECK(calls > 10);
    CHECK(calls < CALLS_MAX);
    for (uint64_t nth = 1; nth <= calls; nth++) {
        begin();
        standin_nccl_fail(failing, nth, INTERNAL_ERROR);
        run();
        CHECK(standin_nccl_failed());
        if (captured_nothing() || nth + 2 > calls)
            all_are_well();
        else
            all_name(failing, "as the test asked");
        captures += captured_nothing() ? 1 : 0;
    }
    CHECK(captures > 0);
    CHECK(captures < calls / 2);
}

static void an_operation_fails(uint64_t nth, int code, const char *words)
{
    begin();
    standin_nccl_fail_operation(1, nth, code);
    run();
    CHECK(standin_nccl_failed());
    all_name(1, words);
}

/* No call fails, but the communicator. */
static void each_operation_fails(void)
{
    begin();
    run();
    all_are_well();
    const uint64_t operations = standin_nccl_operations(1);
    CHECK(operations > 5);
    for (uint64_t nth = 1; nth <= operations; nth++)
        an_operation_fails(nth, INTERNAL_ERROR, "internal error");
    an_operation_fails(operations / 2, STK_NCCL_REMOTE_ERROR, "remote process exited");
}

/* On the rank that makes it. Nobody has to wait for the time-out, which no message then
 * mentions. Most calls are looks at a stream, so every few calls will do. */
static void each_call_of_cuda_fails(uint64_t step)
{
    begin();
    run();
    const uint64_t calls = standin_cuda_calls();
    for (uint64_t nth = 1; nth <= calls; nth += step) {
        begin();
        standin_cuda_fail(nth, 700, false);
        timeout_ms = by_nccl ? 500 : timeout_ms; /* a rank that waits for a sum hears no word */
        run();
        for (uint32_t r = 0; r < RANKS && !by_nccl; r++)
            SHOWN(strstr(results[r].error.message, " ms") == NULL);
        /* With words by NCCL, a rank whose last call fails cannot stop one that has finished. */
        SHOWN(by_nccl || (results[0].rc == STOKER_OK) == (results[1].rc == STOKER_OK));
    }
}

/* What fails is NCCL's, which carries the words too: both ranks end, and the one that failed
 * says why. */
static void each_call_fails_without_other_words(uint32_t failing)
{
    begin();
    run();
    all_are_well();
    const uint64_t calls = standin_nccl_calls(failing);
    for (uint64_t nth = 1; nth <= calls; nth++) {
        begin();
        timeout_ms = 300;
        standin_nccl_fail(failing, nth, INTERNAL_ERROR);
        run();
        SHOWN(standin_nccl_failed() || results[failing].rc < 0); /* or the machine was slow */
        if (results[failing].rc == STOKER_OK)
            continue; /* it could not capture, or has ended */
        SHOWN(strstr(results[failing].error.message, "as the test asked") != NULL ||
              strstr(results[failing].error.message, " 300 ms") != NULL);
        SHOWN(results[1 - failing].rc == STOKER_EPEER || nth + 4 > calls);
    }
}

static void a_rank_cannot_capture(void)
{
    begin();
    standin_nccl_refuse_capture(1);
    run();
    all_are_well();
    SHOWN(captured_nothing());
    begin();
    run();
    all_are_well();
    for (uint32_t r = 0; r < RANKS; r++)
        SHOWN(results[r].capture.launched == STEPS - 1);
}

static void a_slow_rank_is_awaited(void)
{
    begin();
    standin_nccl_delay(1, 5000);
    run();
    all_are_well();
}

/* It sleeps on its GPU, far beyond the time-out, though every host has come. */
static void a_stuck_rank_ends_the_run(void)
{
    begin();
    timeout_ms = 300;
    standin_nccl_delay(1, 700000);
    run();
    for (uint32_t r = 0; r < RANKS; r++)
        SHOWN(results[r].rc == STOKER_EPEER);
}

static void a_rank_that_leaves_is_named(void)
{
    begin();
    leaves[1] = true;
    run();
    SHOWN(results[1].rc == STOKER_OK);
    SHOWN(results[0].rc == STOKER_EPEER);
    SHOWN(strstr(results[0].error.message, "rank 1 has ended") != NULL);
}

static void two_ranks_with_one_gpu_are_refused(void)
{
    begin();
    devices[0] = devices[1] = "cuda:1";
    run();
    for (uint32_t r = 0; r < RANKS; r++) {
        SHOWN(results[r].rc == STOKER_EINVAL);
        SHOWN(strstr(results[r].error.message, "ranks 0 and 1 have one GPU (cuda:1 and cuda:1)") !=
              NULL);
    }
    begin();
    devices[0] = "cuda:1"; /* crosswise is no mistake */
    devices[1] = "cuda:0";
    run();
    all_are_well();
}

static void an_old_library_is_refused(void)
{
    begin();
    standin_nccl_version(2708);
    run();
    for (uint32_t r = 0; r < RANKS; r++) {
        SHOWN(results[r].rc == STOKER_ENOTSUP || results[r].rc == STOKER_EPEER);
        SHOWN(strstr(results[r].error.message, "2.7.8") != NULL);
    }
}

static void a_missing_library_is_named(void)
{
    begin();
    CHECK(setenv("STOKER_NCCL", "/nowhere/libnccl.so.2", 1) == 0);
    run();
    for (uint32_t r = 0; r < RANKS; r++) {
        SHOWN(results[r].rc == STOKER_ENOTSUP || results[r].rc == STOKER_EPEER);
        SHOWN(strstr(results[r].error.message, "STOKER_NCCL") != NULL);
    }
    CHECK(unsetenv("STOKER_NCCL") == 0);
}

static void each_way_of_words(void)
{
    a_rank_cannot_capture();
    a_slow_rank_is_awaited();
    a_stuck_rank_ends_the_run();
    a_rank_that_leaves_is_named();
    two_ranks_with_one_gpu_are_refused();
    an_old_library_is_refused();
    a_missing_library_is_named();
}

int main(void)
{
    each_call_fails(0);
    each_call_fails(1);
    each_operation_fails();
    each_call_of_cuda_fails(17);
    each_way_of_words();
    by_nccl = true;
    each_way_of_words();
    each_call_fails_without_other_words(0);
    each_call_fails_without_other_words(1);
    each_call_of_cuda_fails(61);
    standin_nccl_reset();
    return 0;
}
