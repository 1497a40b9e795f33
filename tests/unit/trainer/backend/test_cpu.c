/* test_cpu.c - `cpu` does what `ref` does: layer by layer, for each kind of loops, for
 * thread counts that do and do not divide the batch; and whole networks, whose buffers share bytes.
 *
 * Tolerance: both sum the same products, `ref` in double. A sum of n products, each about 1, is
 * off by some sqrt(n) roundings of 6e-8; 2e-5 of the largest number allows for n = 10^4 and more. */
#include "loader/base/fault.h"
#include "support/leaks.h"
#include "support/trainer_case.h"

#include <math.h>

enum { BATCH = 7 };
static const double tolerance = 2e-5;

static void check_close(const char *name, const char *what, const float *expected,
                        const float *found, uint64_t count)
{
    double largest = 1;
    for (uint64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)expected[i]));
    for (uint64_t i = 0; i < count; i++)
        cr_assert(fabs((double)expected[i] - (double)found[i]) <= tolerance * largest,
                  "%s: %s %d: ref %.9g, cpu %.9g", name, what, (int)i, (double)expected[i],
                  (double)found[i]);
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

static void check_same(const struct stk_case *c, const struct stk_bench *ref,
                       const struct stk_bench *cpu, uint32_t count)
{
    const char *name = c->asked.name;
    for (int buffer = 0; buffer < STK_CASE_AUX; buffer++)
        check_close(name, "buffer", stk_bench_buffer(ref, buffer), stk_bench_buffer(cpu, buffer),
                    c->buffers[buffer].bytes / sizeof(float));
    if (c->asked.kind == STK_MAX_POOL)
        cr_assert_eq(memcmp(stk_bench_buffer(ref, STK_CASE_AUX),
                            stk_bench_buffer(cpu, STK_CASE_AUX),
                            c->buffers[STK_CASE_AUX].bytes_per_sample * count),
                     0, "%s: places", name);
    check_close(name, "gradient", ref->arenas.gradients, cpu->arenas.gradients,
                c->model.parameter_floats);
    check_close(name, "statistic", ref->arenas.statistics, cpu->arenas.statistics,
                c->model.statistic_floats);
}

