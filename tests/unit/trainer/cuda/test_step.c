/* test_step.c - the `cuda` back end through the stand-in runtime: its steps are those of
 * `ref`, the host waits for none of them, and no failure leaves anything behind.
 *
 * Kernels run from their source.
 */
#include "support/trainer/cuda_trainer_case.h"

#include "support/standin_cudnn/standin_cudnn.h"

enum { STEPS = 6 };

static const double ROUNDING = 4e-5;

Test(trainer_cuda_step, steps_are_those_of_ref)
{
    begin();
    stoker_model *model = network();
    stoker_trainer *cuda = trainer_of(model, options_of("cuda"));
    stoker_trainer *ref = trainer_of(model, options_of("ref"));
    cr_assert_str_eq(stoker_trainer_backend(cuda), "cuda");
    cr_assert_not_null(stoker_trainer_stream(cuda));
    cr_assert_null(stoker_trainer_stream(ref));
    for (uint64_t i = 0; i < STEPS; i++) {
        const uint32_t count = i == 3 ? 5 : BATCH; /* a short one */
        const stoker_step a = step(cuda, i, count);
        const stoker_step b = step(ref, i, count);
        cr_assert_float_eq(a.loss, b.loss, 1e-5 * b.loss, "step %u", (unsigned)i);
        cr_assert_float_eq(a.gradient_norm, b.gradient_norm, 1e-5F);
        cr_assert_eq(a.correct, b.correct);
        cr_assert_eq(a.count, count);
        cr_assert_eq(a.updated, b.updated);
        cr_assert_eq(a.learning_rate, b.learning_rate);
    }
    step(cuda, STEPS, 3);
    step(ref, STEPS, 3);
    cr_assert_eq(stoker_trainer_flush(cuda, NULL), STOKER_OK);
    cr_assert_eq(stoker_trainer_flush(ref, NULL), STOKER_OK);
    cr_assert_eq(stoker_trainer_updates(cuda), stoker_trainer_updates(ref));
    check_within(cuda, ref, ROUNDING, "cuda and ref");
    stoker_trainer_destroy(&cuda);
    stoker_trainer_destroy(&ref);
    end(&model);
}

/* The GPU reads pageable memory by itself, so a copy from there may come late; and the batch is
 * another one as soon as the call returns. Recorded and not, short ones, evaluations that stay on
 * the device. */
Test(trainer_cuda_step, pageable_memory_is_the_callers_once_a_call_returns)
{
    for (int uncaptured = 0; uncaptured < 2; uncaptured++) {
        begin();
        standin_cuda_reads_pageable(true);
        standin_cuda_delay(500);
        stoker_model *model = network();
        stoker_trainer_options options = options_of("cuda");
        options.metrics_interval = 1000;
        options.uncaptured = uncaptured == 1;
        stoker_trainer *cuda = trainer_of(model, options);
        options.backend = "ref";
        stoker_trainer *ref = trainer_of(model, options);
        for (uint64_t i = 0; i < 4 * STEPS; i++) {
            step(cuda, i, i % 7 == 3 ? 5 : BATCH);
            (void)batch_of(4711 + i, SAMPLES_MAX); /* in the same place */
            step(ref, i, i % 7 == 3 ? 5 : BATCH);
        }
        stoker_evaluation sums[2] = { 0 };
        for (uint64_t i = 0; i < 3; i++) {
            cr_assert_eq(stoker_trainer_evaluate(cuda, batch_of(100 * i, 13), NULL), STOKER_OK);
            (void)batch_of(4711 + i, SAMPLES_MAX);
            cr_assert_eq(stoker_trainer_evaluate(ref, batch_of(100 * i, 13), NULL), STOKER_OK);
        }
        cr_assert_eq(stoker_trainer_evaluated(cuda, &sums[0]), STOKER_OK);
        cr_assert_eq(stoker_trainer_evaluated(ref, &sums[1]), STOKER_OK);
        cr_assert_float_eq(sums[0].loss_sum, sums[1].loss_sum, 1e-4);
        cr_assert_eq(standin_cuda_staged(), 0);
        check_within(cuda, ref, ROUNDING, "cuda and ref");
        stoker_trainer_destroy(&cuda);
        stoker_trainer_destroy(&ref);
        end(&model);
    }
}

