/* test_step.c - a trainer's steps: sums of passes, recomputation, clipping, averages, what
 * is refused, and what memory is taken.
 */
#include "support/trainer/plan_models.h"

#include "loader/base/fault.h"
#include "support/leaks.h"
#include "support/trainer/arena_difference.h"
#include "support/trainer/opened_trainer.h"
#include "trainer/api/trainer.h"

#include "support/trainer/trainer_golden.h"

enum { SIDE = 8, CLASSES = 5, BATCH = 8, STEPS = 4, SAMPLES_MAX = 64 };
static const char *const backends[] = { "cpu", "ref" };

/* Convolutions, BatchNorm, dropout: all that is made again, or must not be drawn again. */
static stoker_model *network(bool batch_norm, bool dropout)
{
    stoker_model *model = stk_test_begin(SIDE, SIDE, 2);
    char name[16];
    for (int i = 0; i < 4; i++) {
        (void)snprintf(name, sizeof(name), "conv%d", i);
        stk_test_conv(model, name, 8, 1);
        if (batch_norm) {
            (void)snprintf(name, sizeof(name), "bn%d", i);
            (void)stoker_model_batch_norm(model, name, NULL);
        }
        (void)snprintf(name, sizeof(name), "relu%d", i);
        (void)stoker_model_relu(model, name);
        (void)snprintf(name, sizeof(name), "dropout%d", i);
        if (dropout && i % 2 == 0)
            (void)stoker_model_dropout(model, name, 0.25F);
    }
    (void)stoker_model_max_pool2d(model, "pool", &(stoker_pool2d){ .kernel = { 2, 2 } });
    (void)stoker_model_flatten(model, "flatten");
    stk_test_linear(model, "fc", CLASSES);
    (void)stoker_model_softmax_cross_entropy(model, 0.1F);
    return stk_test_end(model);
}

static stoker_trainer_options small_options(const char *backend)
{
    return stk_trainer_options(.backend = backend, .threads = 2, .batch_size = BATCH,
                               .learning_rate = 0.05F, .momentum = 0.9F, .seed = 7);
}

/* Samples [first, first + count) of an endless set. */
struct data {
    float images[SAMPLES_MAX * SIDE * SIDE * 2];
    int64_t labels[SAMPLES_MAX];
    stoker_batch batch;
};

static const stoker_batch *batch_of(struct data *data, uint64_t first, uint32_t count)
{
    const uint64_t pixels = SIDE * SIDE * 2;
    for (uint64_t i = 0; i < count; i++) {
        golden_fill(data->images + i * pixels, pixels, 500 + first + i, 1.0F);
        data->labels[i] = (int64_t)((first + i) * 3 % CLASSES);
    }
    data->batch = golden_images(data->images, data->labels, count, SIDE, SIDE, 2);
    return &data->batch;
}

static void train(stoker_trainer *trainer, uint64_t first_step, uint64_t steps, uint32_t count)
{
    static struct data data;
    for (uint64_t step = first_step; step < first_step + steps; step++)
        cr_assert_eq(stoker_trainer_step(trainer, batch_of(&data, step * count, count), NULL),
                     STOKER_OK);
}

static bool same_weights(const stoker_trainer *a, const stoker_trainer *b)
{
    return difference(a, b, STK_ARENA_PARAMETERS) <= 0 &&
           difference(a, b, STK_ARENA_STATISTICS) <= 0;
}

