/* test_split.c - a network over two devices: the numbers of one, the files of one, and what is
 * refused.
 *
 * `ref` beside `ref` gives the bits of one `ref`; `cpu` beside `ref` what rounding leaves.
 */
#include "support/trainer/plan_models.h"

#include "loader/base/fault.h"
#include "support/leaks.h"
#include "support/trainer/arena_difference.h"
#include "support/trainer/opened_trainer.h"

#include "support/trainer/trainer_golden.h"

enum { SIDE = 8, CHANNELS = 2, CLASSES = 5, BATCH = 6, PASSES = 13 };

/* 1 conv0, 2 bn0, 3 relu0, 4 dropout0, 5 pool, 6 conv1, 7 relu1, 8 conv2, 9 bn2, 10 sum with relu1,
 * 11 relu2, 12 flatten, 13 fc */
static stoker_model *network(void)
{
    stoker_model *model = stk_test_begin(SIDE, SIDE, CHANNELS);
    stk_test_conv(model, "conv0", 4, 1);
    (void)stoker_model_batch_norm(model, "bn0", NULL);
    (void)stoker_model_relu(model, "relu0");
    (void)stoker_model_dropout(model, "dropout0", 0.25F);
    (void)stoker_model_max_pool2d(model, "pool", &(stoker_pool2d){ .kernel = { 2, 2 } });
    stk_test_conv(model, "conv1", 6, 1);
    (void)stoker_model_relu(model, "relu1");
    stk_test_conv(model, "conv2", 6, 1);
    (void)stoker_model_batch_norm(model, "bn2", NULL);
    (void)stoker_model_add(model, "sum", "relu1");
    (void)stoker_model_relu(model, "relu2");
    (void)stoker_model_flatten(model, "flatten");
    (void)stoker_model_dropout(model, "dropout3", 0.5F);
    stk_test_linear(model, "fc", CLASSES);
    (void)stoker_model_softmax_cross_entropy(model, 0.1F);
    return stk_test_end(model);
}

enum { BEHIND_RELU0 = 3, BEHIND_POOL = 5, BEHIND_RELU1 = 7, BEHIND_FLATTEN = 12 };

static stoker_trainer_options options_of(const char *backend, uint32_t split)
{
    return stk_trainer_options(.backend = backend, .split = split, .threads = 2,
                               .batch_size = BATCH, .optimizer = STOKER_OPTIMIZER_ADAM,
                               .learning_rate = 0.01F, .accumulate = 3, .seed = 7);
}

struct data {
    float images[BATCH * SIDE * SIDE * CHANNELS];
    int64_t labels[BATCH];
    stoker_batch batch;
};

static stoker_batch *batch_of(struct data *data, uint64_t pass, uint32_t count)
{
    const uint64_t pixels = SIDE * SIDE * CHANNELS;
    for (uint64_t i = 0; i < count; i++) {
        golden_fill(data->images + i * pixels, pixels, 500 + pass * BATCH + i, 1.0F);
        data->labels[i] = (int64_t)((pass * BATCH + i) * 3 % CLASSES);
    }
    data->batch = golden_images(data->images, data->labels, count, SIDE, SIDE, CHANNELS);
    return &data->batch;
}

/* What steps report, pass by pass. */
struct told {
    stoker_step steps[PASSES + 1];
};

/* Passes [begin, end), the last one with fewer samples, and a flush. The batch is written over as
 * soon as a step returns. */
static void train(stoker_trainer *trainer, uint32_t begin, uint32_t end, struct told *told)
{
    struct data data;
    for (uint32_t pass = begin; pass < end; pass++) {
        const uint32_t count = pass + 1 == PASSES ? BATCH - 2 : BATCH;
        cr_assert_eq(stoker_trainer_step(trainer, batch_of(&data, pass, count), &told->steps[pass]),
                     STOKER_OK);
        memset(data.images, 0x7f, sizeof(data.images));
        memset(data.labels, 0x7f, sizeof(data.labels));
    }
    if (end == PASSES)
        cr_assert_eq(stoker_trainer_flush(trainer, &told->steps[PASSES]), STOKER_OK);
}

