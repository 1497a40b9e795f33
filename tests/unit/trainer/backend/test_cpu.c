/* test_cpu.c - `cpu` does what `ref` does, in float32 and in bfloat16: layer by layer, with its own
 * loops and oneDNN or with plain loops only, for thread counts that do and do not divide the batch;
 * and whole networks, whose buffers share bytes. On a CPU without AVX512_BF16 only the refusal of
 * bfloat16 is tested.
 *
 * Tolerance: both sum the same products, `ref` in double. A sum of n products, each about 1, is off
 * by some sqrt(n) roundings of 6e-8; 2e-5 of the largest number allows for n = 10^4 and more. A
 * value stored in bfloat16 may be rounded to a neighbor: 2^-7 of the value. If nothing is summed,
 * values are equal. */
#include "loader/base/fault.h"
#include "support/leaks.h"
#include "support/trainer_case.h"
#include "trainer/backend/cpu/operations.h"

#include <math.h>
#include <stoker/trainer.h>

enum { BATCH = 7, BUFFER_MAX = 40000 };
static const double neighbor = 1.0 / 128, tolerance = 2e-5;

static const stoker_dtype storages[] = { STOKER_DTYPE_FLOAT32, STOKER_DTYPE_BFLOAT16 };

/* How many of `storages` this CPU computes in. */
static int storage_count(void)
{
    return stk_cpu_has_bf16() ? 2 : 1;
}

static int64_t class_labels[BATCH] = { 2, 0, 4, 1, 3, 4, 0 };
static float targets[BATCH * 5];

static struct stk_pass pass_of(enum stk_layer_kind loss, uint32_t count)
{
    return (struct stk_pass){ .labels = loss == STK_MSE ? (void *)targets : (void *)class_labels,
                              .count = count,
                              .first_sample = 2,
                              .step = 9,
                              .seed = 3,
                              .gradient_scale = 0.5F };
}

static struct stk_loss run(const struct stk_bench *bench, const struct stk_pass *pass)
{
    struct stk_loss loss = { 0 };
    stoker_error error = { 0 };
    cr_assert_eq(bench->ops->run(bench->program, &bench->arenas, pass, &loss, &error), STOKER_OK,
                 "%s", error.message);
    return loss;
}

static void check_close(const char *name, const char *what, const float *expected,
                        const float *found, uint64_t count, double relative)
{
    double largest = 1;
    for (uint64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)expected[i]));
    for (uint64_t i = 0; i < count; i++)
        cr_assert((isnan(expected[i]) && isnan(found[i])) ||
                      fabs((double)expected[i] - (double)found[i]) <=
                          tolerance * largest + relative * fabs((double)expected[i]),
                  "%s: %s %d: ref %.9g, cpu %.9g", name, what, (int)i, (double)expected[i],
                  (double)found[i]);
}

static void check_equal(const char *name, const float *expected, const float *found, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        cr_assert(expected[i] == found[i] || (isnan(expected[i]) && isnan(found[i])),
                  "%s: %d: ref %.9g, cpu %.9g", name, (int)i, (double)expected[i],
                  (double)found[i]);
}

/* Nothing is summed: the largest value, a choice, or one rounding. */
static bool is_exact(enum stk_layer_kind kind)
{
    return kind == STK_MAX_POOL || kind == STK_RELU || kind == STK_DROPOUT || kind == STK_ADD;
}

static void floats_of(float *floats, const struct stk_bench *bench, int buffer)
{
    const uint64_t count = stk_bench_elements(bench, buffer);
    cr_assert_leq(count, BUFFER_MAX);
    if (stk_is_narrow(bench->plan->storage))
        stk_widen(floats, stk_bench_buffer(bench, buffer), count, bench->plan->storage);
    else
        memcpy(floats, stk_bench_buffer(bench, buffer), count * sizeof(float));
}

