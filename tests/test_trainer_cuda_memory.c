/* test_trainer_cuda_memory.c - what a GPU has left bounds the batch and the budget, and 16 bits make
 * room for twice as much. On the stand-in, whose memory a test can set.
 */
#include "plan_models.h"

#include "cuda_train_twins.h"
#include "leaks.h"
#include "trainer/trainer.h"

#include <string.h>

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
    stoker_trainer_options options = STOKER_TRAINER_OPTIONS_INIT;
    options.backend = "cuda";
    options.batch_size = batch_size;
    options.precision = precision;
    return options;
}

static void begin(uint64_t memory_bytes)
{
    standin_cuda_reset(1);
    standin_cuda_memory(memory_bytes);
    stk_cuda_use_train_twins();
}

/* What a trainer takes on a GPU that has enough. */
static stoker_trainer_memory memory_of(const stoker_model *model, stoker_trainer_options options)
{
    stoker_trainer *trainer = NULL;
    stoker_trainer_memory memory;
    stoker_error error = { .code = 0 };
    options.error = &error;
    cr_assert_eq(stoker_trainer_create(&trainer, model, &options), STOKER_OK, "%s", error.message);
    stoker_trainer_get_memory(trainer, &memory);
    stoker_trainer_destroy(&trainer);
    return memory;
}

Test(trainer_cuda_memory, the_largest_batch_takes_half_of_what_is_free)
{
    static const stoker_dtype types[] = { STOKER_FLOAT32, STOKER_FLOAT16, STOKER_BFLOAT16 };
    stoker_model *model = network();
    uint32_t batches[3];
    for (int t = 0; t < 3; t++) {
        begin(MEMORY_BYTES);
        const stoker_trainer_memory memory =
            memory_of(model, options_of(STOKER_BATCH_SIZE_MAX, types[t]));
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
    stk_test_check_leaks();
}

/* More than the GPU has left is never planned for: what is worked out again makes room, or it is told
 * that nothing does. */
Test(trainer_cuda_memory, a_budget_is_at_most_what_is_free)
{
    stoker_model *model = network();
    stoker_trainer_options options = options_of(256, STOKER_FLOAT16);
    begin(UINT64_C(1) << 30);
    options.memory_budget = UINT64_C(1) << 29;
    const stoker_trainer_memory plain = memory_of(model, options);
    cr_assert_not(plain.recompute_batch_norm);
    begin(plain.peak - 1);
    const stoker_trainer_memory remade = memory_of(model, options);
    cr_assert(remade.recompute_batch_norm);
    cr_assert_lt(remade.activations, plain.activations);

    stoker_trainer *trainer = NULL;
    stoker_error error = { .code = 0 };
    options.error = &error;
    begin(300000); /* little more than what belongs to the back end itself */
    cr_assert_eq(stoker_trainer_create(&trainer, model, &options), STOKER_ELIMIT);
    cr_assert_not_null(strstr(error.message, "a batch of 256 takes at least"), "%s", error.message);
    stoker_model_destroy(&model);
    stk_test_check_leaks();
}