/* Sums of both halves are rounded once more than the sum of the whole. */
static bool near(float a, float b, double tolerance)
{
    if (!isfinite(a) || !isfinite(b))
        return isfinite(a) == isfinite(b);
    return fabs((double)a - (double)b) <= (tolerance + 1e-6) * (1 + fabs((double)a));
}

static bool same_steps(const struct told *a, const struct told *b, double tolerance)
{
    for (uint32_t i = 0; i <= PASSES; i++) {
        const stoker_step *x = &a->steps[i];
        const stoker_step *y = &b->steps[i];
        if (!(fabs(x->loss - y->loss) <= tolerance) || x->count != y->count ||
            x->updated != y->updated || x->skipped != y->skipped ||
            (tolerance == 0 && x->correct != y->correct) ||
            !(fabsf(x->loss_scale - y->loss_scale) <= 0) ||
            !near(x->gradient_norm, y->gradient_norm, tolerance))
            return false;
    }
    return true;
}

/* One device and two, side by side. */
static void compare(const stoker_model *model, stoker_trainer_options whole,
                    stoker_trainer_options split, double tolerance)
{
    static struct told ours;
    static struct told theirs;
    stoker_trainer *one = trainer_of(model, whole);
    stoker_trainer *two = trainer_of(model, split);
    train(one, 0, PASSES, &theirs);
    train(two, 0, PASSES, &ours);
    cr_expect(same_steps(&ours, &theirs, tolerance), "%s, split %u, accumulate %u", split.backend,
              split.split, split.accumulate);
    cr_expect_leq(difference(one, two, STK_ARENA_PARAMETERS), tolerance, "%s, split %u",
                  split.backend, split.split);
    cr_expect_leq(difference(one, two, STK_ARENA_STATISTICS), tolerance);
    cr_expect_leq(difference(one, two, STK_ARENA_STATE), tolerance);
    stoker_trainer_destroy(&one);
    stoker_trainer_destroy(&two);
}

static const uint32_t splits[] = { BEHIND_RELU0, BEHIND_POOL, BEHIND_RELU1, BEHIND_FLATTEN };

CleanTest(trainer_split, two_oracles_give_the_bits_of_one)
{
    static const uint32_t groups[] = { 1, 2, 3, 5 };
    stoker_model *model = network();
    for (size_t s = 0; s < sizeof(splits) / sizeof(splits[0]); s++)
        for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++) {
            stoker_trainer_options whole = options_of("ref", 0);
            stoker_trainer_options split = options_of("ref,ref", splits[s]);
            whole.accumulate = split.accumulate = groups[g];
            whole.metrics_interval = split.metrics_interval = s % 2 == 0 ? 1 : 4;
            compare(model, whole, split, 0);
        }
    stoker_model_destroy(&model);
}

CleanTest(trainer_split, two_back_ends_agree_within_rounding)
{
    stoker_model *model = network();
    for (size_t s = 0; s < sizeof(splits) / sizeof(splits[0]); s++) {
        stoker_trainer_options whole = options_of("ref", 0);
        whole.metrics_interval = 13;
        stoker_trainer_options split = whole;
        split.split = splits[s];
        split.backend = s % 2 == 0 ? "cpu,ref" : "ref,cpu";
        /* Adam's first steps follow
         * signs */
        whole.optimizer = split.optimizer = STOKER_OPTIMIZER_SGD;
        whole.momentum = split.momentum = 0.9F;
        compare(model, whole, split, 1e-4);
    }
    stoker_model_destroy(&model);
}

/* One norm over both halves; one moving average; recomputation in each half. */
CleanTest(trainer_split, what_spans_the_network_spans_both_halves)
{
    stoker_model *model = network();
    stoker_trainer_options whole = options_of("ref", 0);
    whole.clip_norm = 0.05F;
    whole.ema_decay = 0.9F;
    whole.weight_decay = 0.01F;
    whole.checkpoint_segments = 2;
    whole.recompute_batch_norm = true;
    stoker_trainer_options split = whole;
    split.backend = "ref,ref";
    split.split = BEHIND_RELU1;
    compare(model, whole, split, 1e-6);
    stoker_model_destroy(&model);
}