static void check_buffer(const struct stk_case *c, const struct stk_bench *ref,
                         const struct stk_bench *cpu, int buffer)
{
    static float expected[BUFFER_MAX], found[BUFFER_MAX];
    const uint64_t count = stk_bench_elements(ref, buffer);
    floats_of(expected, ref, buffer);
    floats_of(found, cpu, buffer);
    if (is_exact(c->asked.kind))
        check_equal(c->asked.name, expected, found, count);
    else
        check_close(c->asked.name, "buffer", expected, found, count,
                    stk_is_narrow(c->plan.storage) ? neighbor : 0);
}

static void check_same(const struct stk_case *c, const struct stk_bench *ref,
                       const struct stk_bench *cpu, uint32_t count)
{
    const char *name = c->asked.name;
    for (int buffer = 0; buffer < STK_CASE_AUX; buffer++)
        check_buffer(c, ref, cpu, buffer);
    if (c->asked.kind == STK_MAX_POOL)
        cr_assert_eq(memcmp(stk_bench_buffer(ref, STK_CASE_AUX),
                            stk_bench_buffer(cpu, STK_CASE_AUX),
                            c->buffers[STK_CASE_AUX].bytes_per_sample * count),
                     0, "%s: places", name);
    check_close(name, "gradient", ref->arenas.gradients, cpu->arenas.gradients,
                c->model.parameter_floats, 0);
    check_close(name, "statistic", ref->arenas.statistics, cpu->arenas.statistics,
                c->model.statistic_floats, 0);
}

/* One of `one_in` values of dy is not zero: behind a maximum most are. */
static void thin_out(const struct stk_bench *bench, uint64_t one_in)
{
    for (uint64_t i = 0; i < stk_bench_elements(bench, STK_CASE_DY); i++)
        if (stk_mix64(i) % one_in != 0)
            stk_bench_put(bench, STK_CASE_DY, i, i % 2 == 0 ? 0.0F : -0.0F);
}

/* Samples that a short pass has not: nobody may read them. */
static void spoil_rest(const struct stk_bench *bench, uint32_t count)
{
    const struct stk_buffer *x = &bench->plan->buffers[STK_CASE_X];
    const uint64_t each = x->bytes_per_sample / stoker_dtype_bytes(x->dtype);
    for (uint64_t i = count * each; i < stk_bench_elements(bench, STK_CASE_X); i++)
        stk_bench_put(bench, STK_CASE_X, i, NAN);
}

static void fill(const struct stk_bench *bench, uint32_t count, uint64_t one_in)
{
    stk_bench_fill(bench, count);
    thin_out(bench, one_in);
    spoil_rest(bench, count);
}

static void check_layer(const struct stk_case_layer *asked,
                        const struct stk_backend_options *options)
{
    static const struct {
        uint32_t count, one_in;
    } passes[] = { { BATCH, 1 }, { BATCH, 10 }, { BATCH, 1000 }, { 4, 7 }, { 3, 3 }, { 1, 1 } };
    struct stk_case c;
    struct stk_bench ref, cpu;
    struct stk_case_layer layer = *asked;
    layer.storage = options->storage;
    stk_case_make(&c, &layer, BATCH);
    stk_bench_open(&ref, &stk_backend_ref, options, &c.plan);
    stk_bench_open(&cpu, &stk_backend_cpu, options, &c.plan);
    for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]); i++) {
        const struct stk_pass pass = pass_of(asked->kind, passes[i].count);
        fill(&ref, passes[i].count, passes[i].one_in);
        fill(&cpu, passes[i].count, passes[i].one_in);
        const struct stk_loss expected = run(&ref, &pass);
        const struct stk_loss found = run(&cpu, &pass);
        check_same(&c, &ref, &cpu, passes[i].count);
        cr_assert_float_eq(found.loss_sum, expected.loss_sum, 1e-9, "%s", asked->name);
        cr_assert_eq(found.correct, expected.correct);
        cr_assert_eq(found.count, expected.count);
    }
    stk_bench_close(&ref);
    stk_bench_close(&cpu);
}

