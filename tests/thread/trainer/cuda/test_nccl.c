/* test_nccl.c - ranks that are threads with a stand-in GPU each, and sum by the stand-in NCCL: the numbers of one rank.
 * Streams are threads, so ThreadSanitizer sees a sum that no event orders. */
#include "support/cuda_train_host_kernels.h"
#include "support/rank_threads.h"
#include "support/rank_train_cases.h"
#include "support/standin_nccl/standin_nccl.h"

enum { RANKS_MAX = 3 };

static void begin(uint32_t gpus)
{
    standin_nccl_reset();
    standin_cuda_reset((int)gpus);
    standin_cuda_delay(5);
    stk_cuda_use_train_host_kernels();
}

static void end(void)
{
    CHECK(standin_nccl_violations() == 0);
    CHECK(standin_nccl_live() == 0);
    CHECK(standin_cuda_violations() == 0);
    CHECK(standin_cuda_live() == 0);
}

static stoker_trainer_options gpu_options(void)
{
    stoker_trainer_options options = options_of("cuda");
    options.deterministic = true;
    return options;
}

/* Clipping needs the norm of all, averages the weights of all. */
static void bits_are_those_of_one_rank(void)
{
    stoker_trainer_options options = gpu_options();
    meet();
    CHECK(compare(options) <= 0);
    options.clip_norm = 0.05F;
    options.ema_decay = 0.9F;
    options.metrics_interval = 1;
    options.uncaptured = true;
    CHECK(compare(options) <= 0);
}

/* Statistics of all ranks, forward and backward: also from a rank without samples. */
static void statistics_are_those_of_one_batch(void)
{
    meet();
    for (uint32_t variant = 0; variant < 3; variant++) {
        struct updates ours = { 0 };
        struct updates theirs = { 0 };
        stoker_model *model = network();
        stoker_trainer_options options = gpu_options();
        options.sync_batch_norm = true;
        options.optimizer = STOKER_SGD;
        options.recompute_batch_norm = variant == 1;
        options.checkpoint_segments = variant == 2 ? 3 : 0;
        stoker_trainer_options single = options;
        leave_peers(&single);
        stoker_trainer *together = trainer_of(model, &options);
        stoker_trainer *one = trainer_of(model, &single);
        train_together(together, 0, UPDATES, &ours);
        train_in_one_batch(one, &theirs);
        CHECK(difference(together, one, STK_ARENA_PARAMETERS) <= 1e-6);
        CHECK(difference(together, one, STK_ARENA_STATISTICS) <= 1e-6);
        compare_steps(&ours, &theirs, 1e-5);
        stoker_trainer_destroy(&together);
        stoker_trainer_destroy(&one);
        stoker_model_destroy(&model);
    }
}

static void run(uint32_t world_size, void (*what)(void))
{
    begin(RANKS_MAX);
    run_ranks(world_size, what);
    for (uint32_t r = 0; r < world_size && world_size > 1; r++) {
        CHECK(standin_nccl_captured(r) > 0);
        CHECK(standin_nccl_captured(r) < standin_nccl_operations(r));
    }
    end();
}

int main(void)
{
    loss_rounding = 1e-12;
    for (uint32_t world_size = 1; world_size <= RANKS_MAX; world_size++)
        run(world_size, bits_are_those_of_one_rank);
    run(2, statistics_are_those_of_one_batch);
    run(3, statistics_are_those_of_one_batch);
    standin_nccl_reset();
    return 0;
}
