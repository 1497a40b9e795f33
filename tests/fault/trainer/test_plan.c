/* test_plan.c - each allocation of a model, a plan and a budget's search fails in
 * its turn: STOKER_ENOMEM is reported and nothing stays behind.
 */
#include "support/trainer/plan_models.h"

#include "loader/base/fault.h"
#include "support/leaks.h"
#include "trainer/plan/budget.h"

enum { NTH_MAX = 1000 };

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

static uint64_t allocations; /* that failed, in one sweep */

/* Call with the 1st, 2nd, ... allocation failing until it passes. */
#define SWEEP(call, undo)                                                                          \
    do {                                                                                           \
        const int64_t live = stk_fault_live_bytes();                                               \
        allocations = 0;                                                                           \
        for (uint64_t nth = 1;; nth++) {                                                           \
            stoker_error error = { .code = 0 };                                                    \
            cr_assert_lt(nth, NTH_MAX);                                                            \
            stk_fault_arm(STK_FAULT_MEMORY, nth);                                                  \
            const int rc = (call);                                                                 \
            const bool reached = stk_fault_disarm();                                               \
            cr_assert_eq(rc, reached ? STOKER_ENOMEM : STOKER_OK, "allocation %u", (unsigned)nth); \
            cr_assert_eq(error.code, rc);                                                          \
            if (!reached) {                                                                        \
                undo;                                                                              \
                break;                                                                             \
            }                                                                                      \
            allocations++;                                                                         \
            cr_assert_eq(stk_fault_live_bytes(), live, "allocation %u", (unsigned)nth);            \
        }                                                                                          \
        cr_assert_eq(stk_fault_live_bytes(), live);                                                \
    } while (0)

CleanTest(fault_trainer_plan, a_model)
{
    stoker_model *model = NULL;
    SWEEP(build(&model, &error), stoker_model_destroy(&model));
    cr_assert_geq(allocations, 8);
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
        SWEEP(stk_plan_make(&plan, model, &options, &error), stk_plan_free(&plan));
        cr_assert_geq(allocations, 10);
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
    SWEEP(stk_budget_largest_batch(&options, model, &budget, 64, NULL, &error), (void)0);
    cr_assert_geq(allocations, 40);
    stoker_model_destroy(&model);
}