Test(trainer_cuda_step, the_host_waits_only_for_reports)
{
    begin();
    stoker_model *model = network();
    stoker_trainer_options options = options_of("cuda");
    options.metrics_interval = 5;
    stoker_trainer *cuda = trainer_of(model, options);
    options.backend = "ref";
    stoker_trainer *ref = trainer_of(model, options);
    step(cuda, 0, BATCH);
    step(ref, 0, BATCH);
    for (uint64_t i = 1; i < 10; i++) {
        const struct standin_cuda_host before = standin_cuda_host();
        const stoker_step a = step(cuda, i, BATCH);
        const struct standin_cuda_host after = standin_cuda_host();
        const stoker_step b = step(ref, i, BATCH);
        cr_assert_eq(a.count, i % 5 == 4 ? 5 * BATCH : 0);
        cr_assert_eq(a.count, b.count);
        cr_assert_float_eq(a.loss, b.loss, 1e-5 * (1 + b.loss));
        if (a.count > 0)
            continue;
        cr_assert_eq(after.waits, before.waits, "step %u", (unsigned)i);
        cr_assert_eq(after.copies, before.copies);
        if (i >= 4) /* steps 2 and 3 are recorded */
            cr_assert_eq(after.allocations, before.allocations);
    }
    step(cuda, 10, BATCH);
    stoker_step rest;
    cr_assert_eq(stoker_trainer_flush(cuda, &rest), STOKER_OK);
    cr_assert_eq(rest.count, BATCH);
    stoker_trainer_destroy(&cuda);
    stoker_trainer_destroy(&ref);
    end(&model);
}

/* Groups of two, dropout, batches of three sizes: each kind of step is recorded at its second
 * time. */
Test(trainer_cuda_step, a_recorded_step_gives_the_same_bits)
{
    begin();
    stoker_model *model = network();
    stoker_trainer_options options = options_of("cuda");
    options.metrics_interval = 100;
    stoker_trainer *captured = trainer_of(model, options);
    options.uncaptured = true;
    stoker_trainer *queued = trainer_of(model, options);
    for (uint64_t i = 0; i < 20; i++) {
        const uint32_t count = i % 9 == 8 ? 3 : i % 9 == 7 ? 5 : BATCH;
        const uint64_t launches = standin_cuda_graph_launches();
        step(queued, i, count);
        cr_assert_eq(standin_cuda_graph_launches(), launches);
        step(captured, i, count);
        if (i >= 2 && i < 7)
            cr_assert_eq(standin_cuda_graph_launches(), launches + 1, "step %u", (unsigned)i);
    }
    check_same_bits(captured, queued);
    stoker_step a;
    stoker_step b;
    cr_assert_eq(stoker_trainer_flush(captured, &a), STOKER_OK);
    cr_assert_eq(stoker_trainer_flush(queued, &b), STOKER_OK);
    cr_assert_eq(a.loss, b.loss);
    cr_assert_eq(a.correct, b.correct);
    stoker_trainer_destroy(&captured);
    stoker_trainer_destroy(&queued);
    end(&model);
}

/* An overflow halves the scale on the device, too, and the host learns of it. */
Test(trainer_cuda_step, overflow_is_skipped_on_the_device)
{
    begin();
    stoker_model *model = network();
    stoker_trainer_options options = options_of("cuda");
    options.accumulate = 1;
    options.dynamic_loss_scale = true;
    stoker_trainer *cuda = trainer_of(model, options);
    cr_assert_eq(step(cuda, 0, BATCH).updated, true);
    const stoker_batch *batch = batch_of(0, BATCH);
    ((float *)batch->images.data)[5] = INFINITY;
    stoker_step out;
    cr_assert_eq(stoker_trainer_step(cuda, batch, &out), STOKER_OK);
    cr_assert(out.skipped);
    cr_assert_not(out.updated);
    cr_assert_eq(out.loss_scale, 32768.0F / BATCH);
    cr_assert_eq(stoker_trainer_updates(cuda), 1);
    stoker_trainer_destroy(&cuda);
    end(&model);
}

/* Batches in the GPU's memory give the same; a label that is no class is reported when metrics are,
 * and counts for nothing. */