#define SHAPE(height, width, channels)                                                             \
    {                                                                                              \
        .rank = 3, .h = (height), .w = (width), .c = (channels)                                    \
    }

/* Runs of even and odd length, below and above a vector and a register block; few and many filters;
 * groups. */
static const struct stk_case_layer layers[] = {
    { "conv 1x1", STK_CONV2D, SHAPE(3, 5, 4), .outputs = 3, .biased = true },
    { "conv stem", STK_CONV2D, SHAPE(9, 8, 1), .outputs = 24, .kernel = { 5, 5 }, .biased = true },
    { "conv stem, relu", STK_CONV2D, SHAPE(8, 9, 3), .outputs = 36, .kernel = { 3, 3 },
      .stride = { 2, 2 }, .padding = { 1, 1 }, .relu = true, .biased = true },
    { "conv deep", STK_CONV2D, SHAPE(6, 7, 32), .outputs = 64, .kernel = { 3, 3 }, .biased = true },
    { "conv deep, padded", STK_CONV2D, SHAPE(5, 4, 19), .outputs = 70, .kernel = { 3, 2 },
      .stride = { 1, 2 }, .padding = { 2, 1 }, .relu = true },
    { "conv of long runs", STK_CONV2D, SHAPE(5, 5, 37), .outputs = 48, .kernel = { 4, 4 },
      .biased = true },
    { "conv of tall kernels", STK_CONV2D, SHAPE(7, 3, 20), .outputs = 16, .kernel = { 5, 2 } },
    { "conv in groups", STK_CONV2D, SHAPE(6, 5, 16), .outputs = 24, .kernel = { 3, 3 },
      .padding = { 1, 1 }, .groups = 2, .relu = true, .biased = true },
    { "conv depthwise", STK_CONV2D, SHAPE(7, 6, 16), .outputs = 16, .kernel = { 3, 3 },
      .stride = { 2, 1 }, .padding = { 1, 1 }, .groups = 16, .biased = true },
    { "conv in odd groups", STK_CONV2D, SHAPE(4, 4, 9), .outputs = 6, .kernel = { 2, 2 },
      .groups = 3 },
    { "linear", STK_LINEAR, SHAPE(1, 1, 29), .outputs = 10, .biased = true },
    { "linear, long", STK_LINEAR, SHAPE(11, 11, 17), .outputs = 8, .relu = true, .biased = true },
    { "linear, deep", STK_LINEAR, SHAPE(1, 1, 35), .outputs = 301, .relu = true, .biased = true },
    { "linear to one", STK_LINEAR, SHAPE(1, 1, 3), .outputs = 1 },
    { "max pool", STK_MAX_POOL, SHAPE(7, 6, 19), .kernel = { 2, 2 }, .stride = { 2, 2 } },
    { "max pool, overlapping", STK_MAX_POOL, SHAPE(7, 6, 3), .kernel = { 3, 2 }, .stride = { 2, 1 },
      .padding = { 1, 1 } },
    { "max pool, relu", STK_MAX_POOL, SHAPE(7, 6, 16), .kernel = { 2, 2 }, .stride = { 2, 2 },
      .relu = true },
    { "max pool, wide", STK_MAX_POOL, SHAPE(17, 17, 8), .kernel = { 17, 17 } },
    { "average pool", STK_AVG_POOL, SHAPE(5, 6, 8), .kernel = { 3, 2 }, .stride = { 2, 2 },
      .padding = { 1, 0 } },
    { "relu", STK_RELU, SHAPE(3, 3, 5), .outputs = 0 },
    { "relu in place", STK_RELU, SHAPE(3, 3, 5), .in_place = true },
    { "batch norm", STK_BATCH_NORM, SHAPE(4, 5, 11), .biased = true },
    { "batch norm, relu", STK_BATCH_NORM, SHAPE(4, 5, 16), .relu = true, .biased = true },
    { "batch norm in place", STK_BATCH_NORM, SHAPE(4, 5, 3), .biased = true, .in_place = true },
    { "dropout", STK_DROPOUT, SHAPE(9, 5, 7), .rate = 0.25F },
    { "dropout in place", STK_DROPOUT, SHAPE(3, 7, 5), .rate = 0.6F, .in_place = true },
    { "add", STK_ADD, SHAPE(3, 3, 5), .outputs = 0 },
    { "cross-entropy", STK_SOFTMAX_CROSS_ENTROPY, SHAPE(1, 1, 5), .rate = 0.1F },
    { "cross-entropy in place", STK_SOFTMAX_CROSS_ENTROPY, SHAPE(1, 1, 5), .in_place = true },
    { "mse", STK_MSE, SHAPE(1, 1, 5), .outputs = 0 },
};
enum { LAYERS = sizeof(layers) / sizeof(layers[0]) };

