/* test_cpu_bf16.c - `cpu` in bfloat16 does what `ref` does in bfloat16: layer by layer, for each kind of loops; and whole
 * networks. On a CPU without AVX512_BF16 only the refusal is tested.
 *
 * Tolerance of a stored value: both round the same sum, of floats here and of doubles there, so they may round to
 * neighbours: 2^-7 of the value. A sum of n products, each about 1, is off by some sqrt(n) roundings of 6e-8 before that;
 * 2e-5 of the largest number allows for n = 10^4 and more, as in test_cpu.c. If nothing is summed,
 * values are equal. */
#include "support/leaks.h"
#include "support/trainer_case.h"
#include "trainer/backend/cpu/operations.h"

#include <math.h>
#include <stoker/trainer.h>

enum { BATCH = 7, BUFFER_MAX = 40000 };
static const double neighbour = 1.0 / 128, tolerance = 2e-5;

static void need_bf16(void)
{
    if (!stk_cpu_has_bf16())
        cr_skip_test("this CPU has no AVX512_BF16");
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

static void check_buffer(const struct stk_case *c, const struct stk_bench *ref,
                         const struct stk_bench *cpu, int buffer)
{
    static float expected[BUFFER_MAX], found[BUFFER_MAX];
    const uint64_t count = stk_bench_elements(ref, buffer);
    cr_assert_leq(count, BUFFER_MAX);
    stk_widen(expected, stk_bench_buffer(ref, buffer), count, c->plan.storage);
    stk_widen(found, stk_bench_buffer(cpu, buffer), count, c->plan.storage);
    if (is_exact(c->asked.kind))
        check_equal(c->asked.name, expected, found, count);
    else
        check_close(c->asked.name, "buffer", expected, found, count, neighbour);
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

static void check_passes(const struct stk_case *c, const struct stk_bench *ref,
                         const struct stk_bench *cpu)
{
    for (uint32_t count = BATCH; count >= 1; count /= 2) {
        const struct stk_pass pass = pass_of(c->asked.kind, count);
        stk_bench_fill(ref, count);
        stk_bench_fill(cpu, count);
        thin_out(ref, count);
        thin_out(cpu, count);
        spoil_rest(ref, count);
        spoil_rest(cpu, count);
        const struct stk_loss expected = run(ref, &pass);
        const struct stk_loss found = run(cpu, &pass);
        check_same(c, ref, cpu, count);
        cr_assert_float_eq(found.loss_sum, expected.loss_sum, 1e-9, "%s", c->asked.name);
        cr_assert_eq(found.correct, expected.correct);
        cr_assert_eq(found.count, expected.count);
    }
}

static void check_layer(const struct stk_case_layer *asked,
                        const struct stk_backend_options *options)
{
    struct stk_case c;
    struct stk_bench ref, cpu;
    struct stk_case_layer narrow = *asked;
    narrow.storage = STOKER_DTYPE_BFLOAT16;
    stk_case_make(&c, &narrow, BATCH);
    stk_bench_open(&ref, &stk_backend_ref, options, &c.plan);
    stk_bench_open(&cpu, &stk_backend_cpu, options, &c.plan);
    check_passes(&c, &ref, &cpu);
    stk_bench_close(&ref);
    stk_bench_close(&cpu);
}

#define SHAPE(height, width, channels)                                                             \
    {                                                                                              \
        .rank = 3, .h = (height), .w = (width), .c = (channels)                                    \
    }

/* Runs of even and odd length, below and above a vector, three vectors and a block; panels of 16 to 64 filters and more;
 * kernels of up to two blocks of rows. */
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

CleanTest(trainer_bf16, cpu_does_what_ref_does_layer_by_layer)
{
    need_bf16();
    for (uint32_t threads = 1; threads <= 3; threads += 2)
        for (int i = 0; i < LAYERS; i++)
            check_layer(&layers[i], &(struct stk_backend_options){
                                        .threads = threads, .storage = STOKER_DTYPE_BFLOAT16 });
}

CleanTest(trainer_bf16, other_loops_on_copies_do_so_as_well)
{
    need_bf16();
    for (uint32_t loops = STK_LOOPS_LIBRARY; loops <= STK_LOOPS_PLAIN; loops++)
        for (int i = 0; i < LAYERS; i++)
            if (loops == STK_LOOPS_PLAIN || layers[i].kind == STK_CONV2D)
                check_layer(&layers[i],
                            &(struct stk_backend_options){ .threads = 2,
                                                           .loops = (enum stk_loops)loops,
                                                           .storage = STOKER_DTYPE_BFLOAT16 });
}

/* NaN, infinities and zeros of both signs: what is not summed is as in `ref`. */
CleanTest(trainer_bf16, special_values_are_those_of_ref)
{
    need_bf16();
    static const float special[] = { 0.0F, -0.0F, INFINITY, -INFINITY, NAN, 1.5F, -1.5F };
    const struct stk_backend_options options = { .threads = 2, .storage = STOKER_DTYPE_BFLOAT16 };
    for (int i = 0; i < LAYERS; i++) {
        struct stk_case c;
        struct stk_bench both[2];
        struct stk_case_layer asked = layers[i];
        asked.storage = STOKER_DTYPE_BFLOAT16;
        if (!is_exact(asked.kind) || asked.kind == STK_ADD) /* the sign of inf - inf is free */
            continue;
        stk_case_make(&c, &asked, BATCH);
        for (int which = 0; which < 2; which++) {
            struct stk_bench *bench = &both[which];
            stk_bench_open(bench, which == 0 ? &stk_backend_ref : &stk_backend_cpu, &options,
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

/* ---- whole networks ---- */

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
    cr_assert_eq(stk_plan_make(&plan, net, how, NULL), STOKER_OK);
    stk_bench_open(&ref, &stk_backend_ref, &(struct stk_backend_options){ 0 }, &plan);
    const double expected = run_network(&ref);
    for (uint32_t threads = 1; threads <= 3; threads++) {
        const struct stk_backend_options options = { .threads = threads,
                                                     .storage = STOKER_DTYPE_BFLOAT16 };
        float *first = malloc(floats * sizeof(float));
        stk_bench_open(&cpu, &stk_backend_cpu, &options, &plan);
        const double found = run_network(&cpu);
        const double apart = distance(cpu.arenas.gradients, ref.arenas.gradients, floats);
        cr_log_info("%d threads: loss %.6f, ref %.6f; gradients %.2e apart", (int)threads, found,
                    expected, apart);
        cr_assert_float_eq(found, expected, 0.01 * expected);
        cr_assert_lt(apart, 0.002);
        check_close("network", "statistic", ref.arenas.statistics, cpu.arenas.statistics,
                    net->statistic_floats, 0.01);
        memcpy(first, cpu.arenas.gradients, floats * sizeof(float));
        run_network(&cpu);
        cr_assert_eq(memcmp(first, cpu.arenas.gradients, floats * sizeof(float)), 0,
                     "the same bits again");
        stk_bench_close(&cpu);
        free(first);
    }
    stk_bench_close(&ref);
    stk_plan_free(&plan);
}

CleanTest(trainer_bf16, cpu_does_what_ref_does_with_whole_networks)
{
    need_bf16();
    stoker_model *net = residual_network();
    const struct stk_plan_options plans[] = {
        { .batch = BATCH, .train = true },
        { .batch = BATCH, .train = true, .recompute_batch_norm = true },
        { .batch = BATCH, .train = true, .checkpoint_segments = 3 },
        { .batch = BATCH, .train = true, .no_reuse = true },
    };
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        struct stk_plan_options options = plans[i];
        options.storage = STOKER_DTYPE_BFLOAT16;
        check_network(net, &options);
    }
    stoker_model_destroy(&net);
}

/* ---- a trainer ---- */

static void check_refusal(const stoker_model *net, const char *backend, const char *message)
{
    stoker_trainer *trainer = NULL;
    stoker_error error = { .code = 0 };
    stoker_trainer_options options = STOKER_TRAINER_OPTIONS_INIT;
    options.backend = backend;
    options.batch_size = BATCH;
    options.precision = STOKER_DTYPE_BFLOAT16;
    cr_assert_eq(stoker_trainer_create(&trainer, net, &options, &error), STOKER_ENOTSUP);
    cr_assert_null(trainer);
    cr_assert_eq(strncmp(error.message, message, strlen(message)), 0, "%s", error.message);
}

CleanTest(trainer_bf16, a_cpu_without_it_is_refused_by_name)
{
    stoker_model *net = residual_network();
    cr_assert_eq(setenv("STOKER_BF16", "off", 1), 0);
    cr_assert_eq(setenv("STOKER_CUDART", "/nowhere/libcudart.so", 1), 0);
    check_refusal(net, "cpu",
                  "precision bfloat16: back end cpu needs AVX512_BF16, which this CPU lacks; ");
    check_refusal(net, "auto",
                  "precision bfloat16: back end cpu needs AVX512_BF16, which this CPU lacks; "
                  "float32 is fast here, and back end ref computes in bfloat16 on any CPU; and no "
                  "GPU is available: ");
    stoker_trainer *trainer = NULL;
    stoker_trainer_options options = STOKER_TRAINER_OPTIONS_INIT;
    options.backend = "auto"; /* float32 needs nothing */
    options.batch_size = BATCH;
    cr_assert_eq(stoker_trainer_create(&trainer, net, &options, NULL), STOKER_OK);
    cr_assert_str_eq(stoker_trainer_backend(trainer), "cpu");
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&net);
}
