/* test_start.c - what a run on a GPU pays before its first step: what create makes ready no step
 * makes, and waking a GPU early leaves nothing behind but the context. On the stand-ins.
 */
#include "support/trainer/cuda_trainer_case.h"

#include "support/standin_cudnn/standin_cudnn.h"

enum { FULL = 8, LAST = 3, LOST = 700 /* cudaErrorIllegalAddress */ };

/* BatchNorm and dropout, too: running zeros through them must leave no trace. */
static stoker_model *blocks(void)
{
    stoker_model *model = stk_test_begin(SIDE, SIDE, CHANNELS);
    stk_test_conv(model, "conv1", 8, 1);
    (void)stoker_model_batch_norm(model, "bn1", NULL);
    (void)stoker_model_relu(model, "relu1");
    (void)stoker_model_dropout(model, "drop", 0.25F);
    (void)stoker_model_flatten(model, "flatten");
    stk_test_linear(model, "fc", CLASSES);
    (void)stoker_model_softmax_cross_entropy(model, 0.0F);
    return stk_test_end(model);
}

static stoker_trainer_options starting(const char *backend, uint32_t last)
{
    return stk_trainer_options(.backend = backend, .batch_size = FULL, .last_batch_size = last,
                               .learning_rate = 0.05F, .momentum = 0.9F);
}

static void epochs(stoker_trainer *trainer)
{
    for (uint64_t i = 0; i < 6; i++)
        step(trainer, i, i % 3 == 2 ? LAST : FULL);
}

CleanTest(trainer_cuda_start, no_step_builds_an_engine)
{
    begin();
    standin_cudnn_reset(true);
    stoker_model *model = blocks();
    stoker_trainer *surprised = trainer_of(model, starting("cuda", 0));
    uint64_t built = standin_cudnn_plans();
    epochs(surprised);
    cr_assert_gt(standin_cudnn_plans(), built); /* for the last batch */
    stoker_trainer *prepared = trainer_of(model, starting("cuda", LAST));
    built = standin_cudnn_plans();
    epochs(prepared);
    cr_assert_eq(standin_cudnn_plans(), built);
    check_same_bits(prepared, surprised);
    stoker_trainer *ref = trainer_of(model, starting("ref", LAST));
    epochs(ref);
    cr_assert_leq(difference(prepared, ref, STK_ARENA_PARAMETERS), 1e-4);
    cr_assert_leq(difference(prepared, ref, STK_ARENA_STATISTICS), 1e-5);
    stoker_trainer_destroy(&ref);
    stoker_trainer_destroy(&prepared);
    stoker_trainer_destroy(&surprised);
    stoker_model_destroy(&model);
    cr_assert_eq(standin_cuda_live(), 0);
}

CleanTest(trainer_cuda_start, waking_leaves_nothing_behind_after_any_failure)
{
    static const char *const names[] = { "cuda", "cuda:1", NULL, "auto", "cuda:7" };
    for (int i = 0; i < 5; i++) {
        begin();
        stoker_trainer_wake(names[i], i % 2 == 0);
        cr_assert_gt(standin_cuda_calls(), 0);
        cr_assert_eq(standin_cuda_live(), 0);
    }
    begin();
    stoker_trainer_wake("cpu", true);
    stoker_trainer_wake("abacus", true);
    cr_assert_eq(standin_cuda_calls(), 0);
    for (uint64_t nth = 1;; nth++) {
        begin();
        const int64_t live = stk_fault_live_bytes();
        standin_cuda_fail(nth, LOST, false);
        stoker_trainer_wake("cuda", true);
        cr_assert_eq(standin_cuda_live(), 0, "call %u", (unsigned)nth);
        cr_assert_eq(stk_fault_live_bytes(), live);
        if (!standin_cuda_failed())
            break;
    }
    standin_cuda_reset(0);
    stoker_trainer_wake(NULL, true);
}
