/* test_split.c - a network over two GPUs, or one and a CPU, on the stand-in runtime: the numbers of
 * one device, no host waits between two GPUs, checkpoints that move, and no failure that leaves
 * anything behind.
 */
#include "support/trainer/cuda_trainer_case.h"

enum { STEPS = 9 };

/* Behind relu1, which the sum reads, too; relu2; the pools. */
static const uint32_t splits[] = { 2, 6, 7, 8 };

static stoker_trainer_options split_of(const char *backend, uint32_t split)
{
    stoker_trainer_options options = options_of(backend);
    options.split = split;
    options.accumulate = 3;
    options.threads = 2;
    return options;
}

/* Steps of both, compared as they are reported; one is short, and the last group, too. */
static void compare(stoker_trainer *ours, stoker_trainer *theirs, double tolerance,
                    const char *what)
{
    for (uint64_t i = 0; i < STEPS + 1; i++) {
        const uint32_t count = i == 4 ? 5 : BATCH;
        const stoker_step a = step(ours, i, count);
        const stoker_step b = step(theirs, i, count);
        cr_assert_leq(fabs(a.loss - b.loss), tolerance, "%s: step %u", what, (unsigned)i);
        if (a.gradient_norm > 0 && b.gradient_norm > 0) /* `ref` reports it with each update */
            cr_assert_float_eq(a.gradient_norm, b.gradient_norm, 1e-5F,
                               "%s: step %u: %.7g, not %.7g", what, (unsigned)i,
                               (double)a.gradient_norm, (double)b.gradient_norm);
        cr_assert_eq(a.count, b.count);
        cr_assert_eq(a.updated, b.updated);
        cr_assert_eq(a.skipped, b.skipped);
        cr_assert(a.loss_scale >= b.loss_scale && a.loss_scale <= b.loss_scale);
    }
    cr_assert_eq(stoker_trainer_flush(ours, NULL), STOKER_OK);
    cr_assert_eq(stoker_trainer_flush(theirs, NULL), STOKER_OK);
    cr_assert_eq(stoker_trainer_updates(ours), stoker_trainer_updates(theirs));
    check_within(ours, theirs, tolerance, what);
}

/* As these options say, and on one device. */
static void check_split(const stoker_model *model, stoker_trainer_options options,
                        const char *device, double tolerance)
{
    const char *const backend = options.backend;
    begin();
    stoker_trainer *two = trainer_of(model, options);
    options.backend = device;
    options.split = 0;
    stoker_trainer *one = trainer_of(model, options);
    compare(two, one, tolerance, backend);
    stoker_trainer_destroy(&two);
    stoker_trainer_destroy(&one);
    cr_assert_eq(standin_cuda_live(), 0);
    cr_assert_eq(standin_cuda_violations(), 0);
}

CleanTest(trainer_cuda_split, two_gpus_give_the_bits_of_one)
{
    stoker_model *model = network();
    for (size_t s = 0; s < sizeof(splits) / sizeof(splits[0]); s++) {
        stoker_trainer_options options = split_of("cuda:0,cuda:1", splits[s]);
        options.clip_norm =
            STOKER_NORM_UNLIMITED; /* with it, a sum of two sums is rounded once more */
        options.metrics_interval = s % 2 == 0 ? 1 : 4;
        check_split(model, options, "cuda", 0);
    }
    stoker_model_destroy(&model);
}

CleanTest(trainer_cuda_split, each_pair_agrees_with_ref)
{
    static const char *const pairs[] = { "cuda:0,cuda:1", "cuda:1,ref", "ref,cuda:1", "cpu,cuda",
                                         "cuda,cpu" };
    stoker_model *model = network();
    for (size_t p = 0; p < sizeof(pairs) / sizeof(pairs[0]); p++)
        for (uint32_t accumulate = 1; accumulate < 5; accumulate += 3) {
            stoker_trainer_options options = split_of(pairs[p], splits[p % 4]);
            options.accumulate = accumulate;
            options.metrics_interval = 3;
            check_split(model, options, "ref", 1e-4);
        }
    stoker_model_destroy(&model);
}

