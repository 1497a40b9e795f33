/* test_contexts.c - training on GPU 1 initializes no other GPU, and leaves the thread as it was.
 *
 * The thread has chosen no device: it is at GPU 0, which nothing has initialized.
 */
#include "support/trainer/cuda_trainer_case.h"

static void expect_untouched(const char *what)
{
    cr_assert(!standin_cuda_initialized(0), "%s: GPU 0 was initialized", what);
    cr_assert_eq(standin_cuda_pushed(), 0, "%s", what);
}

/* Whatever a program calls. */
static void whole_life(const stoker_model *model, stoker_trainer_options options, const char *path)
{
    float outputs[BATCH * CLASSES];
    char table[4096];
    stoker_evaluation sum = { 0 };
    stoker_trainer *trainer = trainer_of(model, options);
    expect_untouched("create");
    for (uint64_t i = 0; i < 5; i++)
        step(trainer, i, BATCH);
    expect_untouched("step");
    cr_assert_eq(stoker_trainer_flush(trainer, NULL), STOKER_OK);
    expect_untouched("flush");
    cr_assert_eq(stoker_trainer_evaluate(trainer, batch_of(0, BATCH), &sum), STOKER_OK);
    cr_assert_eq(stoker_trainer_predict(trainer, batch_of(0, BATCH)->images.data, BATCH, outputs),
                 STOKER_OK);
    expect_untouched("evaluate");
    cr_assert_eq(stoker_trainer_save(trainer, path, NULL, 0, NULL), STOKER_OK);
    cr_assert_eq(stoker_trainer_load(trainer, path, NULL, 0, NULL, NULL), STOKER_OK);
    expect_untouched("checkpoint");
    (void)stoker_trainer_memory_table(trainer, table, sizeof(table));
    stoker_trainer_destroy(&trainer);
    expect_untouched("destroy");
}

static stoker_model *convolutions(void)
{
    stoker_model *model = stk_test_begin(SIDE, SIDE, CHANNELS);
    stk_test_conv(model, "conv1", 8, 1);
    (void)stoker_model_relu(model, "relu1");
    (void)stoker_model_flatten(model, "flatten");
    stk_test_linear(model, "fc", CLASSES);
    (void)stoker_model_softmax_cross_entropy(model, 0);
    return stk_test_end(model);
}

CleanTest(trainer_cuda_contexts, training_on_one_gpu_initializes_no_other)
{
    char path[] = "/tmp/stoker_cuda_contexts_XXXXXX";
    const int file = mkstemp(path);
    stoker_model *const models[] = { network(), convolutions() };
    cr_assert_geq(file, 0);
    (void)close(file);
    for (int m = 0; m < 2; m++)
        for (int benchmark = 0; benchmark <= 1; benchmark++) {
            begin();
            standin_cuda_reads_pageable(m == 1);
            stoker_trainer_options options = options_of("cuda:1");
            options.benchmark = benchmark == 1;
            whole_life(models[m], options, path);
            cr_assert(standin_cuda_initialized(1));
            cr_assert_eq(standin_cuda_live(), 0);
        }
    for (int m = 0; m < 2; m++) {
        stoker_model *model = models[m];
        stoker_model_destroy(&model);
    }
    cr_assert_eq(unlink(path), 0);
}

CleanTest(trainer_cuda_contexts, nor_does_half_a_network)
{
    char path[] = "/tmp/stoker_cuda_contexts_XXXXXX";
    const int file = mkstemp(path);
    stoker_model *model = network();
    cr_assert_geq(file, 0);
    (void)close(file);
    begin();
    standin_cuda_reset(3);
    standin_cuda_use_kernels();
    stoker_trainer_options options = options_of("cuda:1,cuda:2");
    options.split = 6;
    whole_life(model, options, path);
    options.backend = "cuda:2,cpu";
    whole_life(model, options, path);
    stoker_model_destroy(&model);
    (void)unlink(path);
}

/* cudaSetDevice() restores the device, and initializes it. */
CleanTest(trainer_cuda_contexts, a_runtime_without_the_drivers_functions_will_do)
{
    stoker_model *model = network();
    int device = -1;
    begin();
    stoker_trainer *with = trainer_of(model, options_of("cuda:1"));
    standin_cuda_no_contexts(true);
    stoker_trainer *without = trainer_of(model, options_of("cuda:1"));
    for (uint64_t i = 0; i < 5; i++) {
        step(with, i, BATCH);
        step(without, i, BATCH);
    }
    check_same_bits(with, without);
    stoker_trainer_destroy(&with);
    stoker_trainer_destroy(&without);
    cr_assert(standin_cuda_initialized(0));
    cr_assert_eq(cudaGetDevice(&device), cudaSuccess);
    cr_assert_eq(device, 0);
    end(&model);
}
