/* test_fusion.c - BatchNorm within the graphs of convolutions: which operations of a plan, and that
 * a step with them is the one of `ref`. */
#include "support/plan_models.h"

#include "loader/base/fault.h"
#include "support/cuda_train_twins.h"
#include "support/leaks.h"
#include "support/opened_trainer.h"
#include "trainer/backend/cuda/program/fusion.h"
#include "trainer/stage/view.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>

#include "support/standin_cudnn/standin_cudnn.h"
#include "support/trainer_golden.h"

enum { BATCH = 4, STEPS = 3, BLOCKS = 3, NORMS = 1 + 2 * BLOCKS, CLASSES = 10 };

static void conv(stoker_model *model, const char *name, uint32_t filters)
{
    (void)stoker_model_conv2d(
        model, name,
        &(stoker_conv2d){
            .filters = filters, .kernel = { 3, 3 }, .padding = { 1, 1 }, .no_bias = true });
}

static void norm(stoker_model *model, const char *name)
{
    (void)stoker_model_batch_norm(model, name, NULL);
}

/* ResNet's blocks: a BatchNorm + ReLU between two convolutions, one before each sum. */
static stoker_model *residual(void)
{
    stoker_model *model = stk_test_begin(8, 8, 3);
    char names[7][16];
    static const char *const parts[7] = { "a", "na", "ra", "b", "nb", "sum", "out" };
    conv(model, "stem", 8);
    norm(model, "stem.norm");
    (void)stoker_model_relu(model, "out0");
    for (int i = 1; i <= BLOCKS; i++) {
        char from[16];
        (void)snprintf(from, sizeof(from), "out%d", i - 1);
        for (int j = 0; j < 7; j++)
            (void)snprintf(names[j], sizeof(names[j]), "%s%d", parts[j], i);
        conv(model, names[0], 8);
        norm(model, names[1]);
        (void)stoker_model_relu(model, names[2]);
        conv(model, names[3], 8);
        norm(model, names[4]);
        (void)stoker_model_add(model, names[5], from);
        (void)stoker_model_relu(model, names[6]);
    }
    (void)stoker_model_global_avg_pool(model, "mean");
    (void)stoker_model_flatten(model, "flatten");
    stk_test_linear(model, "fc", CLASSES);
    (void)stoker_model_softmax_cross_entropy(model, 0.0F);
    return stk_test_end(model);
}

/* ---- which operations --------------------------------------------------------------------------------- */

struct counts {
    uint32_t statistics, forward, weights, unwritten, graphs;
};

static struct counts count(const stoker_model *model, struct stk_plan_options options,
                           enum stk_fusion how)
{
    struct stk_plan plan;
    options.batch = BATCH;
    options.train = true;
    cr_assert_eq(stk_plan_make(&plan, model, &options, NULL), STOKER_OK);
    struct stk_cuda_fusion *const fusions = calloc(plan.op_count, sizeof(*fusions));
    struct counts found = { 0 };
    stk_cuda_fusion_find(fusions, &plan, how);
    for (uint32_t i = 0; i < plan.op_count; i++) {
        const struct stk_cuda_fusion *const f = &fusions[i];
        const bool applies = f->applies != STK_NO_OP;
        found.statistics += f->statistics;
        found.forward += applies && plan.ops[i].kind == STK_OP_CONV_FORWARD;
        found.weights += applies && plan.ops[i].kind == STK_OP_CONV_BACKWARD_WEIGHTS;
        found.unwritten += f->unwritten && plan.ops[i].kind != STK_OP_BATCH_NORM_BACKWARD;
        found.graphs += f->graph;
        if (!applies)
            continue;
        const struct stk_op *const applied = &plan.ops[f->applies]; /* all it needs is there */
        cr_assert(fusions[f->applies].unwritten);
        cr_assert_geq(plan.buffers[applied->x].last_op, i);
        cr_assert_geq(plan.buffers[applied->aux].last_op, i);
    }
    for (uint32_t i = 0; i < plan.op_count; i++)
        if (fusions[i].unwritten && plan.ops[i].kind != STK_OP_BATCH_NORM_BACKWARD)
            stk_cuda_fusion_withdraw(fusions, &plan, i);
    for (uint32_t i = 0; i < plan.op_count; i++)
        cr_assert(fusions[i].applies == STK_NO_OP && !fusions[i].unwritten);
    free(fusions);
    stk_plan_free(&plan);
    return found;
}