Test(trainer_cuda_step, batches_may_lie_on_the_device)
{
    begin();
    stoker_model *model = network();
    stoker_trainer_options options = options_of("cuda");
    options.metrics_interval = 2;
    stoker_trainer *here = trainer_of(model, options);
    stoker_trainer *there = trainer_of(model, options);
    stoker_step told;
    step(here, 0, BATCH);
    int64_t *const labels = batch_of(0, BATCH)->labels.data;
    stoker_batch batch = batch_on_device(batch_of(0, BATCH));
    cr_assert_eq(stoker_trainer_step(there, &batch, &told), STOKER_OK);
    cr_assert_eq(step(here, 0, BATCH).count, 2 * BATCH);
    cr_assert_eq(stoker_trainer_step(there, &batch, &told), STOKER_OK);
    cr_assert_eq(told.count, 2 * BATCH);
    check_same_bits(here, there);

    void *const good = batch.labels.data;
    labels[3] = CLASSES;
    batch.labels.data = on_device(labels, sizeof(int64_t) * BATCH);
    cr_assert_eq(stoker_trainer_step(there, &batch, &told), STOKER_OK);
    cr_assert_eq(stoker_trainer_step(there, &batch, &told), STOKER_EINVAL);
    cr_assert_not_null(
        strstr(stoker_trainer_error(there)->message, "2 labels of the last 2 passes"));
    batch.device_index = 1;
    cr_assert_eq(stoker_trainer_step(there, &batch, &told), STOKER_EMISMATCH);
    cr_assert_eq(cudaFree(batch.labels.data), cudaSuccess);
    cr_assert_eq(cudaFree(batch.images.data), cudaSuccess);
    cr_assert_eq(cudaFree(good), cudaSuccess);
    stoker_trainer_destroy(&here);
    stoker_trainer_destroy(&there);
    end(&model);
}

static stoker_model *blocks(void)
{
    stoker_model *model = stk_test_begin(8, 8, 3);
    stk_test_conv(model, "conv1", 8, 1);
    (void)stoker_model_batch_norm(model, "bn1", NULL);
    (void)stoker_model_relu(model, "relu1");
    stk_test_conv(model, "conv2", 8, 1);
    (void)stoker_model_batch_norm(model, "bn2", NULL);
    (void)stoker_model_add(model, "sum", "relu1");
    (void)stoker_model_relu(model, "relu2");
    (void)stoker_model_global_avg_pool(model, "mean");
    (void)stoker_model_flatten(model, "flatten");
    stk_test_linear(model, "fc", 10);
    (void)stoker_model_softmax_cross_entropy(model, 0.0F);
    return stk_test_end(model);
}

/* With TF32 other engines are allowed, which the stand-in has only for those that differ in nothing
 * else. */
Test(trainer_cuda_step, float32_is_rounded_only_when_asked)
{
    begin();
    stoker_model *model = blocks();
    for (int tf32 = 0; tf32 < 2; tf32++) {
        standin_cudnn_reset(true);
        stoker_trainer_options options = stk_trainer_options(.backend = "cuda", .batch_size = 1,
                                                             .deterministic = true, .tf32 = tf32);
        stoker_trainer *trainer = trainer_of(model, options);
        cr_assert_eq(standin_cudnn_rounded() > 0, tf32);
        stoker_trainer_destroy(&trainer);
    }
    end(&model);
}

Test(trainer_cuda_step, a_benchmark_times_engines_in_create)
{
    begin();
    stoker_model *model = blocks();
    uint64_t created[2];
    for (int benchmark = 0; benchmark < 2; benchmark++) {
        stoker_trainer_options options =
            stk_trainer_options(.backend = "cuda", .batch_size = 2, .benchmark = benchmark);
        const uint64_t before = standin_cudnn_runs();
        stoker_trainer *trainer = trainer_of(model, options);
        cr_assert_eq(standin_cuda_host().spins, 0);
        created[benchmark] = standin_cudnn_runs() - before;
        stoker_trainer_destroy(&trainer);
    }
    cr_assert_gt(created[1], created[0] + 20);
    end(&model);
}