CleanTest(trainer_step, no_trainer_is_no_crash)
{
    stoker_model *model = network(false, false);
    stoker_trainer *trainer = NULL;
    stoker_peer_group *group = NULL;
    const stoker_trainer_options options = STOKER_TRAINER_OPTIONS_INIT;
    const struct {
        stoker_trainer **out;
        const stoker_model *model;
        const stoker_trainer_options *options;
        const char *expected;
    } cases[] = { { NULL, model, &options, "trainer: out is NULL" },
                  { &trainer, NULL, &options, "trainer: model is NULL" },
                  { &trainer, model, NULL, "trainer: options is NULL" } };
    stoker_error error;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_assert_eq(stoker_trainer_create(cases[i].out, cases[i].model, cases[i].options, &error),
                     STOKER_EINVAL);
        cr_assert_str_eq(error.message, cases[i].expected);
    }
    cr_assert_eq(stoker_peer_group_create(NULL, 2, &error), STOKER_EINVAL);
    cr_assert_str_eq(error.message, "peer group: out is NULL");
    cr_assert_null(group);

    stoker_trainer_memory memory = { .peak = 1 };
    stoker_trainer_capture capture = { .queued = 1 };
    char text[8] = "x";
    stoker_trainer_get_memory(NULL, &memory);
    stoker_trainer_get_capture(NULL, &capture);
    cr_assert(memory.peak == 0 && capture.queued == 0);
    cr_assert_eq(stoker_trainer_memory_table(NULL, text, sizeof(text)), 0);
    cr_assert_str_eq(text, "");
    cr_assert(stoker_trainer_error(NULL) == NULL && stoker_trainer_backend(NULL) == NULL &&
              stoker_trainer_stream(NULL) == NULL);
    cr_assert(stoker_trainer_updates(NULL) == 0 && stoker_trainer_threads(NULL) == 0 &&
              stoker_trainer_rank(NULL) == 0 && stoker_trainer_world_size(NULL) == 0 &&
              stoker_trainer_device_index(NULL) == 0);
    stoker_model_destroy(&model);
}

/* PyTorch's ASGD works out its rate at the end of a step for the next one, so a schedule is one
 * update late. */
CleanTest(trainer_step, asgd_uses_the_rate_of_the_update_before)
{
    stoker_model *model = network(false, false);
    const stoker_optimizer optimizers[] = { STOKER_OPTIMIZER_ASGD, STOKER_OPTIMIZER_SGD };
    for (int i = 0; i < 2; i++) {
        stoker_trainer_options options = small_options("ref");
        options.momentum = 0;
        options.optimizer = optimizers[i];
        stoker_trainer *constant = trainer_of(model, options);
        options.schedule = STOKER_SCHEDULE_STEP;
        options.schedule_steps = 1;
        options.schedule_gamma = 0.5F;
        stoker_trainer *falling = trainer_of(model, options);
        train(constant, 0, 1, BATCH);
        train(falling, 0, 1, BATCH);
        cr_assert(same_weights(constant, falling));
        train(constant, 1, 1, BATCH);
        train(falling, 1, 1, BATCH);
        cr_assert_eq(same_weights(constant, falling), optimizers[i] == STOKER_OPTIMIZER_ASGD);
        train(constant, 2, 1, BATCH);
        train(falling, 2, 1, BATCH);
        cr_assert_not(same_weights(constant, falling));
        stoker_trainer_destroy(&constant);
        stoker_trainer_destroy(&falling);
    }
    stoker_model_destroy(&model);
}

/* As in PyTorch; two samples, or one image, are enough. */
CleanTest(trainer_step, batch_norm_refuses_one_value_of_a_channel)
{
    static const float samples[2 * 3] = { 1, 2, 3, 4, 5, 6 };
    static const float labels[2] = { 1, 2 };
    stoker_model *model = stk_test_begin(0, 0, 3);
    (void)stoker_model_batch_norm(model, "bn", NULL);
    stk_test_linear(model, "fc", 1);
    (void)stoker_model_mse(model);
    model = stk_test_end(model);
    stoker_trainer *trainer = trainer_of(model, small_options("cpu"));
    stoker_trainer *untouched = trainer_of(model, small_options("cpu"));
    stoker_batch batch = { .struct_size = sizeof(stoker_batch),
                           .images = { .data = (void *)samples,
                                       .dtype = STOKER_DTYPE_FLOAT32,
                                       .rank = 2,
                                       .shape = { 1, 3 } },
                           .labels = { .data = (void *)labels,
                                       .dtype = STOKER_DTYPE_FLOAT32,
                                       .rank = 2,
                                       .shape = { 1, 1 } },
                           .count = 1 };
    cr_assert_eq(stoker_trainer_step(trainer, &batch, NULL), STOKER_EINVAL);
    cr_assert_not_null(strstr(stoker_trainer_error(trainer)->message, "BatchNorm 'bn'"));
    cr_assert(same_weights(trainer, untouched));
    cr_assert_eq(trainer->progress.passes, 0);
    stoker_evaluation sum = { 0 };
    cr_assert_eq(stoker_trainer_evaluate(trainer, &batch, &sum), STOKER_OK);
    batch.images.shape[0] = batch.labels.shape[0] = batch.count = 2;
    cr_assert_eq(stoker_trainer_step(trainer, &batch, NULL), STOKER_OK);
    stoker_trainer_destroy(&trainer);
    stoker_trainer_destroy(&untouched);
    stoker_model_destroy(&model);
}

