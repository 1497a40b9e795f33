/* test_slices.c - a slice is complete after its operation, and not before.
 *
 * Method: `ref` runs a plan operation by operation. Before each, all gradients become -0: adding 0
 * makes it +0, so every float that an operation adds to is seen.
 */
#include "support/trainer/plan_models.h"

#include <math.h>

#include "loader/base/memory/memory.h"
#include "support/sweep.h"
#include "trainer/backend/backend.h"
#include "trainer/plan/slices.h"

enum { BATCH = 3 };

/* What a pass runs on. */
struct bench {
    struct stk_backend *backend;
    struct stk_arenas arenas;
    struct stk_pass pass;
    float *samples;
    void *labels;
    uint64_t floats;
};

static float noise(uint64_t i)
{
    return (float)(stk_philox(5, 0, i).word[0] >> 8) * 0x1p-23F - 1.0F;
}

static float *floats_of(uint64_t count)
{
    float *const floats = stk_calloc(count + 1, sizeof(*floats));
    cr_assert_not_null(floats);
    return floats;
}

static void begin(struct bench *bench, const struct stk_plan *plan)
{
    const stoker_model *const model = plan->model;
    const uint64_t samples = BATCH * stk_shape_elements(model->layers[0].out);
    const struct stk_layer *const loss = &model->layers[model->layer_count - 1];
    *bench = (struct bench){ .floats = model->parameter_floats };
    cr_assert_eq(stk_backend_ref.create(&bench->backend, &(struct stk_backend_options){ 0 }, NULL),
                 STOKER_OK);
    bench->arenas =
        (struct stk_arenas){ .parameters = floats_of(bench->floats),
                             .gradients = floats_of(bench->floats),
                             .statistics = floats_of(model->statistic_floats),
                             .activations = floats_of(plan->activation_bytes / sizeof(float)) };
    bench->samples = floats_of(samples);
    bench->labels = stk_calloc(BATCH * stk_shape_elements(loss->in) + 1, sizeof(int64_t));
    stk_model_initialize(model, 3, bench->arenas.parameters, bench->arenas.statistics);
    for (uint64_t i = 0; i < samples; i++)
        bench->samples[i] = noise(i);
    bench->pass = (struct stk_pass){ .samples = bench->samples,
                                     .labels = bench->labels,
                                     .count = BATCH,
                                     .seed = 77,
                                     .gradient_scale = 1 };
}

static void end(struct bench *bench)
{
    stk_free(bench->arenas.parameters);
    stk_free(bench->arenas.gradients);
    stk_free(bench->arenas.statistics);
    stk_free(bench->arenas.activations);
    stk_free(bench->samples);
    stk_free(bench->labels);
    stk_backend_ref.destroy(bench->backend);
}

static void run_one(struct bench *bench, const struct stk_plan *plan, uint32_t index)
{
    struct stk_program *program = NULL;
    struct stk_loss loss;
    struct stk_plan one = *plan;
    one.ops += index;
    one.op_count = 1;
    cr_assert_eq(stk_backend_ref.load(&program, bench->backend, &one, NULL), STOKER_OK);
    cr_assert_eq(stk_backend_ref.run(program, &bench->arenas, &bench->pass, &loss, NULL),
                 STOKER_OK);
    stk_backend_ref.unload(program);
}

/* last[float]: the last operation that adds to it; 0 if none does. */
static uint32_t *watch(const struct stk_plan *plan)
{
    struct bench bench;
    begin(&bench, plan);
    uint32_t *const last = stk_calloc(bench.floats + 1, sizeof(*last));
    for (uint32_t op = 0; op < plan->op_count; op++) {
        for (uint64_t i = 0; i < bench.floats; i++)
            bench.arenas.gradients[i] = -0.0F;
        run_one(&bench, plan, op);
        for (uint64_t i = 0; i < bench.floats; i++)
            if (!signbit(bench.arenas.gradients[i]) || bench.arenas.gradients[i] < 0)
                last[i] = op;
    }
    end(&bench);
    return last;
}

static void check_slice(const struct stk_slice *slice, const uint32_t *last, const char *name)
{
    uint32_t found = 0;
    for (uint64_t i = slice->first; i < slice->first + slice->count; i++)
        found = last[i] > found ? last[i] : found;
    cr_assert_eq(found, slice->op, "%s: floats from %llu are complete after %u, not %u", name,
                 (unsigned long long)slice->first, found, slice->op);
    cr_assert_eq(slice->first % STK_ALIGN_FLOATS, 0);
}

