/* test_memory.c - what a GPU has left bounds the batch and the budget, 16 bits make room for twice
 * as much, the table is what cudaMemGetInfo shows, and what a step leaves unused can be given back.
 * On the stand-in, whose memory a test can set, and which counts it.
 */
#include "support/trainer/plan_models.h"

#include "support/gpu/cuda_kernels.h"
#include "support/leaks.h"
#include "support/trainer/arena_difference.h"
#include "support/trainer/opened_trainer.h"

#include <cuda_runtime_api.h>

#include "support/trainer/trainer_golden.h"

enum { MEMORY_BYTES = 16 << 20, LAYERS = 16 };

static stoker_model *network(void)
{
    stoker_model *model = stk_test_begin(8, 8, 4);
    char name[16];
    for (int i = 0; i < LAYERS; i++) {
        (void)snprintf(name, sizeof(name), "bn%d", i);
        (void)stoker_model_batch_norm(model, name, NULL);
        (void)snprintf(name, sizeof(name), "relu%d", i);
        (void)stoker_model_relu(model, name);
    }
    (void)stoker_model_global_avg_pool(model, "mean");
    (void)stoker_model_flatten(model, "flatten");
    (void)stoker_model_softmax_cross_entropy(model, 0.0F);
    return stk_test_end(model);
}

static stoker_trainer_options options_of(uint32_t batch_size, stoker_dtype precision)
{
    return stk_trainer_options(.backend = "cuda", .batch_size = batch_size, .precision = precision);
}

static void begin(uint64_t memory_bytes)
{
    standin_cuda_reset(1);
    standin_cuda_memory(memory_bytes);
    standin_cuda_use_kernels();
}

/* What a trainer takes on a GPU that has enough. */
static stoker_trainer_memory memory_of(const stoker_model *model, stoker_trainer_options options)
{
    stoker_trainer *trainer = trainer_of(model, options);
    stoker_trainer_memory memory;
    stoker_trainer_get_memory(trainer, &memory);
    stoker_trainer_destroy(&trainer);
    return memory;
}

CleanTest(trainer_cuda_memory, the_largest_batch_takes_half_of_what_is_free)
{
    static const stoker_dtype types[] = { STOKER_DTYPE_FLOAT32, STOKER_DTYPE_FLOAT16,
                                          STOKER_DTYPE_BFLOAT16 };
    stoker_model *model = network();
    uint32_t batches[3];
    for (int t = 0; t < 3; t++) {
        begin(MEMORY_BYTES);
        const stoker_trainer_memory memory =
            memory_of(model, options_of(STOKER_BATCH_SIZE_AUTO, types[t]));
        cr_assert_leq(memory.peak, MEMORY_BYTES / 2);
        cr_assert_gt((double)memory.peak, MEMORY_BYTES / 2 * 0.9);
        begin(UINT64_C(1) << 30);
        cr_assert_gt((double)memory_of(model, options_of(memory.batch_size + 64, types[t])).peak,
                     MEMORY_BYTES / 2 * 0.98);
        batches[t] = memory.batch_size;
    }
    cr_log_info("batches that fit: %u in float32, %u in float16", batches[0], batches[1]);
    cr_assert_gt(batches[1], batches[0] * 1.6);
    cr_assert_eq(batches[1], batches[2]);
    stoker_model_destroy(&model);
}

/* More than the GPU has left is never planned for: computing values again makes room, or create
 * reports that nothing does. */
CleanTest(trainer_cuda_memory, a_budget_is_at_most_what_is_free)
{
    stoker_model *model = network();
    stoker_trainer_options options = options_of(256, STOKER_DTYPE_FLOAT16);
    begin(UINT64_C(1) << 30);
    options.memory_budget = UINT64_C(1) << 29;
    const stoker_trainer_memory plain = memory_of(model, options);
    cr_assert_not(plain.recompute_batch_norm);
    begin(plain.peak - 1);
    const stoker_trainer_memory remade = memory_of(model, options);
    cr_assert(remade.recompute_batch_norm);
    cr_assert_lt(remade.activations, plain.activations);
    begin(300000); /* little more than what belongs to the back end itself */
    expect_refused(model, options, STOKER_ELIMIT, "a batch of 256 takes at least");
    stoker_model_destroy(&model);
}

/* ---- what cudaMemGetInfo shows --------------------------------------------------------------- */

enum { FEW = 2, PIXELS = 28 * 28 };

static uint64_t free_bytes(void)
{
    size_t left = 0;
    size_t all = 0;
    cr_assert_eq(cudaMemGetInfo(&left, &all), cudaSuccess);
    return left;
}

static stoker_batch digits(uint32_t count, uint64_t key)
{
    static float images[FEW * PIXELS];
    static int64_t labels[FEW];
    golden_fill(images, (uint64_t)count * PIXELS, key, 1.0F);
    for (uint32_t i = 0; i < count; i++)
        labels[i] = (int64_t)((key + i) % 10);
    return golden_images(images, labels, count, 28, 28, 1);
}

static void train(stoker_trainer *trainer, uint64_t first, uint64_t steps)
{
    for (uint64_t i = first; i < first + steps; i++) {
        const stoker_batch batch = digits(FEW, i);
        cr_assert_eq(stoker_trainer_step(trainer, &batch, NULL), STOKER_OK);
    }
}