CleanTest(trainer_backend, cpu_does_what_ref_does_layer_by_layer)
{
    for (int type = 0; type < storage_count(); type++)
        for (uint32_t threads = 1; threads <= 3; threads++)
            for (int plain = 0; plain < 2; plain++)
                for (int i = 0; i < LAYERS; i++)
                    check_layer(&layers[i],
                                &(struct stk_backend_options){ .threads = threads,
                                                               .plain = plain == 1,
                                                               .storage = storages[type] });
}

/* NaN, infinities and zeros of both signs: what is not summed is as in `ref`. */
CleanTest(trainer_backend, special_values_are_those_of_ref)
{
    static const float special[] = { 0.0F, -0.0F, INFINITY, -INFINITY, NAN, 1.5F, -1.5F };
    for (int i = 0; i < LAYERS * storage_count(); i++) {
        struct stk_case c;
        struct stk_bench both[2];
        struct stk_case_layer asked = layers[i % LAYERS];
        asked.storage = storages[i / LAYERS];
        if (!is_exact(asked.kind) || asked.kind == STK_ADD) /* the sign of inf - inf is free */
            continue;
        stk_case_make(&c, &asked, BATCH);
        for (int which = 0; which < 2; which++) {
            struct stk_bench *bench = &both[which];
            stk_bench_open(bench, which == 0 ? &stk_backend_ref : &stk_backend_cpu,
                           &(struct stk_backend_options){ .threads = 2, .storage = asked.storage },
                           &c.plan);
            stk_bench_fill(bench, 1);
            for (uint64_t k = 0; k < stk_bench_elements(bench, STK_CASE_X); k++)
                stk_bench_put(bench, STK_CASE_X, k, special[stk_mix64(k) % 7]);
            const struct stk_pass pass = pass_of(asked.kind, BATCH);
            run(bench, &pass);
        }
        check_same(&c, &both[0], &both[1], BATCH);
        stk_bench_close(&both[0]);
        stk_bench_close(&both[1]);
    }
}

/* A ReLU behind a convolution or a linear layer keeps the NaN of an overflow. */
CleanTest(trainer_backend, relu_of_a_product_keeps_nan)
{
    for (int i = 0; i < LAYERS * storage_count(); i++) {
        struct stk_case c;
        struct stk_bench bench;
        struct stk_case_layer asked = layers[i % LAYERS];
        asked.storage = storages[i / LAYERS];
        if (!asked.relu || (asked.kind != STK_CONV2D && asked.kind != STK_LINEAR))
            continue;
        stk_case_make(&c, &asked, BATCH);
        stk_bench_open(&bench, &stk_backend_cpu,
                       &(struct stk_backend_options){ .threads = 2, .storage = asked.storage },
                       &c.plan);
        stk_bench_fill(&bench, 1);
        for (uint64_t k = 0; k < stk_bench_elements(&bench, STK_CASE_X); k++)
            stk_bench_put(&bench, STK_CASE_X, k, NAN);
        const struct stk_pass pass = pass_of(asked.kind, BATCH);
        run(&bench, &pass);
        static float y[BUFFER_MAX];
        floats_of(y, &bench, STK_CASE_Y);
        /* at the border a window may see only padding: the middle of each image does not */
        const uint64_t middle = stk_shape_elements(c.layers[1].out) / 2;
        cr_assert(isnan(y[middle]), "%s: %g", asked.name, (double)y[middle]);
        stk_bench_close(&bench);
    }
}