/* Convolutions and linear layers, each half with those that it has. */
CleanTest(trainer_cuda_split, convolutions_and_linear_layers_on_either_side)
{
    stoker_model *model = stk_test_begin(SIDE, SIDE, CHANNELS);
    stk_test_conv(model, "conv1", 8, 1);
    (void)stoker_model_relu(model, "relu1");
    (void)stoker_model_max_pool2d(model, "pool", &(stoker_pool2d){ .kernel = { 2, 2 } });
    stk_test_conv(model, "conv2", 8, 1);
    (void)stoker_model_relu(model, "relu2");
    (void)stoker_model_flatten(model, "flatten");
    stk_test_linear(model, "fc1", 16);
    (void)stoker_model_relu(model, "relu3");
    stk_test_linear(model, "fc2", CLASSES);
    (void)stoker_model_softmax_cross_entropy(model, 0);
    model = stk_test_end(model);
    for (uint32_t split = 2; split < 8; split += 2) {
        stoker_trainer_options options = split_of("cuda:0,cuda:1", split);
        options.optimizer = STOKER_OPTIMIZER_SGD;
        options.momentum = 0.9F;
        options.metrics_interval = 3;
        check_split(model, options, "ref", 1e-4);
    }
    stoker_model_destroy(&model);
}

/* An overflow on either device leaves the update out on both. */
CleanTest(trainer_cuda_split, sixteen_bits_and_their_loss_scale)
{
    static const char *const pairs[] = { "cuda:0,cuda:1", "ref,cuda:0", "cuda:0,ref" };
    stoker_model *model = network();
    for (size_t p = 0; p < sizeof(pairs) / sizeof(pairs[0]); p++) {
        begin();
        stoker_trainer_options options = split_of(pairs[p], 6);
        options.precision = STOKER_DTYPE_FLOAT16;
        options.loss_scale = 16777216.0F;
        options.dynamic_loss_scale = true;
        options.accumulate = 1;
        stoker_trainer *pair = trainer_of(model, options);
        uint32_t skipped = 0;
        float scale = options.loss_scale;
        for (uint64_t i = 0; i < 14; i++) {
            const stoker_step told = step(pair, i, BATCH);
            skipped += told.skipped ? 1 : 0;
            cr_assert_neq(told.skipped, told.updated, "%s: step %u", pairs[p], (unsigned)i);
            scale = told.skipped ? scale / 2 : scale;
        }
        cr_assert_gt(skipped, 2);
        cr_assert_lt(skipped, 14);
        for (uint32_t s = 0; s < 2; s++) {
            struct stk_update_state state = { .updates = 0 };
            struct stk_step_metrics metrics;
            const struct stk_stage *const stage = pair->stage[s];
            if (stage->ops->device == NULL)
                continue;
            cr_assert_eq(stage->ops->device->read_state(stage->backend, &state, &metrics, NULL),
                         STOKER_OK);
            cr_assert_eq(state.updates, 14 - skipped, "%s: %u: %u, not %u", pairs[p], s,
                         (unsigned)state.updates, 14 - skipped);
            cr_assert_eq(state.loss_scale.scale, scale);
        }
        cr_assert_eq(stoker_trainer_updates(pair), 14 - skipped);
        stoker_trainer_destroy(&pair);
        cr_assert_eq(standin_cuda_live(), 0);
    }
    stoker_model_destroy(&model);
}

CleanTest(trainer_cuda_split, between_two_gpus_the_host_waits_for_nothing)
{
    stoker_model *model = network();
    begin();
    stoker_trainer_options options = split_of("cuda:0,cuda:1", 6);
    options.metrics_interval = 100;
    stoker_trainer *trainer = trainer_of(model, options);
    cr_assert_str_eq(stoker_trainer_backend(trainer), "cuda:0,cuda:1");
    for (uint64_t i = 0; i < 12;
         i++) /* two slots, three passes: six kinds, recorded the second time */
        step(trainer, i, BATCH);
    for (uint64_t i = 12; i < 24; i++) {
        const struct standin_cuda_host before = standin_cuda_host();
        step(trainer, i, BATCH);
        const struct standin_cuda_host after = standin_cuda_host();
        cr_assert_eq(after.waits, before.waits, "step %u", (unsigned)i);
        cr_assert_eq(after.copies, before.copies, "step %u: %u", (unsigned)i,
                     (unsigned)(after.copies - before.copies));
        cr_assert_eq(after.allocations, before.allocations, "step %u: %u", (unsigned)i,
                     (unsigned)(after.allocations - before.allocations));
    }
    stoker_trainer_capture capture;
    stoker_trainer_get_capture(trainer, &capture);
    cr_assert_gt(capture.launched, 20); /* halves of passes as graphs */
    cr_assert_eq(capture.refused, 0);
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}

/* Peer access is enabled if the GPUs have it, and the table says which way values go. Enabled
 * before is as good. */