static void check_counts(struct counts a, struct counts b, const char *what)
{
    cr_assert_eq(a.statistics, b.statistics, "%s: %u with sums", what, a.statistics);
    cr_assert_eq(a.forward, b.forward, "%s: %u apply", what, a.forward);
    cr_assert_eq(a.weights, b.weights, "%s: %u apply backward", what, a.weights);
    cr_assert_eq(a.unwritten, b.unwritten, "%s: %u unwritten", what, a.unwritten);
    cr_assert_eq(a.graphs, b.graphs, "%s: %u graphs", what, a.graphs);
}

Test(trainer_cuda_fusion, what_goes_into_whose_graph)
{
    stoker_model *model = residual();
    const struct stk_plan_options kept = { .storage = STOKER_FLOAT16 };
    const struct stk_plan_options remade = { .storage = STOKER_FLOAT16,
                                             .recompute_batch_norm = true };
    const struct stk_plan_options apart = { .storage = STOKER_FLOAT16, .norms_apart = true };
    const struct stk_plan_options wide = { .norms_apart = true };
    check_counts(count(model, kept, STK_FUSION_READY),
                 (struct counts){ NORMS, BLOCKS, BLOCKS, BLOCKS, 0 }, "all kept");
    check_counts(count(model, remade, STK_FUSION_READY),
                 (struct counts){ NORMS, BLOCKS, BLOCKS + 1, 2 * BLOCKS + 1, 0 }, "made again");
    check_counts(count(model, apart, STK_FUSION_ALL),
                 (struct counts){ NORMS, BLOCKS, BLOCKS, BLOCKS, NORMS }, "all fused");
    check_counts(count(model, wide, STK_FUSION_READY), (struct counts){ 0, 0, 0, 0, 0 }, "wide");
    check_counts(count(model, wide, STK_FUSION_ALL), (struct counts){ 0, 0, 0, 0, NORMS }, "wide");
    check_counts(count(model, apart, STK_FUSION_NONE), (struct counts){ 0, 0, 0, 0, 0 }, "none");
    stoker_model_destroy(&model);
    stk_test_check_leaks();
}

/* What must not be: a bias, groups, a reader that is no convolution, a value of an earlier segment. */
Test(trainer_cuda_fusion, what_does_not)
{
    const struct stk_plan_options kept = { .storage = STOKER_BFLOAT16 };
    stoker_model *model = stk_test_begin(8, 8, 4);
    stk_test_conv(model, "biased", 4, 1);
    norm(model, "n1");
    (void)stoker_model_relu(model, "r1");
    (void)stoker_model_max_pool2d(model, "pool", &(stoker_pool2d){ .kernel = { 2, 2 } });
    (void)stoker_model_conv2d(
        model, "groups",
        &(stoker_conv2d){ .filters = 4, .kernel = { 1, 1 }, .groups = 2, .no_bias = true });
    norm(model, "n2");
    conv(model, "plain", 4);
    norm(model, "n3");
    (void)stoker_model_relu(model, "r3");
    conv(model, "last", 4);
    (void)stoker_model_flatten(model, "flatten");
    stk_test_linear(model, "fc", CLASSES);
    (void)stoker_model_softmax_cross_entropy(model, 0.0F);
    (void)stk_test_end(model);
    check_counts(count(model, kept, STK_FUSION_READY), (struct counts){ 1, 0, 0, 0, 0 }, "others");
    stoker_model_destroy(&model);
    stk_test_check_leaks();
}

Test(trainer_cuda_fusion, segments_read_only_what_still_is)
{
    stoker_model *model = residual();
    for (uint32_t segments = 1; segments < 9; segments++)
        for (int remade = 0; remade < 2; remade++) {
            const struct stk_plan_options options = { .storage = STOKER_FLOAT16,
                                                      .checkpoint_segments = segments,
                                                      .exact_segments = true,
                                                      .recompute_batch_norm = remade };
            const struct counts found = count(model, options, STK_FUSION_READY);
            cr_assert_eq(found.statistics, NORMS); /* in the first pass, each once */
        }
    stoker_model_destroy(&model);
    stk_test_check_leaks();
}

/* ---- steps ---------------------------------------------------------------------------------------------- */

static void begin(bool fuses)
{
    standin_cuda_reset(1);
    standin_cuda_delay(5);
    standin_cudnn_reset(fuses);
    stk_cuda_use_train_twins();
}