/* BATCH_NORM_APPLY after FORWARD, into another buffer. */
CleanTest(trainer_backend, batch_norm_applied_again_gives_the_same_bits)
{
    for (int which = 0; which < 4; which++) {
        const struct stk_backend_options options = { .threads = 1 + (uint32_t)which / 2 };
        const struct stk_backend_ops *ops = which % 2 == 0 ? &stk_backend_ref : &stk_backend_cpu;
        const struct stk_case_layer asked = { .name = "bn",
                                              .kind = STK_BATCH_NORM,
                                              .in = SHAPE(5, 3, 21),
                                              .relu = true,
                                              .biased = true };
        struct stk_case c;
        struct stk_bench bench;
        stk_case_make(&c, &asked, BATCH);
        c.ops[1] = c.ops[0];
        c.ops[1].kind = STK_OP_BATCH_NORM_APPLY;
        c.ops[1].y = STK_CASE_DY;
        stk_bench_open(&bench, ops, &options, &c.plan);
        stk_bench_fill(&bench, 1);
        const struct stk_pass pass = pass_of(STK_BATCH_NORM, BATCH);
        run(&bench, &pass);
        cr_assert_eq(memcmp(stk_bench_buffer(&bench, STK_CASE_Y),
                            stk_bench_buffer(&bench, STK_CASE_DY),
                            c.buffers[STK_CASE_Y].bytes_per_sample * BATCH),
                     0, "%s", ops->name);
        stk_bench_close(&bench);
    }
}

/* Branches, shared bytes, BatchNorm, dropout, and convolutions that only plain loops run. */
static stoker_model *residual_network(void)
{
    stoker_model *net = NULL;
    cr_assert_eq(stoker_model_create(&net, (uint32_t[]){ 12, 10, 1 }, 3, NULL), STOKER_OK);
    stoker_model_conv2d(net, "stem", &(stoker_conv2d){ .filters = 16, .kernel = { 3, 3 } });
    stoker_model_batch_norm(net, "bn1", NULL);
    stoker_model_relu(net, "relu1");
    stoker_model_conv2d(net, "conv2",
                        &(stoker_conv2d){ .filters = 16, .kernel = { 3, 3 }, .padding = { 1, 1 } });
    stoker_model_batch_norm(net, "bn2", NULL);
    stoker_model_add(net, "sum", "relu1");
    stoker_model_relu(net, "relu2");
    stoker_model_max_pool2d(net, "pool", &(stoker_pool2d){ .kernel = { 2, 2 } });
    stoker_model_conv2d(
        net, "depth",
        &(stoker_conv2d){ .filters = 16, .kernel = { 3, 3 }, .padding = { 1, 1 }, .groups = 16 });
    stoker_model_avg_pool2d(net, "average", &(stoker_pool2d){ .kernel = { 2, 2 } });
    stoker_model_dropout(net, "drop", 0.25F);
    stoker_model_flatten(net, "flatten");
    stoker_model_linear(net, "fc1", &(stoker_linear){ .features = 20 });
    stoker_model_relu(net, "relu3");
    stoker_model_linear(net, "fc2", &(stoker_linear){ .features = 5 });
    cr_assert_eq(stoker_model_softmax_cross_entropy(net, 0.1F), STOKER_OK);
    return net;
}