static void check_layer(const struct stk_case_layer *asked,
                        const struct stk_backend_options *options)
{
    struct stk_case c;
    struct stk_bench ref, cpu;
    stk_case_make(&c, asked, BATCH);
    stk_bench_open(&ref, &stk_backend_ref, options, &c.plan);
    stk_bench_open(&cpu, &stk_backend_cpu, options, &c.plan);
    for (uint32_t count = BATCH; count >= 1; count = count == BATCH ? 4 : count / 2) {
        const struct stk_pass pass = pass_of(asked->kind, count);
        stk_bench_fill(&ref, count);
        stk_bench_fill(&cpu, count);
        const struct stk_loss expected = run(&ref, &pass);
        const struct stk_loss found = run(&cpu, &pass);
        check_same(&c, &ref, &cpu, count);
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

static const struct stk_case_layer layers[] = {
    { "conv 1x1", STK_CONV2D, SHAPE(3, 5, 4), .outputs = 3, .biased = true },
    { "conv stem", STK_CONV2D, SHAPE(9, 8, 1), .outputs = 24, .kernel = { 5, 5 }, .biased = true },
    { "conv stem, relu", STK_CONV2D, SHAPE(8, 9, 3), .outputs = 20, .kernel = { 3, 3 },
      .stride = { 2, 2 }, .padding = { 1, 1 }, .relu = true, .biased = true },
    { "conv deep", STK_CONV2D, SHAPE(6, 7, 32), .outputs = 40, .kernel = { 3, 3 }, .biased = true },
    { "conv deep, padded", STK_CONV2D, SHAPE(5, 4, 19), .outputs = 33, .kernel = { 3, 2 },
      .stride = { 1, 2 }, .padding = { 2, 1 }, .relu = true },
    { "conv of long runs", STK_CONV2D, SHAPE(4, 5, 37), .outputs = 8, .kernel = { 2, 4 },
      .biased = true },
    { "conv in groups", STK_CONV2D, SHAPE(6, 5, 16), .outputs = 24, .kernel = { 3, 3 },
      .padding = { 1, 1 }, .groups = 2, .relu = true, .biased = true },
    { "conv depthwise", STK_CONV2D, SHAPE(7, 6, 16), .outputs = 16, .kernel = { 3, 3 },
      .stride = { 2, 1 }, .padding = { 1, 1 }, .groups = 16, .biased = true },
    { "conv in odd groups", STK_CONV2D, SHAPE(4, 4, 9), .outputs = 6, .kernel = { 2, 2 },
      .groups = 3 },
    { "linear", STK_LINEAR, SHAPE(1, 1, 29), .outputs = 10, .biased = true },
    { "linear, long", STK_LINEAR, SHAPE(9, 9, 17), .outputs = 300, .relu = true, .biased = true },
    { "linear to one", STK_LINEAR, SHAPE(1, 1, 3), .outputs = 1 },
    { "max pool", STK_MAX_POOL, SHAPE(7, 6, 16), .kernel = { 2, 2 }, .stride = { 2, 2 } },
    { "max pool, few channels", STK_MAX_POOL, SHAPE(7, 6, 3), .kernel = { 3, 2 },
      .stride = { 2, 1 }, .padding = { 1, 1 } },
    { "max pool, relu", STK_MAX_POOL, SHAPE(7, 6, 16), .kernel = { 2, 2 }, .stride = { 2, 2 },
      .relu = true },
    { "max pool, wide", STK_MAX_POOL, SHAPE(17, 17, 8), .kernel = { 17, 17 } },
    { "average pool", STK_AVG_POOL, SHAPE(5, 6, 8), .kernel = { 3, 2 }, .stride = { 2, 2 },
      .padding = { 1, 0 } },
    { "relu", STK_RELU, SHAPE(3, 3, 5), .outputs = 0 },
    { "relu in place", STK_RELU, SHAPE(3, 3, 5), .in_place = true },
    { "batch norm", STK_BATCH_NORM, SHAPE(4, 5, 11), .biased = true },
    { "batch norm, relu", STK_BATCH_NORM, SHAPE(4, 5, 16), .relu = true, .biased = true },
    { "dropout", STK_DROPOUT, SHAPE(5, 5, 7), .rate = 0.25F },
    { "dropout in place", STK_DROPOUT, SHAPE(3, 7, 5), .rate = 0.6F, .in_place = true },
    { "add", STK_ADD, SHAPE(3, 3, 5), .outputs = 0 },
    { "cross-entropy", STK_SOFTMAX_CROSS_ENTROPY, SHAPE(1, 1, 5), .rate = 0.1F },
    { "cross-entropy in place", STK_SOFTMAX_CROSS_ENTROPY, SHAPE(1, 1, 5), .in_place = true },
    { "mse", STK_MSE, SHAPE(1, 1, 5), .outputs = 0 },
};
enum { LAYERS = sizeof(layers) / sizeof(layers[0]) };

CleanTest(trainer_backend, cpu_does_what_ref_does_layer_by_layer)
{
    for (uint32_t loops = STK_LOOPS_BEST; loops <= STK_LOOPS_PLAIN; loops++)
        for (uint32_t threads = 1; threads <= 3; threads++)
            for (int i = 0; i < LAYERS; i++) {
                const struct stk_backend_options options = { .threads = threads,
                                                             .loops = (enum stk_loops)loops };
                check_layer(&layers[i], &options);
            }
}

/* Most of dy is zero behind a maximum: the loops that leave zeros out must find the rest. */
CleanTest(trainer_backend, leaves_out_zeros_and_nothing_else)
{
    const struct stk_backend_options options = { .threads = 2 };
    struct stk_case c;
    struct stk_bench ref, cpu;
    stk_case_make(&c, &layers[3], BATCH);
    stk_bench_open(&ref, &stk_backend_ref, &options, &c.plan);
    stk_bench_open(&cpu, &stk_backend_cpu, &options, &c.plan);
    for (uint64_t one_in = 1; one_in <= 1000; one_in *= 10) {
        const struct stk_pass pass = pass_of(STK_CONV2D, BATCH);
        stk_bench_fill(&ref, one_in);
        stk_bench_fill(&cpu, one_in);
        for (uint64_t i = 0; i < c.buffers[STK_CASE_DY].bytes / sizeof(float); i++)
            if (stk_mix64(i) % one_in != 0)
                stk_bench_buffer(&ref, STK_CASE_DY)[i] = stk_bench_buffer(&cpu, STK_CASE_DY)[i] = 0;
        run(&ref, &pass);
        run(&cpu, &pass);
        check_same(&c, &ref, &cpu, BATCH);
    }
    stk_bench_close(&ref);
    stk_bench_close(&cpu);
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

/* A network with all that a plan can do: branches, shared bytes, BatchNorm, dropout. */
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

static float samples[BATCH * 12 * 10];

static void fill_samples(void)
{
    for (int i = 0; i < BATCH * 12 * 10; i++)
        samples[i] = stk_case_number(1, (uint64_t)i);
}

/* Three passes that add up their gradients, the last one short. */
static void run_network(const struct stk_bench *bench)
{
    const stoker_model *model = bench->plan->model;
    stk_model_initialize(model, 5, bench->arenas.parameters, bench->arenas.statistics);
    memset(bench->arenas.gradients, 0, model->parameter_floats * sizeof(float));
    for (uint32_t round = 0; round < 3; round++) {
        struct stk_pass pass = pass_of(STK_SOFTMAX_CROSS_ENTROPY, round == 2 ? 2 : BATCH);
        pass.samples = samples;
        pass.step = round;
        run(bench, &pass);
    }
}

static void check_network(const stoker_model *net, const struct stk_plan_options *how)
{
    struct stk_plan plan;
    struct stk_bench ref, cpu;
    cr_assert_eq(stk_plan_make(&plan, net, how, NULL), STOKER_OK);
    stk_bench_open(&ref, &stk_backend_ref, &(struct stk_backend_options){ 0 }, &plan);
    run_network(&ref);
    for (uint32_t threads = 1; threads <= 5; threads++) {
        stk_bench_open(&cpu, &stk_backend_cpu, &(struct stk_backend_options){ .threads = threads },
                       &plan);
        for (int again = 0; again < 10; again++) {
            run_network(&cpu);
            check_close("network", "gradient", ref.arenas.gradients, cpu.arenas.gradients,
                        net->parameter_floats);
            check_close("network", "statistic", ref.arenas.statistics, cpu.arenas.statistics,
                        net->statistic_floats);
        }
        stk_bench_close(&cpu);
    }
    stk_bench_close(&ref);
    stk_plan_free(&plan);
}

CleanTest(trainer_backend, cpu_does_what_ref_does_with_whole_networks)
{
    fill_samples();
    stoker_model *net = residual_network();
    const struct stk_plan_options plans[] = {
        { .batch = BATCH, .train = true },
        { .batch = BATCH, .train = true, .recompute_batch_norm = true },
        { .batch = BATCH, .train = true, .checkpoint_segments = 3 },
        { .batch = BATCH, .train = true, .no_reuse = true },
    };
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
        check_network(net, &plans[i]);
    stoker_model_destroy(&net);
}

CleanTest(trainer_backend, same_threads_same_bits)
{
    fill_samples();
    stoker_model *net = residual_network();
    struct stk_plan plan;
    cr_assert_eq(stk_plan_make(&plan, net,
                               &(struct stk_plan_options){ .batch = BATCH, .train = true }, NULL),
                 STOKER_OK);
    for (uint32_t threads = 1; threads <= 3; threads++) {
        struct stk_bench benches[2];
        for (int i = 0; i < 2; i++) {
            stk_bench_open(&benches[i], &stk_backend_cpu,
                           &(struct stk_backend_options){ .threads = threads }, &plan);
            cr_assert_eq(benches[i].ops->threads(benches[i].backend), threads);
            run_network(&benches[i]);
        }
        cr_assert_eq(memcmp(benches[0].arenas.gradients, benches[1].arenas.gradients,
                            net->parameter_floats * sizeof(float)),
                     0, "%d threads", (int)threads);
        stk_bench_close(&benches[0]);
        stk_bench_close(&benches[1]);
    }
    stk_plan_free(&plan);
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

CleanTest(trainer_backend, load_takes_what_workspace_bytes_reports)
{
    for (uint32_t loops = STK_LOOPS_BEST; loops <= STK_LOOPS_PLAIN; loops++)
        for (int i = 0; i < LAYERS; i++)
            for (int which = 0; which < 2; which++) {
                const struct stk_backend_ops *ops =
                    which == 0 ? &stk_backend_ref : &stk_backend_cpu;
                struct stk_backend *backend = NULL;
                struct stk_program *program = NULL;
                struct stk_case c;
                uint64_t told = 0;
                stk_case_make(&c, &layers[i], BATCH);
                cr_assert_eq(ops->create(&backend,
                                         &(struct stk_backend_options){
                                             .threads = 3, .loops = (enum stk_loops)loops },
                                         NULL),
                             STOKER_OK);
                cr_assert_eq(ops->workspace_bytes(backend, &c.plan, &told, NULL), STOKER_OK);
                const int64_t before = stk_fault_live_bytes();
                cr_assert_eq(ops->load(&program, backend, &c.plan, NULL), STOKER_OK);
                cr_assert_eq((uint64_t)(stk_fault_live_bytes() - before), told, "%s",
                             layers[i].name);
                ops->unload(program);
                cr_assert_eq(stk_fault_live_bytes(), before);
                ops->destroy(backend);
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
