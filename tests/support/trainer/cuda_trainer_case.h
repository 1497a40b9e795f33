/* cuda_trainer_case.h - a small network of every operation but convolutions and linear layers,
 * batches for it, and trainers that are compared to the bit. On the stand-in runtime, kernels run
 * from their source.
 */
#ifndef STK_TEST_CUDA_TRAINER_CASE_H
#define STK_TEST_CUDA_TRAINER_CASE_H

#include "plan_models.h"

#include "arena_difference.h"
#include "opened_trainer.h"
#include "support/gpu/cuda_kernels.h"
#include "support/leaks.h"
#include "trainer_golden.h"

#include <cuda_runtime_api.h>

#include "loader/base/fault.h"

enum { SIDE = 8, CHANNELS = 3, CLASSES = 12, BATCH = 8, SAMPLES_MAX = 16 };

static inline void begin(void)
{
    standin_cuda_reset(2);
    standin_cuda_delay(5);
    standin_cuda_use_kernels();
}

/* Trainers are gone by then. */
static inline void end(stoker_model **model)
{
    stoker_model_destroy(model);
    cr_assert_eq(standin_cuda_live(), 0);
    stk_test_check_leaks();
}

/* Every operation but convolutions and linear layers. */
static inline stoker_model *network(void)
{
    stoker_model *model = stk_test_begin(SIDE, SIDE, CHANNELS);
    (void)stoker_model_batch_norm(model, "bn1", NULL);
    (void)stoker_model_relu(model, "relu1");
    (void)stoker_model_dropout(model, "drop", 0.25F);
    (void)stoker_model_batch_norm(model, "bn2", NULL);
    (void)stoker_model_add(model, "sum", "relu1");
    (void)stoker_model_relu(model, "relu2");
    (void)stoker_model_max_pool2d(model, "pool", &(stoker_pool2d){ .kernel = { 2, 2 } });
    (void)stoker_model_avg_pool2d(model, "mean", &(stoker_pool2d){ .kernel = { 2, 2 } });
    (void)stoker_model_batch_norm(model, "bn3", NULL);
    (void)stoker_model_flatten(model, "flatten");
    (void)stoker_model_softmax_cross_entropy(model, 0.1F);
    return stk_test_end(model);
}

static inline stoker_trainer_options options_of(const char *backend)
{
    return stk_trainer_options(.backend = backend, .batch_size = BATCH,
                               .optimizer = STOKER_OPTIMIZER_ADAMW, .learning_rate = 0.02F,
                               .schedule = STOKER_SCHEDULE_ONE_CYCLE, .total_updates = 20,
                               .clip_norm = 0.5F, .ema_decay = 0.9F, .accumulate = 2, .seed = 7);
}

/* Samples [first, first + count) of an endless set. */
static inline const stoker_batch *batch_of(uint64_t first, uint32_t count)
{
    static float images[SAMPLES_MAX * SIDE * SIDE * CHANNELS];
    static int64_t labels[SAMPLES_MAX];
    static stoker_batch batch = STOKER_BATCH_INIT;
    const uint64_t floats = (uint64_t)SIDE * SIDE * CHANNELS;
    for (uint64_t i = 0; i < count; i++) {
        golden_fill(images + i * floats, floats, 500 + first + i, 1.0F);
        labels[i] = (int64_t)((first + i) * 5 % CLASSES);
    }
    batch = golden_images(images, labels, count, SIDE, SIDE, CHANNELS);
    return &batch;
}

/* Give it back with cudaFree(). */
static inline void *on_device(const void *from, size_t bytes)
{
    void *memory = NULL;
    cr_assert_eq(cudaMalloc(&memory, bytes), cudaSuccess);
    cr_assert_eq(cudaMemcpy(memory, from, bytes, cudaMemcpyHostToDevice), cudaSuccess);
    return memory;
}

/* A whole batch in the GPU's memory: images and labels are the caller's, as on_device() makes
 * them. */
