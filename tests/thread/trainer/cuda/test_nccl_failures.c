/* test_nccl_failures.c - ranks with stand-in GPUs, of which one fails, is slow, leaves or cannot
 * capture: nobody waits for ever, and every rank learns which it was, if a channel is left that
 * can say so.
 *
 *   words by threads always words by NCCL as torchrun's processes: unless NCCL itself or a GPU has
 *   failed; then the others end at the time-out */
#include "support/gpu/cuda_kernels.h"
#include "support/ranks/rank_threads.h"
#include "support/standin_nccl/standin_nccl.h"
#include "trainer/peers/nccl/functions.h"

#include <time.h>

enum { RANKS = 2, STEPS = 3, CALLS_MAX = 400, INTERNAL_ERROR = 3 };

/* What each rank has seen, and what it is to do. */
static struct result {
    int rc;
    uint32_t steps; /* made */
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
    while (result->steps < steps && result->rc == STOKER_OK) {
        const uint64_t first = (uint64_t)result->steps * BATCH;
        result->rc = stoker_trainer_step(trainer, flat(&samples, first), NULL);
        result->steps += result->rc == STOKER_OK ? 1 : 0;
    }
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
    if (result->rc == STOKER_OK)
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

/* ---- one call fails, of CUDA or of the library that carries the words ------------------- */

static bool are_well(void)
{
    return results[0].rc == STOKER_OK && results[1].rc == STOKER_OK;
}

static bool has_waited_in_vain(void)
{
    return strstr(results[0].error.message, " ms") != NULL ||
           strstr(results[1].error.message, " ms") != NULL;
}

static bool names_cause(const struct result *result)
{
    static const char *const causes[] = { "as the test asked",    "illegal memory access",
                                          "unhandled cuda error", "EXECUTION_FAILED",
                                          "current CUDA device",  "out of memory" };
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
        if (strstr(result->error.message, causes[i]) != NULL)
            return true;
    return false;
}

/* The rank whose call failed, by what a rank has been told; RANKS: nobody says so. */
static uint32_t failed_rank(void)
{
    for (uint32_t r = 0; r < RANKS; r++)
        if (names_cause(&results[r]))
            return strncmp(results[r].error.message, r == 0 ? "rank 1: " : "rank 0: ", 8) == 0
                       ? 1 - r
                       : r;
    return RANKS;
}

/* Returns true if both ranks are well, or the one whose call failed says why and the other has an
 * error too. Words of their own also tell the other why. Words that go by NCCL tell it that or
 * nothing, and then it gives up; and they cannot stop a rank that has finished, if the last
 * exchange of all fails on the other one. */
static bool is_told(void)
{
    const uint32_t failed = failed_rank();
    if (are_well())
        return true;
    if (failed == RANKS || results[failed].rc >= 0 || !names_cause(&results[failed]))
        return false;
    const struct result *const other = &results[1 - failed];
    if (by_nccl && other->rc == STOKER_OK)
        return results[failed].steps == STEPS;
    return other->rc == STOKER_EPEER && (by_nccl || names_cause(other));
}

/* The nth call of NCCL on a rank, or with RANKS of CUDA on any, fails. With words by NCCL the other
 * may have to wait for the time-out: it is short, but on a busy machine a rank may then come too
 * late that has not failed, so such a run is repeated with more time. */
static void a_call_fails(uint32_t failing, uint64_t nth)
{
    bool repeats = true;
    for (uint32_t ms = by_nccl ? 100 : 20000; repeats; ms *= 10) {
        begin();
        timeout_ms = ms;
        if (failing == RANKS)
            standin_cuda_fail(nth, 700, false);
        else
            standin_nccl_fail(failing, nth, INTERNAL_ERROR);
        run();
        repeats = by_nccl && ms < 10000 && has_waited_in_vain() && !is_told();
    }
    SHOWN(is_told());
    SHOWN(by_nccl || !has_waited_in_vain());
}

/* On the rank that makes it. */
static void each_call_of_cuda_fails(uint64_t step)
{
    begin();
    run();
    all_are_well();
    const uint64_t calls = standin_cuda_calls();
    for (uint64_t nth = 1; nth <= calls; nth += step)
        a_call_fails(RANKS, nth);
}

/* Both ranks are well only if the step cannot be captured, or the run has ended. */
static void each_call_fails_without_other_words(uint32_t failing)
{
    enum { LAST_CALLS = 6 }; /* after the last exchange of numbers */
    begin();
    run();
    all_are_well();
    const uint64_t calls = standin_nccl_calls(failing);
    for (uint64_t nth = 1; nth <= calls; nth++) {
        a_call_fails(failing, nth);
        SHOWN(standin_nccl_failed());
        SHOWN(are_well() == (captured_nothing() || nth + LAST_CALLS > calls));
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
    each_call_of_cuda_fails(7);
    each_way_of_words();
    by_nccl = true;
    each_way_of_words();
    each_call_fails_without_other_words(0);
    each_call_fails_without_other_words(1);
    each_call_of_cuda_fails(17);
    standin_nccl_reset();
    return 0;
}
