/* test_nccl.c - one rank of NCCL on a GPU: its sums are captured with the step, and change no bit
 * of what the GPU computes without them.
 *
 * Exits 77 with the reason if there is no GPU, no kernels or no NCCL, 1 if a check failed. */
#include "support/ranks/rank_run.h"

#include "first_gpu.h"
#include "kernels/train/train.h"
#include "trainer/peers/nccl/functions.h"

enum { STEPS = 8 };

static void train(stoker_trainer *trainer)
{
    struct samples samples;
    for (uint64_t i = 0; i < STEPS; i++) /* the last batch is smaller */
        done(trainer,
             stoker_trainer_step(
                 trainer, batch_of(&samples, i * BATCH, i + 1 < STEPS ? BATCH : BATCH / 2), NULL));
}

static stoker_trainer_options gpu_options(stoker_peers peers)
{
    stoker_trainer_options options = options_of("cuda");
    options.deterministic = true;
    options.clip_norm = 0.5F;
    options.peers = peers;
    return options;
}

static void compare(bool uncaptured)
{
    stoker_trainer_capture capture;
    stoker_model *model = network();
    const stoker_trainer_options alone = gpu_options(STOKER_PEERS_NONE);
    stoker_trainer_options with_nccl = gpu_options(STOKER_PEERS_NCCL);
    with_nccl.uncaptured = uncaptured;
    stoker_trainer *one = trainer_of(model, &alone);
    stoker_trainer *rank = trainer_of(model, &with_nccl);
    CHECK(stoker_trainer_world_size(rank) == 1);
    CHECK(rank->device_sums != NULL);
    train(one);
    train(rank);
    stoker_trainer_get_capture(rank, &capture);
    if (capture.reason != NULL)
        printf("not captured: %s\n", capture.reason);
    CHECK(capture.refused == 0);
    CHECK(capture.launched == (uncaptured ? 0 : STEPS - 2)); /* each size is queued once */
    CHECK(difference(one, rank, STK_ARENA_PARAMETERS) <= 0);
    CHECK(difference(one, rank, STK_ARENA_STATISTICS) <= 0);
    stoker_trainer_destroy(&rank);
    stoker_trainer_destroy(&one);
    stoker_model_destroy(&model);
    printf("one rank, %s: the bits without NCCL\n", uncaptured ? "queued" : "captured");
}

int main(void)
{
    struct stk_cuda_runtime cuda;
    struct stk_nccl_functions nccl;
    stoker_error error = { .message = "" };
    size_t bytes = 0;
    const char *const missing =
        stk_train_fatbin(&bytes) == NULL ? "built without nvcc" : stk_gpu_missing(&cuda);
    if (missing != NULL)
        return stk_gpu_skip(missing);
    if (stk_nccl_load(&nccl, &error) != STOKER_OK)
        return stk_gpu_skip(error.message);
    printf("NCCL %d\n", nccl.version);
    compare(false);
    compare(true);
    return 0;
}