/* Three passes that add up their gradients, the last one short. Returns the last loss. */
static double run_network(const struct stk_bench *bench)
{
    static float samples[BATCH * 12 * 10];
    const stoker_model *model = bench->plan->model;
    double loss = 0;
    for (int i = 0; i < BATCH * 12 * 10; i++)
        samples[i] = stk_case_number(1, (uint64_t)i);
    stk_model_initialize(model, 5, bench->arenas.parameters, bench->arenas.statistics);
    stk_bench_round_weights(bench);
    memset(bench->arenas.gradients, 0, model->parameter_floats * sizeof(float));
    for (uint32_t round = 0; round < 3; round++) {
        struct stk_pass pass = pass_of(STK_SOFTMAX_CROSS_ENTROPY, round == 2 ? 2 : BATCH);
        pass.samples = samples;
        pass.step = round;
        loss = run(bench, &pass).loss_sum;
    }
    return loss;
}

static double distance(const float *a, const float *b, uint64_t count)
{
    double apart = 0, size = 0;
    for (uint64_t i = 0; i < count; i++) {
        apart += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)b[i] * (double)b[i];
    }
    return sqrt(apart / size);
}

static void check_network(const stoker_model *net, const struct stk_plan_options *how)
{
    struct stk_plan plan;
    struct stk_bench ref, cpu;
    const uint64_t floats = net->parameter_floats;
    const bool narrow = stk_is_narrow(how->storage);
    cr_assert_eq(stk_plan_make(&plan, net, how, NULL), STOKER_OK);
    stk_bench_open(&ref, &stk_backend_ref, &(struct stk_backend_options){ 0 }, &plan);
    const double expected = run_network(&ref);
    for (uint32_t threads = 1; threads <= 5; threads++) {
        float *first = malloc(floats * sizeof(float));
        stk_bench_open(&cpu, &stk_backend_cpu,
                       &(struct stk_backend_options){ .threads = threads, .storage = how->storage },
                       &plan);
        cr_assert_eq(cpu.ops->threads(cpu.backend), threads);
        cr_assert_float_eq(run_network(&cpu), expected, (narrow ? 0.01 : 1e-5) * expected);
        cr_assert_lt(distance(cpu.arenas.gradients, ref.arenas.gradients, floats),
                     narrow ? 0.002 : 1e-5);
        if (!narrow)
            check_close("network", "gradient", ref.arenas.gradients, cpu.arenas.gradients, floats,
                        0);
        check_close("network", "statistic", ref.arenas.statistics, cpu.arenas.statistics,
                    net->statistic_floats, narrow ? 0.01 : 0);
        memcpy(first, cpu.arenas.gradients, floats * sizeof(float));
        for (int again = 0; again < 5; again++) {
            run_network(&cpu);
            cr_assert_eq(memcmp(first, cpu.arenas.gradients, floats * sizeof(float)), 0,
                         "%d threads: the same bits again", (int)threads);
        }
        stk_bench_close(&cpu);
        free(first);
    }
    stk_bench_close(&ref);
    stk_plan_free(&plan);
}

CleanTest(trainer_backend, cpu_does_what_ref_does_with_whole_networks)
{
    stoker_model *net = residual_network();
    const struct stk_plan_options plans[] = {
        { .batch = BATCH, .train = true },
        { .batch = BATCH, .train = true, .recompute_batch_norm = true },
        { .batch = BATCH, .train = true, .checkpoint_segments = 3 },
        { .batch = BATCH, .train = true, .no_reuse = true },
    };
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
        for (int type = 0; type < storage_count(); type++) {
            struct stk_plan_options options = plans[i];
            options.storage = storages[type];
            check_network(net, &options);
        }
    stoker_model_destroy(&net);
}