/* Dropout included: a sample's mask depends on its place in the step, not in the pass. */
CleanTest(trainer_step, passes_sum_to_one_large_batch)
{
    stoker_model *model = network(false, true);
    for (int b = 0; b < 2; b++)
        for (uint32_t passes = 2; passes <= 8; passes *= 2) {
            stoker_trainer_options options = small_options(backends[b]);
            stoker_trainer *whole = trainer_of(model, options);
            options.accumulate = passes;
            stoker_trainer *parts = trainer_of(model, options);
            train(whole, 0, STEPS, BATCH);
            train(parts, 0, STEPS * passes, BATCH / passes);
            cr_assert_eq(stoker_trainer_updates(parts), STEPS);
            cr_assert_lt(difference(whole, parts, STK_ARENA_PARAMETERS), 2e-6, "%s, %u passes",
                         backends[b], passes);
            stoker_trainer_destroy(&whole);
            stoker_trainer_destroy(&parts);
        }
    stoker_model_destroy(&model);
}

CleanTest(trainer_step, flush_uses_a_short_group_with_the_right_mean)
{
    stoker_model *model = network(false, true);
    stoker_trainer_options options = small_options("cpu");
    stoker_trainer *whole = trainer_of(model, options);
    options.accumulate = 4;
    stoker_trainer *parts = trainer_of(model, options);
    stoker_step step;
    train(whole, 0, 1, 6);
    train(parts, 0, 3, 2);
    cr_assert_eq(stoker_trainer_updates(parts), 0);
    cr_assert_eq(stoker_trainer_flush(parts, &step), STOKER_OK);
    cr_assert(step.updated);
    cr_assert_eq(stoker_trainer_updates(parts), 1);
    cr_assert_lt(difference(whole, parts, STK_ARENA_PARAMETERS), 1e-6);
    cr_assert_eq(stoker_trainer_flush(parts, &step), STOKER_OK);
    cr_assert(!step.updated);
    cr_assert_eq(stoker_trainer_updates(parts), 1);
    stoker_trainer_destroy(&whole);
    stoker_trainer_destroy(&parts);
    stoker_model_destroy(&model);
}

CleanTest(trainer_step, recomputation_changes_no_bit)
{
    stoker_model *model = network(true, true);
    for (int b = 0; b < 2; b++) {
        stoker_trainer *plain = trainer_of(model, small_options(backends[b]));
        train(plain, 0, STEPS, BATCH);
        for (uint32_t variant = 1; variant < 10; variant++) {
            stoker_trainer_options options = small_options(backends[b]);
            options.checkpoint_segments = variant / 2;
            options.recompute_batch_norm = variant % 2 == 1;
            stoker_trainer *other = trainer_of(model, options);
            train(other, 0, STEPS, BATCH);
            cr_assert(same_weights(plain, other), "%s, %u segments, BatchNorm %s", backends[b],
                      variant / 2, variant % 2 == 1 ? "recomputed" : "kept");
            stoker_trainer_destroy(&other);
        }
        stoker_trainer_destroy(&plain);
    }
    stoker_model_destroy(&model);
}

CleanTest(trainer_step, the_same_seed_gives_the_same_weights_and_another_does_not)
{
    stoker_model *model = network(true, true);
    for (int b = 0; b < 2; b++) {
        stoker_trainer_options options = small_options(backends[b]);
        stoker_trainer *first = trainer_of(model, options);
        stoker_trainer *second = trainer_of(model, options);
        options.seed++;
        stoker_trainer *other = trainer_of(model, options);
        train(first, 0, STEPS, BATCH);
        train(second, 0, STEPS, BATCH);
        train(other, 0, STEPS, BATCH);
        cr_assert(same_weights(first, second));
        cr_assert(!same_weights(first, other));
        stoker_trainer_destroy(&first);
        stoker_trainer_destroy(&second);
        stoker_trainer_destroy(&other);
    }
    stoker_model_destroy(&model);
}