CleanTest(trainer_cuda_split, values_cross_by_peer_access_if_the_gpus_have_it)
{
    stoker_model *model = network();
    for (int way = 0; way < 3; way++) {
        char table[4096];
        begin();
        standin_cuda_peers(way != 0);
        for (int device = 0; way == 2 && device < 2; device++) {
            cr_assert_eq(cudaSetDevice(device), cudaSuccess);
            cr_assert_eq(cudaDeviceEnablePeerAccess(1 - device, 0), cudaSuccess);
        }
        stoker_trainer *trainer = trainer_of(model, split_of("cuda:0,cuda:1", 6));
        for (uint64_t i = 0; i < 3; i++)
            step(trainer, i, BATCH);
        cr_assert_eq(cudaPeekAtLastError(), cudaSuccess); /* nothing is left behind */
        (void)stoker_trainer_memory_table(trainer, table, sizeof(table));
        stoker_trainer_destroy(&trainer);
        const struct standin_cuda_peer_copies copies = standin_cuda_peer_copies();
        cr_assert_eq(copies.direct > 0, way != 0);
        cr_assert_eq(copies.through_host > 0, way == 0);
        cr_assert_not_null(strstr(table, way == 0 ? "values cross through host memory: these"
                                                  : "values cross directly, by peer access\n"),
                           "%s", table);
    }
    stoker_model_destroy(&model);
}

CleanTest(trainer_cuda_split, evaluations_and_predictions_are_those_of_ref)
{
    enum { BACKENDS = 5, SAMPLES = 13 /* in two parts */ };
    static const char *const backends[BACKENDS] = { "ref", "cuda", "cuda:0,cuda:1", "ref,cuda:1",
                                                    "cuda:1,ref" };
    stoker_model *model = network();
    float outputs[BACKENDS][SAMPLES * CLASSES];
    stoker_evaluation sums[BACKENDS] = { { 0 } };
    for (int b = 0; b < BACKENDS; b++) {
        begin();
        stoker_trainer_options options = split_of(backends[b], b < 2 ? 0 : 7);
        options.metrics_interval = 100;
        stoker_trainer *trainer = trainer_of(model, options);
        for (uint64_t i = 0; i < 4; i++) /* one of a group is under way */
            step(trainer, i, BATCH);
        const stoker_batch *batch = batch_of(999, SAMPLES);
        cr_assert_eq(stoker_trainer_evaluate(trainer, batch, &sums[b]), STOKER_OK);
        cr_assert_eq(stoker_trainer_predict(trainer, batch->images.data, SAMPLES, outputs[b]),
                     STOKER_OK);
        cr_assert_eq(sums[b].count, SAMPLES);
        cr_assert_eq(sums[b].correct, sums[0].correct);
        cr_assert_float_eq(sums[b].loss_sum, sums[0].loss_sum, 1e-4, "%s", backends[b]);
        for (int i = 0; i < SAMPLES * CLASSES; i++)
            cr_assert_float_eq(outputs[b][i], outputs[0][i], 4e-5F, "%s", backends[b]);
        stoker_trainer_destroy(&trainer);
    }
    stoker_model_destroy(&model);
}

/* Saved in the middle of a group by two, resumed by one, and the other way round; by a GPU and by a
 * CPU. */
CleanTest(trainer_cuda_split, checkpoints_move)
{
    static const struct {
        const char *backend;
        uint32_t save, load; /* where it is split */
    } ways[] = { { "cuda:1", 0, 0 },
                 { "ref", 0, 0 },
                 { "cuda", 0, 0 },
                 { "cuda:0,cuda:1", 6, 2 },
                 { "ref,cuda:0", 6, 2 } };
    enum { WAYS = sizeof(ways) / sizeof(ways[0]) };
    stoker_model *model = network();
    char path[] = "/tmp/stoker_cuda_split_XXXXXX";
    const int file = mkstemp(path);
    cr_assert_geq(file, 0);
    for (int from = 0; from < WAYS; from++) {
        const int to = (from + 1) % WAYS;
        begin();
        stoker_trainer *a = trainer_of(model, split_of(ways[from].backend, ways[from].save));
        stoker_trainer *b = trainer_of(model, split_of(ways[to].backend, ways[to].load));
        stoker_error error = { .code = 0 };
        for (uint64_t i = 0; i < 5; i++)
            step(a, i, BATCH);
        cr_assert_eq(stoker_trainer_save(a, path, NULL, 0, NULL), STOKER_OK);
        cr_assert_eq(stoker_trainer_load(b, path, NULL, 0, NULL, &error), STOKER_OK, "%s",
                     error.message);
        for (uint64_t i = 5; i < 9; i++) {
            step(a, i, BATCH);
            step(b, i, BATCH);
        }
        check_within(a, b, 4e-5, ways[from].backend);
        cr_assert_eq(stoker_trainer_updates(a), stoker_trainer_updates(b));
        stoker_trainer_destroy(&a);
        stoker_trainer_destroy(&b);
    }
    char line[120];
    (void)close(file);
    (void)snprintf(line, sizeof(line), "rm -f %s*", path);
    cr_assert_eq(system(line), 0);
    stoker_model_destroy(&model);
}