CleanTest(trainer_backend, a_label_out_of_range_changes_nothing)
{
    static const int64_t wrong[] = { -1, 5, INT64_MIN, INT64_MAX };
    for (int which = 0; which < 8; which++) {
        const struct stk_backend_ops *ops = which % 2 == 0 ? &stk_backend_ref : &stk_backend_cpu;
        const struct stk_case_layer asked = { .name = "loss",
                                              .kind = STK_SOFTMAX_CROSS_ENTROPY,
                                              .in = SHAPE(1, 1, 5),
                                              .in_place = true };
        struct stk_case c;
        struct stk_bench bench;
        stk_case_make(&c, &asked, BATCH);
        stk_bench_open(&bench, ops, &(struct stk_backend_options){ .threads = 2 }, &c.plan);
        stk_bench_fill(&bench, 1);
        float before[BATCH * 5];
        memcpy(before, stk_bench_buffer(&bench, STK_CASE_X), sizeof(before));
        int64_t labels[BATCH] = { 0 };
        labels[3] = wrong[which / 2];
        const struct stk_pass pass = { .labels = labels, .count = BATCH, .gradient_scale = 1 };
        struct stk_loss loss = { .count = 77 };
        stoker_error error = { 0 };
        cr_assert_eq(ops->run(bench.program, &bench.arenas, &pass, &loss, &error), STOKER_EINVAL);
        cr_assert_not_null(strstr(error.message, "of sample 3 in the batch"), "%s", error.message);
        cr_assert_eq(loss.count, 77);
        cr_assert_eq(memcmp(before, stk_bench_buffer(&bench, STK_CASE_X), sizeof(before)), 0);
        stk_bench_close(&bench);
    }
}

static void check_workspace(const struct stk_case_layer *asked, const struct stk_backend_ops *ops,
                            const struct stk_backend_options *options)
{
    struct stk_backend *backend = NULL;
    struct stk_program *program = NULL;
    struct stk_case c;
    struct stk_case_layer layer = *asked;
    uint64_t told = 0;
    layer.storage = options->storage;
    stk_case_make(&c, &layer, BATCH);
    cr_assert_eq(ops->create(&backend, options, NULL), STOKER_OK);
    cr_assert_eq(ops->workspace_bytes(backend, &c.plan, &told, NULL), STOKER_OK);
    const int64_t before = stk_fault_live_bytes();
    cr_assert_eq(ops->load(&program, backend, &c.plan, NULL), STOKER_OK);
    cr_assert_eq((uint64_t)(stk_fault_live_bytes() - before), told, "%s", asked->name);
    ops->unload(program);
    cr_assert_eq(stk_fault_live_bytes(), before);
    ops->destroy(backend);
}

CleanTest(trainer_backend, load_takes_what_workspace_bytes_reports)
{
    for (int i = 0; i < LAYERS * storage_count(); i++) {
        struct stk_backend_options options = { .threads = 3, .storage = storages[i / LAYERS] };
        check_workspace(&layers[i % LAYERS], &stk_backend_ref, &options);
        check_workspace(&layers[i % LAYERS], &stk_backend_cpu, &options);
        options.plain = true;
        check_workspace(&layers[i % LAYERS], &stk_backend_cpu, &options);
    }
}

CleanTest(trainer_backend, a_pooling_window_has_at_most_65536_places)
{
    const struct stk_case_layer asked = {
        .name = "huge", .kind = STK_MAX_POOL, .in = SHAPE(257, 256, 1), .kernel = { 257, 256 }
    };
    struct stk_case c;
    stk_case_make(&c, &asked, 1);
    for (int which = 0; which < 2; which++) {
        const struct stk_backend_ops *ops = which == 0 ? &stk_backend_ref : &stk_backend_cpu;
        struct stk_backend *backend = NULL;
        struct stk_program *program = NULL;
        stoker_error error = { 0 };
        cr_assert_eq(ops->create(&backend, &(struct stk_backend_options){ .threads = 1 }, NULL),
                     STOKER_OK);
        cr_assert_eq(ops->load(&program, backend, &c.plan, &error), STOKER_ELIMIT);
        cr_assert_null(program);
        cr_assert_not_null(strstr(error.message, "huge"), "%s", error.message);
        ops->destroy(backend);
    }
}

