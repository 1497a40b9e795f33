/* test_cpu.c - `cpu` does what `ref` does, in float32 and in bfloat16: layer by layer, with its own
 * loops and oneDNN or with plain loops only, for thread counts that do and do not divide the batch;
 * and whole networks, whose buffers share bytes. On a CPU without AVX512_BF16 only the refusal of
 * bfloat16 is tested. */
#include "loader/base/fault.h"
#include "support/leaks.h"
#include "support/trainer/layer_cases.h"
#include "trainer/backend/cpu/operations.h"

#include <stoker/trainer.h>

static const stoker_dtype storages[] = { STOKER_DTYPE_FLOAT32, STOKER_DTYPE_BFLOAT16 };

/* How many of `storages` this CPU computes in. */
static int storage_count(void)
{
    return stk_cpu_has_bf16() ? 2 : 1;
}

CleanTest(trainer_backend, cpu_does_what_ref_does_layer_by_layer)
{
    for (int type = 0; type < storage_count(); type++)
        for (uint32_t threads = 1; threads <= 3; threads++)
            for (int plain = 0; plain < 2; plain++)
                for (int i = 0; i < LAYERS; i++) {
                    const struct stk_backend_options options = { .threads = threads,
                                                                 .plain = plain == 1,
                                                                 .storage = storages[type] };
                    check_layer(&layers[i], &stk_backend_cpu, &options);
                    check_special_values(&layers[i], &stk_backend_cpu, &options);
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
                        0, 0);
        check_close("network", "statistic", ref.arenas.statistics, cpu.arenas.statistics,
                    net->statistic_floats, narrow ? 0.01 : 0, 0);
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
    stoker_trainer_options options = stk_trainer_options(.backend = backend, .batch_size = BATCH,
                                                         .precision = STOKER_DTYPE_BFLOAT16);
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