/* Without momentum an update is learning rate x clipped gradient: its length shows it. */
CleanTest(trainer_step, clipping_bounds_the_update)
{
    static struct data data;
    stoker_model *model = network(false, false);
    stoker_trainer_options options = small_options("cpu");
    options.momentum = 0;
    options.learning_rate = 1;
    options.clip_norm = 0.01F;
    stoker_trainer *start = trainer_of(model, options);
    stoker_trainer *clipped = trainer_of(model, options);
    stoker_step step;
    cr_assert_eq(stoker_trainer_step(clipped, batch_of(&data, 0, BATCH), &step), STOKER_OK);
    double squares = 0;
    for (uint64_t i = 0; i < model->parameter_floats; i++)
        squares += pow((double)start->stage[0]->arenas.parameters[i] -
                           (double)clipped->stage[0]->arenas.parameters[i],
                       2);
    cr_assert_gt(step.gradient_norm, options.clip_norm);
    cr_assert_float_eq(sqrt(squares), 0.01, 1e-5);
    stoker_trainer_destroy(&start);
    stoker_trainer_destroy(&clipped);
    stoker_model_destroy(&model);
}

CleanTest(trainer_step, a_power_of_two_as_loss_scale_changes_no_bit)
{
    stoker_model *model = network(true, true);
    stoker_trainer_options options = small_options("cpu");
    options.clip_norm = 1;
    stoker_trainer *plain = trainer_of(model, options);
    options.loss_scale = 1024;
    stoker_trainer *scaled = trainer_of(model, options);
    train(plain, 0, STEPS, BATCH);
    train(scaled, 0, STEPS, BATCH);
    cr_assert(same_weights(plain, scaled));
    stoker_trainer_destroy(&plain);
    stoker_trainer_destroy(&scaled);
    stoker_model_destroy(&model);
}

CleanTest(trainer_step, overflow_is_skipped_with_a_dynamic_scale_and_visible_without)
{
    static struct data data;
    stoker_model *model = network(false, false);
    stoker_trainer_options options = small_options("cpu");
    options.dynamic_loss_scale = true;
    stoker_trainer *dynamic = trainer_of(model, options);
    stoker_trainer *start = trainer_of(model, options);
    options.dynamic_loss_scale = false;
    stoker_trainer *fixed = trainer_of(model, options);
    stoker_step step;
    (void)batch_of(&data, 0, BATCH);
    data.images[5] = NAN;
    cr_assert_eq(stoker_trainer_step(dynamic, &data.batch, &step), STOKER_OK);
    cr_assert(step.skipped && !step.updated);
    cr_assert_float_eq(step.loss_scale, 65536.0F / BATCH, 0);
    cr_assert(same_weights(dynamic, start));
    cr_assert_eq(stoker_trainer_updates(dynamic), 0);

    cr_assert_eq(stoker_trainer_step(dynamic, batch_of(&data, 0, BATCH), &step), STOKER_OK);
    cr_assert(step.updated && !step.skipped);
    cr_assert_float_eq(step.loss_scale, 32768.0F / BATCH, 0);
    cr_assert(!same_weights(dynamic, start));

    (void)batch_of(&data, 0, BATCH);
    data.images[5] = NAN;
    cr_assert_eq(stoker_trainer_step(fixed, &data.batch, &step), STOKER_OK);
    cr_assert(step.updated);
    cr_assert(isnan(step.loss));
    stoker_trainer_destroy(&dynamic);
    stoker_trainer_destroy(&start);
    stoker_trainer_destroy(&fixed);
    stoker_model_destroy(&model);
}