CleanTest(trainer_backend, clear_and_norm_cover_all_of_an_arena)
{
    for (uint32_t threads = 1; threads <= 3; threads++) {
        const struct stk_backend_ops *ops = &stk_backend_cpu;
        struct stk_backend *backend = NULL;
        cr_assert_eq(
            ops->create(&backend, &(struct stk_backend_options){ .threads = threads }, NULL),
            STOKER_OK);
        for (uint64_t count = 1; count < 200; count += 13) {
            float *floats = ops->allocate(backend, (count + 1) * sizeof(float));
            double expected = 0;
            bool finite = false;
            for (uint64_t i = 0; i <= count; i++)
                floats[i] = (float)(i + 1) * 1e18F; /* squares beyond a float */
            for (uint64_t i = 0; i < count; i++)
                expected += (double)floats[i] * (double)floats[i];
            cr_assert_float_eq(ops->norm_squared(backend, floats, count, &finite) / expected, 1,
                               1e-12);
            cr_assert(finite);
            floats[count - 1] = count % 2 == 0 ? NAN : -INFINITY;
            ops->norm_squared(backend, floats, count, &finite);
            cr_assert(!finite);
            ops->clear(backend, floats, count);
            for (uint64_t i = 0; i < count; i++)
                cr_assert_eq(floats[i], 0);
            cr_assert_eq(floats[count], (float)(count + 1) * 1e18F);
            ops->release(backend, floats);
        }
        ops->destroy(backend);
    }
}

CleanTest(trainer_backend, are_found_by_name)
{
    cr_assert_eq(stk_backend_find("ref"), &stk_backend_ref);
    cr_assert_eq(stk_backend_find("cpu"), &stk_backend_cpu);
    cr_assert_eq(stk_backend_find("cuda"), &stk_backend_cuda);
    cr_assert_null(stk_backend_find("auto")); /* what that is, a trainer finds out */
    cr_assert_null(stk_backend_find("abacus"));
    cr_assert_null(stk_backend_find(""));
}

static void check_refusal(const stoker_model *net, const char *backend, const char *end)
{
    static const char begin[] = "precision bfloat16: back end cpu needs ";
    stoker_trainer *trainer = NULL;
    stoker_error error = { .code = 0 };
    stoker_trainer_options options = STOKER_TRAINER_OPTIONS_INIT;
    options.backend = backend;
    options.batch_size = BATCH;
    options.precision = STOKER_DTYPE_BFLOAT16;
    cr_assert_eq(stoker_trainer_create(&trainer, net, &options, &error), STOKER_ENOTSUP);
    cr_assert_null(trainer);
    cr_assert_eq(strncmp(error.message, begin, strlen(begin)), 0, "%s", error.message);
    cr_assert_not_null(strstr(error.message, end), "%s", error.message);
}

CleanTest(trainer_backend, a_cpu_without_bf16_is_refused_by_name)
{
    stoker_model *net = residual_network();
    cr_assert_eq(setenv("STOKER_BF16", "off", 1), 0);
    cr_assert_eq(setenv("STOKER_CUDART", "/nowhere/libcudart.so", 1), 0);
    check_refusal(net, "cpu", "; float32 is fast here, and back end ref computes in bfloat16 on");
    check_refusal(net, "auto", "; and no GPU is available: ");
    stoker_trainer *trainer = NULL;
    stoker_trainer_options options = STOKER_TRAINER_OPTIONS_INIT;
    options.backend = "auto"; /* float32 needs nothing */
    options.batch_size = BATCH;
    cr_assert_eq(stoker_trainer_create(&trainer, net, &options, NULL), STOKER_OK);
    cr_assert_str_eq(stoker_trainer_backend(trainer), "cpu");
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&net);
}