/* A scale that overflows in one half leaves the update out of both. */
CleanTest(trainer_split, sixteen_bits_and_their_loss_scale_are_those_of_one_device)
{
    stoker_model *model = network();
    static const stoker_dtype types[] = { STOKER_DTYPE_FLOAT16, STOKER_DTYPE_BFLOAT16 };
    for (int t = 0; t < 2; t++)
        for (uint32_t s = 0; s < 2; s++) {
            stoker_trainer_options whole = options_of("ref", 0);
            whole.precision = types[t];
            whole.accumulate = 2;
            whole.loss_scale = t == 0 ? 16777216.0F : STOKER_LOSS_SCALE_AUTO;
            whole.dynamic_loss_scale = t == 0;
            stoker_trainer_options split = whole;
            split.backend = "ref,ref";
            split.split = splits[2 * s];
            compare(model, whole, split, 0);
        }
    stoker_model_destroy(&model);
}

/* ---- forward only ---------------------------------------------------------------- */

CleanTest(trainer_split, evaluation_and_predictions_are_those_of_one_device)
{
    static struct told told;
    stoker_model *model = network();
    stoker_trainer_options whole = options_of("ref", 0);
    whole.ema_decay = 0.8F;
    whole.evaluation_batch_size = 4; /* so that a batch is taken in parts */
    whole.metrics_interval = 100;
    stoker_trainer_options split = whole;
    split.backend = "ref,ref";
    split.split = BEHIND_POOL;
    stoker_trainer *trainers[2] = { trainer_of(model, whole), trainer_of(model, split) };
    stoker_evaluation found[2] = { { 0 } };
    float outputs[2][BATCH * CLASSES];
    struct data data;
    for (int t = 0; t < 2; t++) {
        train(trainers[t], 0, 7, &told); /* one pass of a group is under way */
        cr_assert_eq(stoker_trainer_evaluate(trainers[t], batch_of(&data, 50, BATCH), &found[t]),
                     STOKER_OK);
        cr_assert_eq(stoker_trainer_predict(trainers[t], data.images, BATCH, outputs[t]),
                     STOKER_OK);
        train(trainers[t], 7, PASSES, &told);
    }
    cr_assert(fabs(found[0].loss_sum - found[1].loss_sum) <= 0);
    cr_assert_eq(found[0].correct, found[1].correct);
    cr_assert_eq(found[1].count, BATCH);
    cr_assert_eq(memcmp(outputs[0], outputs[1], sizeof(outputs[0])), 0);
    cr_assert(difference(trainers[0], trainers[1], STK_ARENA_PARAMETERS) <= 0);
    cr_assert(difference(trainers[0], trainers[1], STK_ARENA_EMA) <= 0);
    stoker_trainer_destroy(&trainers[0]);
    stoker_trainer_destroy(&trainers[1]);
    stoker_model_destroy(&model);
}

/* ---- files ----------------------------------------------------------------------- */

/* In the middle of a group, so that gradients are in it; one continues where the other stopped. */
CleanTest(trainer_split, checkpoints_are_those_of_one_device)
{
    static struct told told;
    stoker_model *model = network();
    stoker_trainer_options options[2] = { options_of("ref", 0),
                                          options_of("ref,ref", BEHIND_RELU0) };
    char folder[] = "/tmp/stoker_split_XXXXXX";
    char paths[2][64];
    stoker_trainer *trainers[2];
    cr_assert_not_null(mkdtemp(folder));
    for (int t = 0; t < 2; t++) {
        options[t].ema_decay = 0.9F;
        options[t].metrics_interval = 100;
        trainers[t] = trainer_of(model, options[t]);
        (void)snprintf(paths[t], sizeof(paths[t]), "%s/%d", folder, t);
        train(trainers[t], 0, 8, &told);
        cr_assert_eq(stoker_trainer_save(trainers[t], paths[t], NULL, 0, NULL), STOKER_OK);
    }
    for (int t = 0; t < 2; t++) {
        stoker_error error = { .code = 0 };
        stoker_trainer *other = trainer_of(model, options[1 - t]);
        cr_assert_eq(stoker_trainer_load(other, paths[t], NULL, 0, NULL, &error), STOKER_OK, "%s",
                     error.message);
        train(other, 8, PASSES, &told);
        train(trainers[t], 8, PASSES, &told);
        for (int which = STK_ARENA_PARAMETERS; which <= (int)STK_ARENA_STATE + 1; which++)
            cr_expect(difference(trainers[t], other, (enum stk_arena)which) <= 0, "%d", which);
        stoker_trainer_destroy(&other);
    }
    cr_assert(difference(trainers[0], trainers[1], STK_ARENA_PARAMETERS) <= 0);
    char line[160];
    (void)snprintf(line, sizeof(line), "rm -r %s", folder);
    cr_assert_eq(system(line), 0);
    stoker_trainer_destroy(&trainers[0]);
    stoker_trainer_destroy(&trainers[1]);
    stoker_model_destroy(&model);
}