static double step(stoker_trainer *trainer, uint64_t number, uint32_t samples)
{
    static float images[BATCH * 8 * 8 * 3];
    static int64_t labels[BATCH];
    golden_fill(images, BATCH * 8 * 8 * 3, 70 + number, 1.0F);
    for (uint64_t i = 0; i < BATCH; i++)
        labels[i] = (int64_t)((number * 3 + i) % CLASSES);
    const stoker_batch batch = {
        .images = { .data = images,
                    .dtype = STOKER_FLOAT32,
                    .rank = 4,
                    .shape = { samples, 8, 8, 3 } },
        .labels = { .data = labels, .dtype = STOKER_INT64, .rank = 1, .shape = { samples } },
        .count = samples,
    };
    stoker_step told;
    cr_assert_eq(stoker_trainer_step(trainer, &batch, &told), STOKER_OK);
    return told.loss;
}

/* ||a - b|| / ||b||, of the way that weights have gone since `start`. */
static double distance(const stoker_trainer *cuda, const stoker_trainer *ref, const float *start)
{
    struct stk_view ours;
    double apart = 0;
    double length = 0;
    cr_assert_eq(stk_view_read(&ours, cuda, cuda->arenas.parameters, cuda->memory.parameters, NULL),
                 STOKER_OK);
    for (uint64_t i = 0; i < cuda->memory.parameters / sizeof(float); i++) {
        const double a = (double)ours.floats[i] - (double)start[i];
        const double b = (double)ref->arenas.parameters[i] - (double)start[i];
        apart += (a - b) * (a - b);
        length += b * b;
    }
    stk_view_close(&ours);
    return sqrt(apart / length);
}

struct fused_case {
    stoker_dtype precision;
    stoker_fusion fusion;
    bool engines, recompute; /* the stand-in has engines for graphs of several operations */
    uint32_t segments;
    uint32_t fused; /* BatchNorms */
    double first;   /* how far the first step's gradients may be from ref's */
    double all;     /* how far losses and statistics, later, too */
};

/* In 16 bits the same numbers rounded elsewhere lead elsewhere: ref is as far from float32 as from another
 * order of rounding. So what is fused is held against float32: it may be a few times as far from it as ref, in
 * the same type, is. */
static void check_case(const stoker_model *model, const struct fused_case *c, unsigned number)
{
    stoker_trainer *trainers[3];
    begin(c->engines);
    for (int t = 0; t < 3; t++) {
        stoker_trainer_options options = STOKER_TRAINER_OPTIONS_INIT;
        options.backend = t == 0 ? "cuda" : "ref";
        options.batch_size = BATCH;
        options.learning_rate = 0.05F;
        options.precision = t == 2 ? STOKER_FLOAT32 : c->precision;
        options.loss_scale = options.precision == STOKER_FLOAT16 ? 64 : 0;
        options.fusion = t == 0 ? c->fusion : STOKER_FUSION_NONE;
        options.recompute_batch_norm = c->recompute;
        options.checkpoint_segments = c->segments;
        trainers[t] = trainer_of(model, options);
    }
    const stoker_trainer *const cuda = trainers[0];
    const stoker_trainer *const ref = trainers[1];
    const stoker_trainer *const whole = trainers[2];
    float *const start = malloc(ref->memory.parameters);
    memcpy(start, ref->arenas.parameters, ref->memory.parameters);
    cr_assert_eq(cuda->memory.fused_batch_norms, c->fused, "%u fused",
                 cuda->memory.fused_batch_norms);
    cr_assert_eq(ref->memory.fused_batch_norms, 0);
    for (uint64_t i = 0; i < STEPS; i++) {
        const uint32_t samples = i == 1 ? BATCH - 1 : BATCH;
        const double a = step(trainers[0], i, samples);
        const double b = step(trainers[1], i, samples);
        (void)step(trainers[2], i, samples);
        cr_assert_float_eq(a, b, c->all * b);
        if (i == 0)
            cr_assert_lt(distance(cuda, ref, start), c->first, "case %u: gradients: %g", number,
                         distance(cuda, ref, start));
    }
    cr_assert_leq(distance(cuda, whole, start), 3 * distance(ref, whole, start) + 1e-5,
                  "case %u: %g from float32, ref is %g", number, distance(cuda, whole, start),
                  distance(ref, whole, start));
    struct stk_view ours;
    cr_assert_eq(stk_view_read(&ours, cuda, cuda->arenas.statistics, cuda->memory.statistics, NULL),
                 STOKER_OK);
    for (uint64_t i = 0; i < cuda->memory.statistics / sizeof(float); i++)
        cr_assert_float_eq(ours.floats[i], ref->arenas.statistics[i],
                           c->all * (0.05 + fabs((double)ref->arenas.statistics[i])));
    stk_view_close(&ours);
    free(start);
    stoker_trainer_destroy(&trainers[0]);
    stoker_trainer_destroy(&trainers[1]);
    stoker_trainer_destroy(&trainers[2]);
    cr_assert_eq(standin_cuda_live(), 0);
}

