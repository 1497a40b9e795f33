/* test_plan.c - each allocation of a model, a plan and a budget's search fails in
 * its turn: STOKER_ENOMEM is reported and nothing stays behind.
 */
#include "support/trainer/plan_models.h"

#include "support/sweep.h"
#include "trainer/plan/budget.h"

/* Enough layers that every array grows more than once. */
static int build(stoker_model **out, stoker_error *error)
{
    const uint32_t shape[3] = { 8, 8, 4 };
    stoker_model *model = NULL;
    char name[32];
    int rc = stoker_model_create(&model, shape, 3, error);
    if (rc != STOKER_OK)
        return rc;
    for (int i = 0; i < 40; i++) {
        (void)snprintf(name, sizeof(name), "conv%d", i);
        stk_test_conv(model, name, 4, 1);
        (void)snprintf(name, sizeof(name), "bn%d", i);
        (void)stoker_model_batch_norm(model, name, NULL);
    }
    rc = stoker_model_mse(model);
    if (rc != STOKER_OK) {
        *error = *stoker_model_error(model);
        stoker_model_destroy(&model);
    }
    *out = model;
    return rc;
}

CleanTest(fault_trainer_plan, a_model)
{
    stoker_model *model = NULL;
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
    while (stk_sweep_next(&sweep))
        sweep.rc = build(&model, &sweep.error);
    stoker_model_destroy(&model);
    cr_assert_geq(sweep.failed, 8);
}

CleanTest(fault_trainer_plan, a_plan)
{
    stoker_model *model = NULL;
    stoker_error ignored;
    cr_assert_eq(build(&model, &ignored), STOKER_OK);
    for (uint32_t segments = 0; segments < 8; segments += 4) {
        struct stk_plan plan;
        const struct stk_plan_options options = { .batch = 2,
                                                  .train = true,
                                                  .recompute_batch_norm = segments > 0,
                                                  .checkpoint_segments = segments };
        struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
        while (stk_sweep_next(&sweep))
            sweep.rc = stk_plan_make(&plan, model, &options, &sweep.error);
        stk_plan_free(&plan);
        cr_assert_eq(stk_fault_live_bytes(), sweep.live);
        cr_assert_geq(sweep.failed, 10);
        cr_assert_null(plan.ops);
        cr_assert_null(plan.buffers);
    }
    stoker_model_destroy(&model);
}

static int arena_bytes(void *context, const struct stk_plan *plan, uint64_t *bytes,
                       stoker_error *error)
{
    (void)context;
    (void)error;
    *bytes = plan->activation_bytes;
    return STOKER_OK;
}

CleanTest(fault_trainer_plan, a_search)
{
    stoker_model *model = NULL;
    stoker_error ignored;
    cr_assert_eq(build(&model, &ignored), STOKER_OK);
    const struct stk_budget budget = { .limit_bytes = 200000, .bytes_of = arena_bytes };
    struct stk_plan_options options = { .train = true };
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
    while (stk_sweep_next(&sweep))
        sweep.rc = stk_budget_largest_batch(&options, model, &budget, 64, NULL, &sweep.error);
    cr_assert_eq(stk_fault_live_bytes(), sweep.live);
    cr_assert_geq(sweep.failed, 40);
    stoker_model_destroy(&model);
}