/* Evaluation in parts of any size gives the sums of the outputs, and changes nothing. */
CleanTest(trainer_step, evaluate_and_predict_agree_and_change_nothing)
{
    static struct data data;
    stoker_model *model = network(true, true);
    stoker_trainer *undisturbed = trainer_of(model, small_options("cpu"));
    train(undisturbed, 0, 2 * STEPS, BATCH);
    for (uint32_t part = 1; part <= 16; part += 5) {
        stoker_trainer_options options = small_options("cpu");
        options.evaluation_batch_size = part;
        stoker_trainer *trainer = trainer_of(model, options);
        float outputs[32][CLASSES];
        stoker_evaluation sum = { 0 };
        train(trainer, 0, STEPS, BATCH);
        const stoker_batch *batch = batch_of(&data, 1000, 32);
        cr_assert_eq(stoker_trainer_evaluate(trainer, batch, &sum), STOKER_OK);
        cr_assert_eq(stoker_trainer_predict(trainer, data.images, 32, &outputs[0][0]), STOKER_OK);
        uint64_t correct = 0;
        for (int i = 0; i < 32; i++) {
            int best = 0;
            for (int c = 1; c < CLASSES; c++)
                best = outputs[i][c] > outputs[i][best] ? c : best;
            correct += best == data.labels[i];
        }
        cr_assert_eq(sum.count, 32);
        cr_assert_eq(sum.correct, correct);
        stoker_batch padded = *batch; /* its last samples are evaluated elsewhere in the epoch */
        stoker_evaluation rest = { 0 };
        padded.padded = 5;
        cr_assert_eq(stoker_trainer_evaluate(trainer, &padded, &rest), STOKER_OK);
        cr_assert_eq(rest.count, 27);
        padded.padded = 32;
        cr_assert_eq(stoker_trainer_evaluate(trainer, &padded, &rest), STOKER_OK);
        cr_assert_eq(rest.count, 27);
        train(trainer, STEPS, STEPS, BATCH);
        cr_assert(same_weights(trainer, undisturbed));
        stoker_trainer_destroy(&trainer);
    }
    stoker_trainer_destroy(&undisturbed);
    stoker_model_destroy(&model);
}

CleanTest(trainer_step, the_average_of_the_weights_is_what_is_evaluated)
{
    static struct data data;
    stoker_model *model = network(false, false);
    stoker_trainer_options options = small_options("cpu");
    stoker_trainer *plain = trainer_of(model, options);
    options.ema_decay = 0.9F;
    stoker_trainer *averaged = trainer_of(model, options);
    train(plain, 0, STEPS, BATCH);
    train(averaged, 0, STEPS, BATCH);
    cr_assert(same_weights(plain, averaged));
    float from_plain[CLASSES];
    float from_average[CLASSES];
    (void)batch_of(&data, 1000, 1);
    cr_assert_eq(stoker_trainer_predict(averaged, data.images, 1, from_average), STOKER_OK);
    memcpy(plain->stage[0]->arenas.parameters, averaged->stage[0]->ema, plain->memory.parameters);
    cr_assert_eq(stoker_trainer_predict(plain, data.images, 1, from_plain), STOKER_OK);
    cr_assert_eq(memcmp(from_plain, from_average, sizeof(from_plain)), 0);
    cr_assert(!same_weights(plain, averaged));
    stoker_trainer_destroy(&plain);
    stoker_trainer_destroy(&averaged);
    stoker_model_destroy(&model);
}

/* Each update has the rate that the schedule gives it, and the one reported is the one used:
 * without momentum a step is as long as its rate says. */