/* ---- what is refused ------------------------------------------------------------- */

static void check_refused(const stoker_model *model, const char *backend, uint32_t split, int code,
                          const char *words)
{
    stoker_trainer *trainer = NULL;
    stoker_error error = { .code = 0 };
    stoker_trainer_options options = options_of(backend, split);
    cr_expect_eq(stoker_trainer_create(&trainer, model, &options, &error), code, "%s, %u", backend,
                 split);
    cr_expect_not_null(strstr(error.message, words), "\"%s\", not \"%s\"", error.message, words);
    cr_expect_null(trainer);
}

CleanTest(trainer_split, what_cannot_be_split_is_refused)
{
    stoker_model *model = network();
    check_refused(model, "ref,ref", 14, STOKER_EINVAL, "split = 14: a network of 14 layers");
    check_refused(model, "ref,ref", 99, STOKER_EINVAL, "split = 99");
    check_refused(model, "ref,ref", 8, STOKER_EINVAL, "reads 'relu1' before it");
    check_refused(model, "ref,ref", 9, STOKER_EINVAL, "residual block");
    check_refused(model, "ref", 3, STOKER_EINVAL, "a second device is missing");
    check_refused(model, NULL, 3, STOKER_EINVAL, "a second device is missing");
    check_refused(model, "ref,ref", 0, STOKER_EDEVICE, "\"ref,ref\"");
    check_refused(model, "cpu,cpu", 3, STOKER_EINVAL, "named twice");
    check_refused(model, "cpu,gpu", 3, STOKER_EDEVICE, "\"cpu,gpu\"");
    check_refused(model, "cpu,", 3, STOKER_EDEVICE, "\"cpu,\"");
    check_refused(model, "cpu,ref,ref", 3, STOKER_EDEVICE, "\"cpu,ref,ref\"");
    stoker_model_destroy(&model);

    model = stk_test_begin(SIDE, SIDE, CHANNELS);
    (void)stoker_model_flatten(model, "flatten");
    (void)stoker_model_relu(model, "relu");
    stk_test_linear(model, "fc", CLASSES);
    (void)stoker_model_dropout(model, "dropout", 0.5F);
    (void)stoker_model_softmax_cross_entropy(model, 0);
    check_refused(model, "ref,ref", 2, STOKER_EINVAL, "before it have nothing to train");
    check_refused(model, "ref,ref", 3, STOKER_EINVAL, "behind it have nothing to train");
    stoker_model_destroy(&model);
}

CleanTest(trainer_split, a_bad_label_changes_nothing)
{
    static struct told told;
    stoker_model *model = network();
    stoker_trainer_options options = options_of("ref,ref", BEHIND_POOL);
    options.metrics_interval = 100;
    stoker_trainer *ours = trainer_of(model, options);
    stoker_trainer *theirs = trainer_of(model, options);
    struct data data;
    train(ours, 0, 4, &told);
    train(theirs, 0, 4, &told);
    (void)batch_of(&data, 4, BATCH);
    data.labels[3] = CLASSES;
    cr_assert_eq(stoker_trainer_step(ours, &data.batch, NULL), STOKER_EINVAL);
    cr_assert_not_null(
        strstr(stoker_trainer_error(ours)->message, "label 5 of sample 3 in the batch"));
    train(ours, 4, PASSES, &told);
    train(theirs, 4, PASSES, &told);
    cr_assert(difference(ours, theirs, STK_ARENA_PARAMETERS) <= 0);
    cr_assert(difference(ours, theirs, STK_ARENA_STATISTICS) <= 0);
    stoker_trainer_destroy(&ours);
    stoker_trainer_destroy(&theirs);
    stoker_model_destroy(&model);
}

