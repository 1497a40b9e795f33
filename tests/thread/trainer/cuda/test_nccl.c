/* test_nccl.c - ranks that are threads with a stand-in GPU each, and sum by the stand-in NCCL: the
 * numbers of one rank. Streams are threads, so ThreadSanitizer sees a sum that no event orders. */
#include "support/gpu/cuda_kernels.h"
#include "support/ranks/rank_threads.h"
#include "support/ranks/rank_train_cases.h"
#include "support/standin_nccl/standin_nccl.h"

#include <cuda_runtime_api.h>

enum { RANKS_MAX = 3 };

static void begin(uint32_t gpus)
{
    standin_nccl_reset();
    standin_cuda_reset((int)gpus);
    standin_cuda_delay(5);
    standin_cuda_use_kernels();
}

static void end(void)
{
    CHECK(standin_nccl_violations() == 0);
    CHECK(standin_nccl_live() == 0);
    CHECK(standin_cuda_violations() == 0);
    CHECK(standin_cuda_live() == 0);
}

/* What training in host memory must show as well. */
static void cases_of_host_memory(void)
{
    meet();
    cases_of_any_number();
    if (ranks > 1)
        cases_of_several();
}

/* Several passes to an update: each rank adds its own before all are added, so only rounding
 * differs. */
static void groups_of_passes_are_those_of_one_rank(void)
{
    meet();
    stoker_model *model = network();
    stoker_trainer_options options = options_of("cuda");
    options.deterministic = true;
    options.optimizer = STOKER_OPTIMIZER_SGD;
    options.accumulate = PASSES;
    stoker_trainer_options single = options;
    leave_peers(&single);
    single.accumulate = PASSES * ranks;
    stoker_trainer *together = trainer_of(model, &options);
    stoker_trainer *one = trainer_of(model, &single);
    train_groups(together, 0, rank, rank + 1);
    train_groups(one, 0, 0, ranks);
    CHECK(difference(together, one, STK_ARENA_PARAMETERS) <= 1e-6);
    CHECK(difference(together, one, STK_ARENA_STATISTICS) <= 1e-6);
    CHECK(stoker_trainer_updates(together) == UPDATES);
    stoker_trainer_destroy(&together);
    stoker_trainer_destroy(&one);
    stoker_model_destroy(&model);
}

/* Operation by operation or as a graph: the same bits. */
static void graphs_change_no_bit(void)
{
    struct updates ours = { 0 };
    struct updates theirs = { 0 };
    stoker_trainer_capture capture;
    meet();
    stoker_model *model = network();
    stoker_trainer_options options = options_of("cuda");
    options.deterministic = true;
    stoker_trainer *captured = trainer_of(model, &options);
    options.uncaptured = true;
    stoker_trainer *queued = trainer_of(model, &options);
    train_together(captured, 0, UPDATES, &ours);
    train_together(queued, 0, UPDATES, &theirs);
    CHECK(difference(captured, queued, STK_ARENA_PARAMETERS) <= 0);
    stoker_trainer_get_capture(captured, &capture);
    CHECK(capture.launched == 3); /* four passes of one kind, and the first is queued */
    CHECK(capture.refused == 0);
    stoker_trainer_get_capture(queued, &capture);
    CHECK(capture.launched == 0);
    stoker_trainer_destroy(&captured);
    stoker_trainer_destroy(&queued);
    stoker_model_destroy(&model);
}

/* One rank gives memory back, and with it its graphs: all forget theirs, and capture again. */
static void a_rank_may_forget_its_graphs(void)
{
    struct updates updates = { 0 };
    stoker_trainer_capture capture;
    meet();
    stoker_model *model = network();
    stoker_trainer_options options = options_of("cuda");
    stoker_trainer *trainer = trainer_of(model, &options);
    train_together(trainer, 0, 4, &updates);
    if (rank + 1 == ranks)
        CHECK(stoker_trainer_trim(trainer) > 0);
    train_together(trainer, 0, 4, &updates);
    stoker_trainer_get_capture(trainer, &capture);
    CHECK(capture.queued == 2);
    CHECK(capture.launched == 6);
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}

/* Batches and labels in the memory of each rank's GPU; a label that only the GPU sees is
 * everybody's error. */
static void batches_lie_on_the_gpu(void)
{
    struct samples samples;
    meet();
    stoker_model *model = network();
    stoker_trainer_options options = options_of("cuda");
    stoker_trainer *trainer = trainer_of(model, &options);
    CHECK(stoker_trainer_device_index(trainer) == rank);
    for (uint32_t i = 0; i < 3; i++) {
        void *images = NULL;
        void *labels = NULL;
        stoker_batch there = *batch_of(&samples, first_of(i, rank), BATCH);
        const size_t image_bytes = sizeof(float) * BATCH * FLOATS;
        const size_t label_bytes = sizeof(int64_t) * BATCH;
        samples.labels[3] = i == 2 && rank + 1 == ranks ? CLASSES : samples.labels[3];
        CHECK(cudaSetDevice((int)rank) == cudaSuccess);
        CHECK(cudaMalloc(&images, image_bytes) == cudaSuccess);
        CHECK(cudaMalloc(&labels, label_bytes) == cudaSuccess);
        CHECK(cudaMemcpy(images, samples.images, image_bytes, cudaMemcpyHostToDevice) == 0);
        CHECK(cudaMemcpy(labels, samples.labels, label_bytes, cudaMemcpyHostToDevice) == 0);
        there.images.data = images;
        there.labels.data = labels;
        there.device = STOKER_DEVICE_CUDA;
        there.device_index = rank;
        const int rc = stoker_trainer_step(trainer, &there, NULL);
        CHECK(rc == (i == 2 ? STOKER_EINVAL : STOKER_OK));
        CHECK(i < 2 || strstr(stoker_trainer_error(trainer)->message, "1 labels") != NULL);
        CHECK(cudaFree(images) == cudaSuccess);
        CHECK(cudaFree(labels) == cudaSuccess);
        CHECK(cudaSetDevice(0) == cudaSuccess);
    }
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}

/* If every rank has a GPU. */
static void automatic_is_a_gpu(void)
{
    meet();
    stoker_model *model = network();
    stoker_trainer_options options = options_of("auto");
    options.backend = "auto";
    stoker_trainer *trainer = trainer_of(model, &options);
    CHECK(strcmp(stoker_trainer_backend(trainer), "cuda") == 0);
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}

static void run(uint32_t world_size, void (*what)(void))
{
    begin(RANKS_MAX);
    run_ranks(world_size, what);
    end();
}

int main(void)
{
    static void (*const cases[])(
        void) = { cases_of_host_memory,   groups_of_passes_are_those_of_one_rank,
                  graphs_change_no_bit,   a_rank_may_forget_its_graphs,
                  batches_lie_on_the_gpu, automatic_is_a_gpu };
    loss_rounding = 1e-12;
    every_backend = "cuda";
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        run(2, cases[i]);
    run(RANKS_MAX, graphs_change_no_bit);
#ifndef STK_TEST_TSAN /* it is slow, and the streams are those of two ranks */
    run(1, cases_of_host_memory);
    run(RANKS_MAX, cases_of_host_memory);
#endif
    standin_nccl_reset();
    return 0;
}