Test(trainer_cuda_fusion, steps_are_those_of_ref)
{
    static const struct fused_case cases[] = {
        { STOKER_FLOAT16, STOKER_FUSION_NONE, true, false, 0, 0, 1e-3, 2e-2 },
        { STOKER_FLOAT16, STOKER_FUSION_READY, false, false, 0, 0, 1e-3, 2e-2 },
        { STOKER_FLOAT16, STOKER_FUSION_READY, true, false, 0, NORMS, 4e-2, 2e-2 },
        { STOKER_FLOAT16, STOKER_FUSION_READY, true, true, 0, NORMS, 4e-2, 2e-2 },
        { STOKER_FLOAT16, STOKER_FUSION_READY, true, true, 4, NORMS, 4e-2, 2e-2 },
        { STOKER_FLOAT16, STOKER_FUSION_ALL, true, true, 0, NORMS, 4e-2, 2e-2 },
        { STOKER_BFLOAT16, STOKER_FUSION_READY, true, false, 0, 0, 1e-2, 5e-2 },
        { STOKER_BFLOAT16, STOKER_FUSION_ALL, true, true, 0, NORMS, 1.2e-1, 5e-2 },
        { STOKER_FLOAT32, STOKER_FUSION_READY, true, true, 0, 0, 1e-5, 1e-4 },
        { STOKER_FLOAT32, STOKER_FUSION_ALL, true, true, 0, NORMS, 1e-5, 1e-4 },
    };
    stoker_model *model = residual();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check_case(model, &cases[i], (unsigned)i);
    stoker_model_destroy(&model);
    stk_test_check_leaks();
}

/* The table is what the device gives, with statistics in the workspace. Engines are timed, too. */
Test(trainer_cuda_fusion, memory_is_told_and_engines_are_timed)
{
    begin(true);
    stoker_model *model = residual();
    stoker_trainer_options options = STOKER_TRAINER_OPTIONS_INIT;
    options.backend = "cuda";
    options.batch_size = BATCH;
    options.precision = STOKER_FLOAT16;
    options.fusion = STOKER_FUSION_ALL;
    options.benchmark = true;
    struct stk_backend *backend = NULL;
    cr_assert_eq(stk_backend_cuda.create(&backend, &(struct stk_backend_options){ 0 }, NULL),
                 STOKER_OK);
    const uint64_t before = stk_backend_cuda.free_bytes(backend);
    stoker_trainer *trainer = trainer_of(model, options);
    cr_assert_eq(before - stk_backend_cuda.free_bytes(backend), trainer->memory.peak);
    char table[1024];
    (void)stoker_trainer_memory_table(trainer, table, sizeof(table));
    cr_assert_not_null(strstr(table, ", 7 BatchNorms fused"), "%s", table);
    stoker_trainer_destroy(&trainer);
    stk_backend_cuda.destroy(backend);
    stoker_model_destroy(&model);
    cr_assert_eq(standin_cuda_live(), 0);
    stk_test_check_leaks();
}

static int short_run(const stoker_model *model)
{
    stoker_trainer *trainer = NULL;
    stoker_trainer_options options = STOKER_TRAINER_OPTIONS_INIT;
    options.backend = "cuda";
    options.batch_size = 1;
    options.precision = STOKER_FLOAT16;
    options.fusion = STOKER_FUSION_ALL;
    const int rc = stoker_trainer_create(&trainer, model, &options);
    stoker_trainer_destroy(&trainer);
    return rc;
}

Test(trainer_cuda_fusion, every_allocation_may_fail)
{
    stoker_model *model = residual();
    for (uint64_t nth = 1;; nth++) {
        begin(true);
        const int64_t live = stk_fault_live_bytes();
        stk_fault_arm(STK_FAULT_MEMORY, nth);
        const int rc = short_run(model);
        const bool fired = stk_fault_disarm();
        cr_assert_eq(rc, fired ? STOKER_ENOMEM : STOKER_OK, "allocation %d: %d", (int)nth, rc);
        cr_assert_eq(stk_fault_live_bytes(), live, "allocation %d", (int)nth);
        cr_assert_eq(standin_cuda_live(), 0);
        if (!fired)
            break;
    }
    stoker_model_destroy(&model);
    stk_test_check_leaks();
}