/* ---- memory ---------------------------------------------------------------------- */

CleanTest(trainer_split, the_table_shows_both_devices_and_all_that_is_taken)
{
    stoker_model *model = network();
    const int64_t before = stk_fault_live_bytes();
    stoker_trainer *trainer = trainer_of(model, options_of("ref,ref", BEHIND_RELU1));
    stoker_trainer_memory memory;
    char table[4096];
    stoker_trainer_get_memory(trainer, &memory);
    const size_t length = stoker_trainer_memory_table(trainer, table, sizeof(table));
    cr_assert_eq(length, strlen(table));
    cr_assert_not_null(strstr(table, "ref, layers 1 to 7\n"), "%s", table);
    cr_assert_not_null(strstr(table, "ref, layers 8 to 14\n"), "%s", table);
    cr_assert_str_eq(stoker_trainer_backend(trainer), "ref,ref");
    cr_assert_eq(stoker_trainer_threads(trainer), 2);
    cr_assert_eq(memory.parameters, model->parameter_floats * sizeof(float));
    cr_assert_eq(memory.batch_size, BATCH);
    const int64_t taken = stk_fault_live_bytes() - before;
    cr_assert_leq(memory.peak, (uint64_t)taken);
    cr_assert_geq(memory.peak + (64 << 10), (uint64_t)taken); /* and what trainer and plans are */
    cr_log_info("%s", table);
    stoker_trainer_destroy(&trainer);
    cr_assert_eq(stk_fault_live_bytes(), before);

    stoker_trainer_options options = options_of("ref,ref", BEHIND_RELU1);
    options.batch_size = STOKER_BATCH_SIZE_AUTO;
    options.memory_budget = 1 << 20;
    trainer = trainer_of(model, options);
    stoker_trainer_get_memory(trainer, &memory);
    cr_assert_gt(memory.batch_size, 8);
    cr_assert_leq(memory.peak, 2 << 20);
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
}

CleanTest(trainer_split, trimmed_memory_comes_back)
{
    static struct told told;
    stoker_model *model = network();
    stoker_trainer *trimmed = trainer_of(model, options_of("ref,ref", BEHIND_RELU1));
    stoker_trainer *plain = trainer_of(model, options_of("ref", 0));
    train(trimmed, 0, 4, &told); /* in the middle of a group: gradients stay */
    cr_assert_gt(stoker_trainer_trim(trimmed), 0);
    train(trimmed, 4, PASSES, &told);
    train(plain, 0, PASSES, &told);
    cr_assert(difference(trimmed, plain, STK_ARENA_PARAMETERS) <= 0);
    stoker_trainer_destroy(&trimmed);
    stoker_trainer_destroy(&plain);
    stoker_model_destroy(&model);
}

CleanTest(trainer_split, create_survives_each_failure)
{
    stoker_model *model = network();
    const int64_t before = stk_fault_live_bytes();
    stoker_trainer *trainer = NULL;
    for (uint64_t nth = 1; trainer == NULL; nth++) {
        cr_assert_lt(nth, 1000);
        stoker_error error = { .code = 0 };
        stoker_trainer_options options = options_of(nth % 2 == 0 ? "ref,cpu" : "cpu,ref", 5);
        stk_fault_arm(STK_FAULT_ANY, nth);
        const int rc = stoker_trainer_create(&trainer, model, &options, &error);
        const bool failed = stk_fault_disarm();
        cr_assert_eq(failed, rc != STOKER_OK);
        if (rc == STOKER_OK)
            break;
        cr_assert(rc == STOKER_ENOMEM || rc == STOKER_ETHREAD, "%d: %s", rc, error.message);
        cr_assert_neq(error.message[0], '\0');
        cr_assert_eq(stk_fault_live_bytes(), before, "failure %u", (unsigned)nth);
    }
    stoker_trainer_destroy(&trainer);
    cr_assert_eq(stk_fault_live_bytes(), before);
    stoker_model_destroy(&model);
}