CleanTest(trainer_step, each_update_has_its_rate)
{
    enum { DROP_EVERY = 2, UPDATES = 6 };
    for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
        static struct data data;
        stoker_model *model = network(false, false);
        stoker_trainer_options options = small_options(backends[i]);
        options.momentum = 0;
        stoker_trainer *constant = trainer_of(model, options);
        options.schedule = STOKER_SCHEDULE_STEP;
        options.schedule_steps = DROP_EVERY;
        options.schedule_gamma = 0.5F;
        stoker_trainer *dropping = trainer_of(model, options);
        for (int update = 0; update < UPDATES; update++) {
            stoker_step step;
            memcpy(constant->stage[0]->arenas.parameters, dropping->stage[0]->arenas.parameters,
                   dropping->memory.parameters);
            const float before = dropping->stage[0]->arenas.parameters[0];
            cr_assert_eq(stoker_trainer_step(constant, batch_of(&data, 0, BATCH), NULL), STOKER_OK);
            cr_assert_eq(stoker_trainer_step(dropping, batch_of(&data, 0, BATCH), &step),
                         STOKER_OK);
            const double share = ldexp(1, -(update / DROP_EVERY));
            cr_assert_float_eq(step.learning_rate, 0.05 * share, 1e-8, "update %d", update);
            const double whole = (double)constant->stage[0]->arenas.parameters[0] - (double)before;
            const double part = (double)dropping->stage[0]->arenas.parameters[0] - (double)before;
            cr_assert_gt(fabs(whole), 0);
            cr_assert_float_eq(part / whole, share, 1e-3, "%s, update %d: %g", backends[i], update,
                               part / whole);
        }
        stoker_trainer_destroy(&constant);
        stoker_trainer_destroy(&dropping);
        stoker_model_destroy(&model);
    }
}

CleanTest(trainer_step, batches_that_do_not_fit_change_nothing)
{
    static struct data data;
    stoker_model *model = network(true, true);
    stoker_trainer *trainer = trainer_of(model, small_options("cpu"));
    stoker_trainer *start = trainer_of(model, small_options("cpu"));
    for (int wrong = 0; wrong < 11; wrong++) {
        stoker_batch batch = *batch_of(&data, 0, BATCH);
        int expected = STOKER_EMISMATCH;
        switch (wrong) {
        case 0:
            batch.images.dtype = STOKER_DTYPE_UINT8;
            break;
        case 1:
            batch.images.shape[3] = 1;
            break;
        case 2:
            batch.images.rank = 5;
            break;
        case 3:
            batch.labels.dtype = STOKER_DTYPE_FLOAT32;
            break;
        case 4:
            batch.labels.data = NULL;
            break;
        case 5:
            batch.count = BATCH - 1;
            break;
        case 6:
            batch.count = BATCH + 1;
            expected = STOKER_EINVAL;
            break;
        case 7:
            data.labels[3] = CLASSES;
            expected = STOKER_EINVAL;
            break;
        case 8:
            batch.images.shape[0] = BATCH - 1;
            break;
        case 9:
            batch.labels.shape[0] = BATCH - 1;
            break;
        default:
            batch.images.data = NULL;
            expected = STOKER_EINVAL;
            break;
        }
        stoker_step step = { .count = 99 };
        cr_assert_eq(stoker_trainer_step(trainer, &batch, &step), expected, "case %d", wrong);
        cr_assert_eq(step.count, 99);
        cr_assert_not_null(stoker_trainer_error(trainer));
        cr_assert_eq(stoker_trainer_error(trainer)->code, expected);
        cr_assert(same_weights(trainer, start));
    }
    stoker_step step;
    cr_assert_eq(stoker_trainer_step(trainer, batch_of(&data, 0, 0), &step), STOKER_OK);
    cr_assert(!step.updated);
    cr_assert(same_weights(trainer, start));
    train(trainer, 0, STEPS, BATCH);
    train(start, 0, STEPS, BATCH);
    cr_assert(same_weights(trainer, start));
    stoker_trainer_destroy(&trainer);
    stoker_trainer_destroy(&start);
    stoker_model_destroy(&model);
}

CleanTest(trainer_step, no_memory_is_taken_after_create)
{
    stoker_model *model = network(true, true);
    for (int b = 0; b < 2; b++) {
        stoker_trainer_options options = small_options(backends[b]);
        options.accumulate = 2;
        stoker_trainer *trainer = trainer_of(model, options);
        train(trainer, 0, 1, BATCH);
        const uint64_t before = stk_fault_allocations();
        train(trainer, 1, STEPS, BATCH);
        cr_assert_eq(stoker_trainer_flush(trainer, NULL), STOKER_OK);
        cr_assert_eq(stk_fault_allocations(), before, "%s", backends[b]);
        stoker_trainer_destroy(&trainer);
    }
    stoker_model_destroy(&model);
}