static inline stoker_batch batch_on_device(const stoker_batch *batch)
{
    stoker_batch there = *batch;
    there.images.data =
        on_device(batch->images.data, sizeof(float) * batch->count * SIDE * SIDE * CHANNELS);
    there.labels.data = on_device(batch->labels.data, sizeof(int64_t) * batch->count);
    there.device = STOKER_DEVICE_CUDA;
    return there;
}

static inline stoker_step step(stoker_trainer *trainer, uint64_t number, uint32_t count)
{
    stoker_step out = { 0 };
    const int rc = stoker_trainer_step(trainer, batch_of(number * BATCH, count), &out);
    cr_assert_eq(rc, STOKER_OK, "%s",
                 rc == STOKER_OK ? "" : stoker_trainer_error(trainer)->message);
    return out;
}

/* Compare all that a run moves. */
static inline void check_within(const stoker_trainer *a, const stoker_trainer *b, double tolerance,
                                const char *what)
{
    const struct stk_stage *const stage = b->stage[0];
    cr_assert_leq(difference(a, b, STK_ARENA_PARAMETERS), tolerance, "%s: weights", what);
    cr_assert_leq(difference(a, b, STK_ARENA_STATISTICS), tolerance, "%s: statistics", what);
    cr_assert(stage->ema == NULL || difference(a, b, STK_ARENA_EMA) <= tolerance, "%s", what);
    cr_assert(stage->state[0] == NULL || difference(a, b, STK_ARENA_STATE) <= tolerance, "%s",
              what);
}

static inline void check_same_bits(const stoker_trainer *a, const stoker_trainer *b)
{
    check_within(a, b, 0, "bits");
}

/* Steps of which the last is short, a flush and an evaluation; or the first error. */
static inline int whole_run(const stoker_model *model, const stoker_trainer_options *options,
                            uint64_t steps)
{
    stoker_trainer *trainer = NULL;
    stoker_error error = { .code = 0 };
    stoker_evaluation sum = { 0 };
    int rc = stoker_trainer_create(&trainer, model, options, &error);
    for (uint64_t i = 0; i < steps && rc == STOKER_OK; i++)
        rc = stoker_trainer_step(trainer, batch_of(i * BATCH, i + 1 == steps ? 3 : BATCH), NULL);
    if (rc == STOKER_OK)
        rc = stoker_trainer_flush(trainer, NULL);
    if (rc == STOKER_OK)
        rc = stoker_trainer_evaluate(trainer, batch_of(0, BATCH), &sum);
    if (rc != STOKER_OK)
        cr_assert_neq(trainer == NULL ? error.code : stoker_trainer_error(trainer)->code, 0);
    stoker_trainer_destroy(&trainer);
    return rc;
}

static inline void fail_each_call(const stoker_trainer_options *options, uint64_t steps,
                                  bool reads_pageable)
{
    enum { CODE = 700 /* cudaErrorIllegalAddress */ };
    stoker_model *model = network();
    uint64_t failed = 0;
    for (uint64_t nth = 1;; nth++) {
        begin();
        standin_cuda_reads_pageable(reads_pageable);
        const int64_t live = stk_fault_live_bytes();
        standin_cuda_fail(nth, CODE, false);
        const int rc = whole_run(model, options, steps);
        cr_assert_eq(standin_cuda_live(), 0, "%s: call %u", options->backend, (unsigned)nth);
        cr_assert_eq(stk_fault_live_bytes(), live, "%s: call %u", options->backend, (unsigned)nth);
        cr_assert_eq(standin_cuda_violations(), 0, "%s: call %u", options->backend, (unsigned)nth);
        cr_assert_eq(standin_cuda_pushed(), 0, "%s: call %u", options->backend, (unsigned)nth);
        if (!standin_cuda_failed())
            break;
        failed += rc != STOKER_OK; /* but for calls that give something back */
        cr_assert(rc == STOKER_OK || rc == STOKER_EDEVICE || rc == STOKER_ENOMEM, "call %u: %d",
                  (unsigned)nth, rc);
    }
    cr_assert_gt(failed, 100);
    end(&model);
}

#endif