/* A core may be all that the loader has. */
Test(trainer_cuda_step, no_wait_takes_a_core)
{
    stoker_model *model = network();
    for (int direct = 0; direct < 2; direct++) {
        float outputs[BATCH * CLASSES];
        stoker_evaluation sum = { 0 };
        begin();
        standin_cuda_delay(300);
        standin_cuda_reads_pageable(direct == 1);
        stoker_trainer *trainer = trainer_of(model, options_of("cuda"));
        for (uint64_t i = 0; i < 5; i++)
            step(trainer, i, BATCH);
        cr_assert_eq(stoker_trainer_flush(trainer, NULL), STOKER_OK);
        cr_assert_eq(stoker_trainer_evaluate(trainer, batch_of(0, BATCH), &sum), STOKER_OK);
        cr_assert_eq(
            stoker_trainer_predict(trainer, batch_of(0, BATCH)->images.data, BATCH, outputs),
            STOKER_OK);
        stoker_trainer_destroy(&trainer);
        cr_assert_gt(standin_cuda_host().waits, 5);
        cr_assert_eq(standin_cuda_host().spins, 0, "%u", (unsigned)standin_cuda_host().spins);
    }
    end(&model);
}

Test(trainer_cuda_step, every_call_of_the_runtime_may_fail)
{
    const stoker_trainer_options options = options_of("cuda");
    fail_each_call(&options, 5, false);
    fail_each_call(&options, 5, true);
}

/* There is none, no kernel was compiled for it, or its driver is too old for them: create finds it
 * out, and "auto" takes the CPU. */
Test(trainer_cuda_step, a_gpu_that_will_not_do_is_refused_and_auto_continues)
{
    static const struct {
        int gpus, capability, driver;
        const char *reason;
    } cases[] = {
        { 0, 9, STANDIN_DRIVER, "no CUDA-capable device" },
        { 1, 5, STANDIN_DRIVER, "compute capability 5.0; the kernels of this build are for " },
        { 1, 9, 12000, "the driver is for CUDA 12.0, " },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin();
        stoker_model *model = network();
        standin_cuda_reset(cases[i].gpus);
        standin_cuda_capability(cases[i].capability, 0);
        standin_cuda_driver(cases[i].driver);
        expect_refused(model, options_of("cuda"), STOKER_EDEVICE, cases[i].reason);
        cr_assert_eq(standin_cuda_live(), 0);
        expect_taken(model, options_of("auto"), "cpu");
        end(&model);
    }
    begin();
    stoker_model *model = network();
    expect_refused(model, options_of("cuda:7"), STOKER_EDEVICE, "there are 2 GPUs");
    expect_taken(model, options_of("auto"), "cuda");
    end(&model);
}

/* Turing has no bfloat16: create says so, and "auto" takes the CPU only if that computes in the
 * type. */
Test(trainer_cuda_step, bfloat16_is_refused_on_a_gpu_without_it)
{
    begin();
    standin_cuda_capability(7, 5);
    stoker_model *model = blocks();
    stoker_trainer_options options =
        stk_trainer_options(.backend = "cuda", .batch_size = 2, .precision = STOKER_DTYPE_BFLOAT16);
    expect_refused(model, options, STOKER_ENOTSUP, "compute capability 7.5");
    expect_refused(model, options, STOKER_ENOTSUP, "float16 runs");
    cr_assert_eq(standin_cuda_live(), 0);
    options.precision = STOKER_DTYPE_FLOAT16;
    expect_taken(model, options, "cuda");
    options.backend = "auto";
    options.precision = STOKER_DTYPE_BFLOAT16;
    stoker_trainer *trainer = NULL;
    stoker_error error = { .code = 0 };
    if (stoker_trainer_create(&trainer, model, &options, &error) == STOKER_OK)
        cr_assert_str_eq(stoker_trainer_backend(trainer), "cpu");
    else
        cr_assert_not_null(strstr(error.message, "compute capability 7.5"), "%s", error.message);
    stoker_trainer_destroy(&trainer);
    standin_cuda_capability(8, 0);
    options.backend = "cuda";
    expect_taken(model, options, "cuda");
    end(&model);
}

/* What is built to learn its workspace is what runs: forward, data, weights of two convolutions,
 * and forward again for evaluation. */
Test(trainer_cuda_step, a_plan_is_made_once)
{
    begin();
    standin_cudnn_reset(true);
    stoker_model *model = blocks();
    stoker_trainer_options options = stk_trainer_options(.backend = "cuda", .batch_size = 2);
    stoker_trainer *trainer = trainer_of(model, options);
    cr_assert_eq(standin_cudnn_plans(), 2 + 1 + 2 + 2, "%u", (unsigned)standin_cudnn_plans());
    stoker_trainer_destroy(&trainer);
    end(&model);
}
