/* test_split.c - two stages of which one is a GPU, or both, on the stand-in runtime, for
 * ThreadSanitizer: its streams are threads, so a copy that no event orders is a race that it sees.
 */
#include "support/gpu/cuda_kernels.h"
#include "support/runs/rewritten_batch.h"
#include "support/thread_check.h"

enum { CLASSES = STK_REWRITTEN_INPUTS, PASSES = 14 };

/* Nothing of cuDNN and cuBLASLt: their stand-ins have no streams. */
static stoker_model *network(void)
{
    stoker_model *model = NULL;
    const uint32_t shape[1] = { STK_REWRITTEN_INPUTS };
    CHECK(stoker_model_create(&model, shape, 1, NULL) == 0);
    (void)stoker_model_batch_norm(model, "bn1", NULL);
    (void)stoker_model_relu(model, "relu1");
    (void)stoker_model_batch_norm(model, "bn2", NULL);
    (void)stoker_model_dropout(model, "drop", 0.25F);
    (void)stoker_model_batch_norm(model, "bn3", NULL);
    CHECK(stoker_model_softmax_cross_entropy(model, 0) == 0);
    return model;
}

static void train(const stoker_model *model, const char *backend, uint32_t accumulate)
{
    struct stk_rewritten_batch memory;
    stoker_trainer *trainer = NULL;
    stoker_evaluation sum = { 0 };
    stoker_trainer_options options = STOKER_TRAINER_OPTIONS_INIT;
    standin_cuda_reset(2);
    standin_cuda_delay(40);
    standin_cuda_use_kernels();
    options.backend = backend;
    options.split = 2;
    options.threads = 2;
    options.batch_size = STK_REWRITTEN_ROWS;
    options.accumulate = accumulate;
    options.metrics_interval = 5;
    options.clip_norm = 0.5F;
    CHECK(stoker_trainer_create(&trainer, model, &options, NULL) == 0);
    for (uint32_t pass = 0; pass < PASSES; pass++) {
        const stoker_batch batch = stk_rewrite_batch(&memory, pass, CLASSES);
        CHECK(stoker_trainer_step(trainer, &batch, NULL) == 0);
        if (pass == 7)
            CHECK(stoker_trainer_evaluate(trainer, &batch, &sum) == 0);
    }
    CHECK(sum.count == STK_REWRITTEN_ROWS);
    CHECK(standin_cuda_violations() == 0);
    stoker_trainer_destroy(&trainer); /* a pass may be under way */
    CHECK(standin_cuda_live() == 0);
}

int main(void)
{
    stoker_model *model = network();
    train(model, "cuda:0,cuda:1", 3);
    train(model, "cuda:1,cuda:0", 1);
    train(model, "cpu,cuda:1", 4);
    train(model, "cuda:0,ref", 4);
    stoker_model_destroy(&model);
    return 0;
}