/* Returns the number of operations after which something is complete. */
static uint32_t check_slices(const struct stk_plan *plan, const uint32_t *last, uint64_t floats_min,
                             uint64_t floats_max, const char *name)
{
    const uint64_t floats = plan->model->parameter_floats;
    struct stk_slices slices;
    uint8_t *const covered = stk_calloc(floats + 1, 1);
    uint32_t steps = 0;
    cr_assert_eq(stk_slices_make(&slices, plan, floats_min, floats_max, NULL), STOKER_OK);
    for (uint32_t s = 0; s < slices.count; s++) {
        const struct stk_slice *const slice = &slices.slices[s];
        cr_assert_gt(slice->count, 0);
        cr_assert_leq(slice->count, floats_max);
        cr_assert_leq(slice->first + slice->count, floats);
        check_slice(slice, last, name);
        steps += s == 0 || slice->op > slices.slices[s - 1].op ? 1 : 0;
        cr_assert(s == 0 || slice->op >= slices.slices[s - 1].op, "%s: out of order", name);
        for (uint64_t i = 0; i < slice->count; i++)
            cr_assert_eq(covered[slice->first + i]++, 0, "%s: a float in two slices", name);
    }
    for (uint64_t i = 0; i < floats; i++)
        cr_assert_eq(covered[i], 1, "%s: a float in no slice", name);
    stk_free(covered);
    stk_slices_free(&slices);
    return steps;
}

static void check_plan(const stoker_model *model, uint32_t segments, bool again, const char *name)
{
    struct stk_plan plan;
    const struct stk_plan_options options = { .batch = BATCH,
                                              .train = true,
                                              .checkpoint_segments = segments,
                                              .exact_segments = true,
                                              .recompute_batch_norm = again };
    cr_assert_eq(stk_plan_make(&plan, model, &options, NULL), STOKER_OK);
    uint32_t *const last = watch(&plan);
    const uint32_t fine = check_slices(&plan, last, 0, 64, name);
    const uint32_t coarse = check_slices(&plan, last, 5000, 16384, name);
    const uint32_t one = check_slices(&plan, last, UINT64_MAX, UINT64_C(1) << 40, name);
    cr_assert_eq(one, 1, "%s", name);
    cr_assert_leq(coarse, fine, "%s", name);
    cr_assert(fine > 1 || model->parameter_count <= 2, "%s: nothing is complete early", name);
    stk_free(last);
    stk_plan_free(&plan);
}

static void check(stoker_model *model, const char *name)
{
    static const uint32_t segments[] = { 0, 3 };
    for (int s = 0; s < 2; s++)
        for (int again = 0; again < 2; again++)
            check_plan(model, segments[s], again == 1, name);
    stoker_model_destroy(&model);
}

CleanTest(slices, are_complete_after_their_operation)
{
    check(stk_test_mnist_net(false), "mnist");
    check(stk_test_residual(), "residual");
    check(stk_test_depthwise(), "depthwise");
    check(stk_test_chain(6), "chain");
}

CleanTest(slices, of_awkward_networks_are_complete)
{
    check(stk_test_awkward(), "awkward");
    for (uint64_t seed = 1; seed <= 10; seed++)
        check(stk_test_random(seed), "random");
}

CleanTest(slices, begin_with_what_lies_behind)
{
    stoker_model *model = stk_test_mnist_net(true);
    struct stk_plan plan;
    struct stk_slices slices;
    cr_assert_eq(stk_plan_make(&plan, model,
                               &(struct stk_plan_options){ .batch = BATCH, .train = true }, NULL),
                 STOKER_OK);
    cr_assert_eq(stk_slices_make(&slices, &plan, STK_SLICE_FLOATS_MIN, STK_SLICE_FLOATS_MAX, NULL),
                 STOKER_OK);
    /* fc1 and fc2 in five even slices, then the convolutions. */
    cr_assert_eq(slices.count, 6);
    for (uint32_t s = 1; s < 5; s++)
        cr_assert_eq(slices.slices[s].op, slices.slices[0].op);
    cr_assert_gt(slices.slices[5].op, slices.slices[0].op);
    cr_assert_eq(slices.slices[5].first, 0);
    stk_slices_free(&slices);
    stk_plan_free(&plan);
    stoker_model_destroy(&model);
}

CleanTest(slices, survive_each_allocation_failure)
{
    stoker_model *model = stk_test_chain(3);
    struct stk_plan plan;
    struct stk_slices slices;
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY, .silent = true };
    cr_assert_eq(stk_plan_make(&plan, model,
                               &(struct stk_plan_options){ .batch = BATCH, .train = true }, NULL),
                 STOKER_OK);
    while (stk_sweep_next(&sweep)) {
        sweep.rc = stk_slices_make(&slices, &plan, 0, 64, NULL);
        cr_assert(sweep.rc == STOKER_OK || slices.slices == NULL);
    }
    stk_slices_free(&slices);
    stk_plan_free(&plan);
    stoker_model_destroy(&model);
}
