/* test_create.c - each allocation and each thread start of a trainer's create fails in
 * its turn: the error is reported and nothing stays behind.
 */
#include "support/trainer/plan_models.h"

#include "loader/base/fault.h"
#include "support/leaks.h"

#include <stoker/trainer.h>

enum { NTH_MAX = 2000 };

static stoker_model *network(void)
{
    stoker_model *model = stk_test_begin(8, 8, 2);
    stk_test_conv(model, "conv1", 8, 1);
    (void)stoker_model_batch_norm(model, "bn1", NULL);
    (void)stoker_model_relu(model, "relu1");
    (void)stoker_model_flatten(model, "flatten");
    stk_test_linear(model, "fc", 4);
    (void)stoker_model_softmax_cross_entropy(model, 0.0F);
    return stk_test_end(model);
}

static void sweep(const stoker_model *model, stoker_trainer_options options)
{
    const int64_t live = stk_fault_live_bytes();
    stoker_trainer *trainer = NULL;
    uint64_t failed = 0;
    for (uint64_t nth = 1; trainer == NULL; nth++) {
        stoker_error error = { .code = 0 };
        cr_assert_lt(nth, NTH_MAX);
        stk_fault_arm(STK_FAULT_ANY, nth);
        const int rc = stoker_trainer_create(&trainer, model, &options, &error);
        const bool reached = stk_fault_disarm();
        if (!reached) {
            cr_assert_eq(rc, STOKER_OK);
            break;
        }
        cr_assert(rc == STOKER_ENOMEM || rc == STOKER_ETHREAD, "fault %u: %d", (unsigned)nth, rc);
        cr_assert_eq(error.code, rc);
        cr_assert_null(trainer);
        cr_assert_eq(stk_fault_live_bytes(), live, "fault %u", (unsigned)nth);
        failed++;
    }
    cr_assert_gt(failed, 10);
    stoker_trainer_destroy(&trainer);
    cr_assert_eq(stk_fault_live_bytes(), live);
}

CleanTest(fault_trainer_create, every_failure_is_reported_and_leaves_nothing)
{
    stoker_model *model = network();
    const char *const backends[] = { "cpu", "ref" };
    for (int b = 0; b < 2; b++) {
        stoker_trainer_options options =
            stk_trainer_options(.backend = backends[b], .threads = 2, .batch_size = 4,
                                .optimizer = STOKER_OPTIMIZER_ADAM, .ema_decay = 0.9F);
        sweep(model, options);
        options.memory_budget = UINT64_C(1) << 30;
        sweep(model, options);
    }
    stoker_model_destroy(&model);
}