/* Convolutions and linear layers, each optimizer state, averages, three types: to the byte. Steps
 * take nothing more. */
CleanTest(trainer_cuda_memory, the_table_is_what_the_driver_counts)
{
    static const stoker_dtype types[] = { STOKER_DTYPE_FLOAT32, STOKER_DTYPE_FLOAT16,
                                          STOKER_DTYPE_BFLOAT16 };
    stoker_model *model = stk_test_mnist();
    for (int t = 0; t < 3; t++) {
        begin(UINT64_C(1) << 30);
        stoker_trainer_options options = options_of(FEW, types[t]);
        options.optimizer = t == 0 ? STOKER_OPTIMIZER_ADAM : STOKER_OPTIMIZER_SGD;
        options.ema_decay = t == 1 ? 0.9F : 0;
        const uint64_t before = free_bytes();
        stoker_trainer *trainer = trainer_of(model, options);
        stoker_trainer_memory memory;
        stoker_trainer_get_memory(trainer, &memory);
        cr_assert_eq(before - free_bytes(), memory.peak);
        train(trainer, 0, 3);
        const stoker_batch batch = digits(1, 9);
        stoker_evaluation sum = { 0 };
        cr_assert_eq(stoker_trainer_evaluate(trainer, &batch, &sum), STOKER_OK);
        cr_assert_eq(before - free_bytes(), memory.peak);
        stoker_trainer_destroy(&trainer);
        cr_assert_eq(free_bytes(), before);
    }
    stoker_model_destroy(&model);
}

/* ---- trimming -------------------------------------------------------------------------------- */

CleanTest(trainer_cuda_memory, what_a_step_leaves_unused_is_given_back_and_taken_again)
{
    stoker_model *model = stk_test_mnist();
    begin(UINT64_C(1) << 30);
    stoker_trainer_options options = options_of(FEW, STOKER_DTYPE_FLOAT16);
    options.accumulate = 2;
    stoker_trainer *trainer = trainer_of(model, options);
    stoker_trainer *whole = trainer_of(model, options);
    stoker_trainer_memory memory;
    stoker_trainer_get_memory(trainer, &memory);
    train(whole, 0, 9);

    train(trainer, 0, 4); /* two groups are over, and recorded */
    uint64_t before = free_bytes();
    uint64_t given = stoker_trainer_trim(trainer);
    cr_assert_eq(free_bytes() - before, given);
    cr_assert_gt(given, memory.activations + memory.gradients);
    cr_assert_lt(given, memory.activations + memory.gradients + memory.workspace);
    cr_assert_eq(stoker_trainer_trim(trainer), 0);
    train(trainer, 4, 1); /* half of a group: its gradients stay */
    before = free_bytes();
    const uint64_t fewer = stoker_trainer_trim(trainer);
    cr_assert_eq(free_bytes() - before, fewer);
    cr_assert_lt(fewer, given - memory.gradients + 1);
    train(trainer, 5, 4);
    cr_assert_eq(difference(trainer, whole, STK_ARENA_PARAMETERS), 0);

    /* With no memory left a step reports it, and loses nothing. */
    (void)stoker_trainer_trim(trainer);
    standin_cuda_memory((UINT64_C(1) << 30) - free_bytes());
    const stoker_batch batch = digits(FEW, 9);
    cr_assert_eq(stoker_trainer_step(trainer, &batch, NULL), STOKER_ENOMEM);
    standin_cuda_memory(UINT64_C(1) << 30);
    train(trainer, 9, 1);
    train(whole, 9, 1);
    cr_assert_eq(difference(trainer, whole, STK_ARENA_PARAMETERS), 0);
    stoker_trainer_destroy(&trainer);
    stoker_trainer_destroy(&whole);
    stoker_model_destroy(&model);
    cr_assert_eq(standin_cuda_live(), 0);
}

/* A trimmed trainer evaluates, answers and loads as any. */
CleanTest(trainer_cuda_memory, on_a_cpu_activations_and_gradients_are_given_back)
{
    stoker_model *model = stk_test_mnist();
    stoker_trainer_options options = options_of(FEW, STOKER_DTYPE_FLOAT32);
    options.backend = "cpu";
    options.threads = 1;
    stoker_trainer *trainer = trainer_of(model, options);
    stoker_trainer_memory memory;
    stoker_trainer_get_memory(trainer, &memory);
    static float outputs[2][FEW * 10];
    const stoker_batch batch = digits(FEW, 1);
    train(trainer, 0, 2);
    cr_assert_eq(stoker_trainer_predict(trainer, batch.images.data, FEW, outputs[0]), STOKER_OK);
    cr_assert_eq(stoker_trainer_trim(trainer), memory.activations + memory.gradients);
    cr_assert_eq(stoker_trainer_predict(trainer, batch.images.data, FEW, outputs[1]), STOKER_OK);
    cr_assert_eq(memcmp(outputs[0], outputs[1], sizeof(outputs[0])), 0);
    cr_assert_eq(stoker_trainer_trim(NULL), 0);
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}
