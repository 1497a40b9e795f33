/* test_split.c - two stages side by side, for ThreadSanitizer: passes under way at saves, tests,
 * predictions, trims and ends; and the thread of a stage by itself.
 */
#include "support/runs/rewritten_batch.h"
#include "support/thread_check.h"
#include "trainer/split/stage_thread.h"

enum { PIECES = 500, CLASSES = 4 };

/* ---- the thread ------------------------------------------------------------------ */

struct desk {
    uint64_t given[2]; /* plain memory: by turns the owner's and the thread's */
    uint64_t made[2];
};

static void square(void *argument, uint32_t index)
{
    struct desk *desk = argument;
    if (index % 100 == 7)
        usleep(300);
    desk->made[index % 2] = desk->given[index % 2] * desk->given[index % 2];
}

static void two_ahead(void)
{
    struct desk desk = { .given = { 0 } };
    struct stk_stage_thread *thread = NULL;
    CHECK(stk_stage_thread_create(&thread, square, &desk) == 0);
    for (uint32_t i = 0; i < PIECES; i++) {
        desk.given[i % 2] = i;
        stk_stage_thread_post(thread);
        if (i == 0)
            continue;
        stk_stage_thread_await(thread, i - 1);
        CHECK(desk.made[(i - 1) % 2] == (uint64_t)(i - 1) * (i - 1));
    }
    stk_stage_thread_destroy(&thread); /* with one piece still to do */
    CHECK(thread == NULL);
    CHECK(desk.made[(PIECES - 1) % 2] == (uint64_t)(PIECES - 1) * (PIECES - 1));
    CHECK(stk_stage_thread_create(&thread, square, &desk) == 0);
    stk_stage_thread_destroy(&thread);
    stk_stage_thread_destroy(&thread);
}

/* ---- a trainer ------------------------------------------------------------------- */

static stoker_model *network(void)
{
    stoker_model *model = NULL;
    const uint32_t shape[1] = { STK_REWRITTEN_INPUTS };
    CHECK(stoker_model_create(&model, shape, 1, NULL) == 0);
    (void)stoker_model_linear(model, "fc1", &(stoker_linear){ .features = 16 });
    (void)stoker_model_batch_norm(model, "bn1", NULL);
    (void)stoker_model_relu(model, "relu1");
    (void)stoker_model_linear(model, "fc2", &(stoker_linear){ .features = 8 });
    (void)stoker_model_relu(model, "relu2");
    (void)stoker_model_linear(model, "fc3", &(stoker_linear){ .features = CLASSES });
    CHECK(stoker_model_softmax_cross_entropy(model, 0) == 0);
    return model;
}

static void train(const stoker_model *model, const char *backend, uint32_t accumulate)
{
    struct stk_rewritten_batch memory;
    float outputs[STK_REWRITTEN_ROWS * CLASSES];
    stoker_trainer *trainer = NULL;
    stoker_evaluation sum = { 0 };
    stoker_trainer_options options =
        stk_trainer_options(.backend = backend, .split = 3, .threads = 2,
                            .batch_size = STK_REWRITTEN_ROWS, .accumulate = accumulate,
                            .metrics_interval = 7, .clip_norm = 1);
    CHECK(stoker_trainer_create(&trainer, model, &options, NULL) == 0);
    for (uint32_t pass = 0; pass < 40; pass++) {
        const stoker_batch batch = stk_rewrite_batch(&memory, pass, CLASSES);
        CHECK(stoker_trainer_step(trainer, &batch, NULL) == 0);
        if (pass % 11 == 3)
            CHECK(stoker_trainer_evaluate(trainer, &batch, &sum) == 0);
        if (pass % 13 == 5)
            CHECK(stoker_trainer_predict(trainer, memory.samples, batch.count, outputs) == 0);
        if (pass % 17 == 6)
            CHECK(stoker_trainer_trim(trainer) > 0);
    }
    CHECK(stoker_trainer_step(trainer,
                              &(stoker_batch){ .struct_size = sizeof(stoker_batch), .count = 0 },
                              NULL) == 0);
    CHECK(sum.count > 0);
    stoker_trainer_destroy(&trainer); /* a pass may be under way */
}

int main(void)
{
    stoker_model *model = network();
    two_ahead();
    train(model, "ref,ref", 4);
    train(model, "cpu,ref", 3);
    train(model, "ref,cpu", 1);
    stoker_model_destroy(&model);
    return 0;
}
