/* test_backend.c - each allocation and thread start of create and load fails in its
 * turn: a documented error, and nothing left behind.
 */
#include "loader/base/fault.h"
#include "support/leaks.h"
#include "support/trainer/trainer_case.h"

static const struct stk_case_layer layers[] = {
    { .name = "grouped",
      .kind = STK_CONV2D,
      .in = { 3, 6, 6, 4 },
      .outputs = 4,
      .kernel = { 3, 3 },
      .groups = 2,
      .biased = true },
    { .name = "conv",
      .kind = STK_CONV2D,
      .in = { 3, 6, 6, 4 },
      .outputs = 8,
      .kernel = { 3, 3 },
      .padding = { 1, 1 } },
    { .name = "conv in bfloat16",
      .kind = STK_CONV2D,
      .in = { 3, 6, 6, 4 },
      .outputs = 8,
      .kernel = { 3, 3 },
      .padding = { 1, 1 },
      .storage = STOKER_DTYPE_BFLOAT16 },
    { .name = "bn", .kind = STK_BATCH_NORM, .in = { 3, 2, 2, 4 }, .biased = true },
};

/* What came of it; nothing of it stays. */
static int bring_up(const struct stk_backend_ops *ops, const struct stk_plan *plan)
{
    struct stk_backend *backend = NULL;
    struct stk_program *program = NULL;
    stoker_error error = { 0 };
    int rc = ops->create(&backend, &(struct stk_backend_options){ .threads = 3 }, &error);
    if (rc == STOKER_OK)
        rc = ops->load(&program, backend, plan, &error);
    if (rc != STOKER_OK) {
        cr_assert_null(program);
        cr_assert_eq(error.code, rc);
    }
    ops->unload(program);
    ops->destroy(backend);
    return rc;
}

static void fail_each(const struct stk_backend_ops *ops, const struct stk_plan *plan, unsigned kind,
                      int expected)
{
    bool reached = true;
    for (uint64_t nth = 1; reached; nth++) {
        cr_assert_lt(nth, 100);
        stk_fault_arm(kind, nth);
        const int rc = bring_up(ops, plan);
        reached = stk_fault_disarm();
        cr_assert_eq(rc, reached ? expected : STOKER_OK, "%s, nth %d: %d", ops->name, (int)nth, rc);
        cr_assert_eq(stk_fault_live_bytes(), 0, "%s, nth %d", ops->name, (int)nth);
    }
}

CleanTest(fault_trainer_backend, load_fails_cleanly)
{
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
        struct stk_case c;
        stk_case_make(&c, &layers[i], 5);
        fail_each(&stk_backend_ref, &c.plan, STK_FAULT_MEMORY, STOKER_ENOMEM);
        fail_each(&stk_backend_cpu, &c.plan, STK_FAULT_MEMORY, STOKER_ENOMEM);
        fail_each(&stk_backend_cpu, &c.plan, STK_FAULT_THREAD, STOKER_ETHREAD);
    }
}