CleanTest(trainer_cuda_split, impossible_requests_are_reported)
{
    stoker_model *model = network();
    static const struct {
        const char *backend, *words;
        int code;
    } cases[] = {
        { "cuda:0,cuda:0", "one device is named twice", STOKER_EINVAL },
        { "cuda,cuda:0", "one device is named twice", STOKER_EINVAL },
        { "cuda:0,cuda:2", "there are 2 GPUs", STOKER_EDEVICE },
        { "cuda:0", "a second device is missing", STOKER_EINVAL },
        { "cuda:0,cuda:x", "\"cuda:0,cuda:x\"", STOKER_EDEVICE },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin();
        expect_refused(model, split_of(cases[i].backend, 6), cases[i].code, cases[i].words);
        cr_expect_eq(standin_cuda_live(), 0);
    }
    begin();
    stoker_trainer *trainer = trainer_of(model, split_of("cuda:0,ref", 6));
    stoker_batch batch = *batch_of(0, BATCH);
    batch.device = STOKER_DEVICE_CUDA;
    cr_expect_eq(stoker_trainer_step(trainer, &batch, NULL), STOKER_EMISMATCH);
    cr_expect_not_null(strstr(stoker_trainer_error(trainer)->message, "host memory"));
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}

/* Each device gives what its part of the table says. */
CleanTest(trainer_cuda_split, the_table_is_what_the_devices_give)
{
    stoker_model *model = network();
    struct stk_backend *devices[2] = { NULL };
    uint64_t before[2];
    char table[4096];
    begin();
    for (uint32_t d = 0; d < 2; d++) {
        cr_assert_eq(stk_backend_cuda.create(&devices[d],
                                             &(struct stk_backend_options){ .device = d }, NULL),
                     STOKER_OK);
        before[d] = stk_backend_cuda.device->free_bytes(devices[d]);
    }
    stoker_trainer *trainer = trainer_of(model, split_of("cuda:0,cuda:1", 6));
    for (uint32_t d = 0; d < 2; d++)
        cr_assert_eq(before[d] - stk_backend_cuda.device->free_bytes(devices[d]),
                     trainer->stage[d]->memory.peak, "cuda:%u", d);
    (void)stoker_trainer_memory_table(trainer, table, sizeof(table));
    cr_assert_not_null(strstr(table, "cuda:0, layers 1 to 6\n"));
    cr_assert_not_null(strstr(table, "cuda:1, layers 7 to 10\n"));
    stoker_trainer_destroy(&trainer);
    for (uint32_t d = 0; d < 2; d++)
        stk_backend_cuda.destroy(devices[d]);
    stoker_model_destroy(&model);
}

/* ---- failures -------------------------------------------------------------------- */

static stoker_trainer_options short_groups(const char *backend)
{
    stoker_trainer_options options = split_of(backend, 6);
    options.accumulate = 2;
    options.metrics_interval = 3;
    return options;
}

static void fail_each_call_of(const char *backend)
{
    const stoker_trainer_options options = short_groups(backend);
    fail_each_call(&options, 3, false);
}

Test(trainer_cuda_split, every_call_of_two_gpus_may_fail)
{
    fail_each_call_of("cuda:0,cuda:1");
}

Test(trainer_cuda_split, every_call_beside_a_host_may_fail)
{
    fail_each_call_of("ref,cuda:0");
    fail_each_call_of("cuda:1,ref");
}

CleanTest(trainer_cuda_split, every_allocation_may_fail)
{
    stoker_model *model = network();
    for (uint64_t nth = 1;; nth++) {
        begin();
        const int64_t live = stk_fault_live_bytes();
        const stoker_trainer_options options =
            short_groups(nth % 2 == 0 ? "cuda:0,ref" : "ref,cuda:0");
        stk_fault_arm(STK_FAULT_ANY, nth);
        const int rc = whole_run(model, &options, 3);
        const bool reached = stk_fault_disarm();
        cr_assert_eq(stk_fault_live_bytes(), live, "allocation %u", (unsigned)nth);
        cr_assert_eq(standin_cuda_live(), 0, "allocation %u", (unsigned)nth);
        if (!reached)
            break;
        cr_assert(rc == STOKER_ENOMEM || rc == STOKER_ETHREAD || rc == STOKER_EDEVICE, "%u: %d",
                  (unsigned)nth, rc);
    }
    stoker_model_destroy(&model);
}
