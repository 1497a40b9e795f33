/* test_memory.c - what a trainer takes: reported exactly, within a budget, and a tenth of it
 * for a thousand layers.
 */
#include "loader/base/struct_size.h"
#include "support/trainer/plan_models.h"

#include "loader/base/fault.h"
#include "support/leaks.h"
#include "trainer/api/options.h"
#include "trainer/api/trainer.h"

#include <math.h>

#include "support/trainer/trainer_golden.h"

enum { FEATURES = 16, BATCH = 256, DEEP = 1000 };

static stoker_model *chain(uint32_t layers)
{
    stoker_model *model = stk_test_begin(0, 0, FEATURES);
    char name[32];
    for (uint32_t i = 0; i < layers; i++) {
        (void)snprintf(name, sizeof(name), "fc%u", i);
        stk_test_linear(model, name, FEATURES);
        (void)snprintf(name, sizeof(name), "relu%u", i);
        if (i % 2 == 1)
            (void)stoker_model_batch_norm(model, name, NULL);
    }
    (void)stoker_model_mse(model);
    return stk_test_end(model);
}

static stoker_trainer_options chain_options(const char *backend)
{
    return stk_trainer_options(.backend = backend, .threads = 2, .batch_size = BATCH,
                               .learning_rate = 0.001F);
}

static void train(stoker_trainer *trainer, int steps)
{
    static float samples[BATCH * FEATURES];
    static float labels[BATCH * FEATURES];
    golden_fill(samples, BATCH * FEATURES, 1, 1.0F);
    golden_fill(labels, BATCH * FEATURES, 2, 1.0F);
    const stoker_batch batch = {
        .struct_size = sizeof(stoker_batch),
        .images = { .data = samples,
                    .dtype = STOKER_DTYPE_FLOAT32,
                    .rank = 2,
                    .shape = { BATCH, FEATURES } },
        .labels = { .data = labels,
                    .dtype = STOKER_DTYPE_FLOAT32,
                    .rank = 2,
                    .shape = { BATCH, FEATURES } },
        .count = BATCH,
    };
    for (int i = 0; i < steps; i++)
        cr_assert_eq(stoker_trainer_step(trainer, &batch, NULL), STOKER_OK);
}

CleanTest(trainer_step_memory, a_thousand_layers_in_a_tenth_of_the_activations)
{
    stoker_model *model = chain(DEEP);
    stoker_trainer_options options = chain_options("cpu");
    stoker_trainer *plain = NULL;
    stoker_trainer *segments = NULL;
    stoker_trainer_memory all;
    stoker_trainer_memory less;
    cr_assert_eq(stoker_trainer_create(&plain, model, &options, NULL), STOKER_OK);
    options.checkpoint_segments = 32;
    cr_assert_eq(stoker_trainer_create(&segments, model, &options, NULL), STOKER_OK);
    stoker_trainer_get_memory(plain, &all);
    stoker_trainer_get_memory(segments, &less);
    cr_log_info("1000 linear layers: %lu bytes of activations, %lu in %u segments",
                (unsigned long)all.activations, (unsigned long)less.activations,
                less.checkpoint_segments);
    cr_assert_eq(less.activations_plain, all.activations);
    cr_assert_leq(less.activations * 10, all.activations);
    train(plain, 2);
    train(segments, 2);
    cr_assert_eq(memcmp(plain->stage[0]->arenas.parameters, segments->stage[0]->arenas.parameters,
                        model->parameter_floats * sizeof(float)),
                 0);
    stoker_trainer_destroy(&plain);
    stoker_trainer_destroy(&segments);
    stoker_model_destroy(&model);
}

/* The classes add up to what was taken, with what is counted nowhere: plans and the trainer. */
CleanTest(trainer_step_memory, the_table_is_exact)
{
    stoker_model *model = chain(20);
    const char *const backends[] = { "cpu", "ref" };
    for (int b = 0; b < 2; b++) {
        stoker_trainer_options options = chain_options(backends[b]);
        options.optimizer = STOKER_OPTIMIZER_ADAM;
        options.ema_decay = 0.9F;
        stoker_trainer *trainer = NULL;
        stoker_trainer_memory memory;
        const int64_t before = stk_fault_live_bytes();
        cr_assert_eq(stoker_trainer_create(&trainer, model, &options, NULL), STOKER_OK);
        const int64_t taken = stk_fault_live_bytes() - before;
        stoker_trainer_get_memory(trainer, &memory);
        const uint64_t sum = memory.parameters + memory.gradients + memory.optimizer_state +
                             memory.statistics + memory.activations + memory.workspace;
        cr_assert_eq(sum, memory.peak);
        cr_assert_eq(memory.optimizer_state, 3 * memory.parameters);
        cr_assert_geq((uint64_t)taken, memory.peak);
        cr_assert_lt((uint64_t)taken, memory.peak + 65536, "%s: %ld taken, %lu reported",
                     backends[b], (long)taken, (unsigned long)memory.peak);

        char text[1024];
        char start[20];
        const size_t length = stoker_trainer_memory_table(trainer, text, sizeof(text));
        cr_assert_eq(length, strlen(text));
        cr_assert_eq(stoker_trainer_memory_table(trainer, start, sizeof(start)), length);
        cr_assert_eq(strncmp(start, text, sizeof(start) - 1), 0);
        cr_assert_eq(strlen(start), sizeof(start) - 1);
        cr_assert_eq(stoker_trainer_memory_table(trainer, NULL, 0), length);
        stoker_trainer_destroy(&trainer);
        cr_assert_eq(stk_fault_live_bytes(), before);
    }
    stoker_model_destroy(&model);
}

static uint64_t peak_of(const stoker_model *model, stoker_trainer_options options,
                        stoker_trainer_memory *memory)
{
    stoker_trainer *trainer = NULL;
    stoker_error error = { .code = 0 };
    cr_assert_eq(stoker_trainer_create(&trainer, model, &options, &error), STOKER_OK, "%s",
                 error.message);
    stoker_trainer_get_memory(trainer, memory);
    stoker_trainer_destroy(&trainer);
    return memory->peak;
}

CleanTest(trainer_step_memory, what_a_budget_chooses_fits)
{
    stoker_model *model = chain(100);
    stoker_trainer_memory memory;
    const uint64_t plain = peak_of(model, chain_options("ref"), &memory);
    const uint64_t activations = memory.activations;
    stoker_trainer_options options = chain_options("ref");
    for (uint64_t saved = 0; saved <= activations / 2; saved += activations / 8) {
        options.memory_budget = plain - saved;
        cr_assert_leq(peak_of(model, options, &memory), options.memory_budget);
        cr_assert_eq(memory.batch_size, BATCH);
        cr_assert_eq(memory.recompute_batch_norm || memory.checkpoint_segments > 1, saved > 0);
    }
    stoker_trainer *trainer = NULL;
    stoker_error error = { .code = 0 };
    options.memory_budget = plain - activations;
    cr_assert_eq(stoker_trainer_create(&trainer, model, &options, &error), STOKER_ELIMIT);
    cr_assert_eq(error.code, STOKER_ELIMIT);
    cr_assert_null(trainer);
    stoker_model_destroy(&model);
}

CleanTest(trainer_step_memory, one_more_than_the_largest_batch_does_not_fit)
{
    stoker_model *model = chain(10);
    const char *const backends[] = { "cpu", "ref" };
    for (int b = 0; b < 2; b++) {
        stoker_trainer_memory memory;
        stoker_trainer_options options = chain_options(backends[b]);
        const uint64_t budget = peak_of(model, options, &memory);
        options.batch_size = STOKER_BATCH_SIZE_AUTO;
        options.memory_budget = budget;
        cr_assert_leq(peak_of(model, options, &memory), budget);
        cr_assert_geq(memory.batch_size, BATCH);
        cr_assert_lt(memory.batch_size, STK_BATCH_MAX);
        options.batch_size = memory.batch_size + 1;
        options.memory_budget = STOKER_BYTES_AUTO;
        cr_assert_gt(peak_of(model, options, &memory), budget, "%s", backends[b]);
    }
    stoker_model_destroy(&model);
}

/* ---- options --------------------------------------------------------------------- */

enum { WRONG_OPTIONS = 33 };

static const char *spoil(stoker_trainer_options *o, int wrong)
{
    switch (wrong) {
#define WRONG(number, name, statement)                                                             \
    case number:                                                                                   \
        statement;                                                                                 \
        return name;
        WRONG(0, "batch_size", o->batch_size = 0)
        WRONG(1, "batch_size", o->batch_size = 65537)
        WRONG(2, "threads", o->threads = 257)
        WRONG(3, "evaluation_batch_size", o->evaluation_batch_size = 65537)
        WRONG(4, "accumulate", o->accumulate = (1U << 20) + 1)
        WRONG(5, "optimizer", o->optimizer = (stoker_optimizer)8)
        WRONG(6, "schedule", o->schedule = (stoker_schedule)4)
        WRONG(7, "checkpoint_segments", o->checkpoint_segments = 8193)
        WRONG(8, "learning_rate", o->learning_rate = -2)
        WRONG(9, "learning_rate", o->learning_rate = (float)NAN)
        WRONG(10, "momentum", o->momentum = 1)
        WRONG(11, "betas[0]", o->betas[0] = 1)
        WRONG(12, "betas[1]", o->betas[1] = -0.1F)
        WRONG(13, "rho", o->rho = 1)
        WRONG(14, "epsilon", o->epsilon = -0.5F)
        WRONG(15, "weight_decay", o->weight_decay = (float)INFINITY)
        WRONG(16, "nesterov", o->nesterov = true)
        WRONG(17, "total_updates", o->schedule = STOKER_SCHEDULE_ONE_CYCLE)
        WRONG(18, "schedule_steps", o->schedule = STOKER_SCHEDULE_STEP)
        WRONG(19, "clip_norm", o->clip_norm = -1)
        WRONG(20, "ema_decay", o->ema_decay = 1)
        WRONG(21, "loss_scale", o->loss_scale = -2)
        WRONG(22, "final_fraction", o->final_fraction = 1.5F)
        WRONG(23, "schedule_rise", o->schedule_rise = 1)
        WRONG(24, "schedule_start", o->schedule_start = 0)
        WRONG(25, "warmup_updates", o->total_updates = o->warmup_updates = 10)
        /* 0 is no way to ask for a default */
        WRONG(26, "threads", o->threads = 0)
        WRONG(27, "evaluation_batch_size", o->evaluation_batch_size = 0)
        WRONG(28, "accumulate", o->accumulate = 0)
        WRONG(29, "metrics_interval", o->metrics_interval = 0)
        WRONG(30, "clip_norm", o->clip_norm = 0)
        WRONG(31, "loss_scale", o->loss_scale = 0)
        WRONG(32, "memory_budget", o->memory_budget = 0)
#undef WRONG
    default:
        return NULL;
    }
}

CleanTest(trainer_step_memory, options_out_of_range_are_named)
{
    stoker_model *model = chain(2);
    for (int wrong = 0; wrong < WRONG_OPTIONS; wrong++) {
        stoker_trainer_options options = chain_options("cpu");
        stoker_trainer *trainer = NULL;
        stoker_error error = { .code = 0 };
        const char *name = spoil(&options, wrong);
        cr_assert_eq(stoker_trainer_create(&trainer, model, &options, &error), STOKER_EINVAL, "%s",
                     name);
        cr_assert_null(trainer);
        cr_assert_eq(strncmp(error.message, name, strlen(name)), 0, "%s: %s", name, error.message);
    }
    stoker_trainer_options options = chain_options("abacus");
    stoker_trainer *trainer = NULL;
    cr_assert_eq(stoker_trainer_create(&trainer, model, &options, NULL), STOKER_EDEVICE);
    stoker_model_destroy(&model);
}

static struct stk_trainer_settings settings_of(const stoker_trainer_options *options)
{
    struct stk_trainer_settings settings;
    stoker_error error;
    cr_assert_eq(stk_trainer_settings_read(&settings, options, &error), STOKER_OK, "%s",
                 error.message);
    return settings;
}

/* beta1 = 0 is common for GANs. */
Test(trainer_step_memory, a_zero_is_a_value_and_no_default)
{
    stoker_trainer_options options =
        stk_trainer_options(.backend = "ref", .optimizer = STOKER_OPTIMIZER_ADAM);
    struct stk_trainer_settings settings = settings_of(&options);
    cr_assert_float_eq(settings.rule.beta1, 0.9, 0);
    cr_assert_float_eq(settings.rule.beta2, 0.999, 0);
    cr_assert_float_eq(settings.rule.epsilon, 1e-8F, 0);
    cr_assert_float_eq(settings.schedule.learning_rate, 0.001F, 0);
    cr_assert_float_eq(settings.schedule.gamma, 0.1F, 0);
    cr_assert_float_eq(settings.schedule.rise, 0.3, 0);
    cr_assert_float_eq(settings.schedule.start, 25, 0);

    options.betas[0] = options.betas[1] = 0;
    options.epsilon = options.learning_rate = options.rho = 0;
    options.schedule_rise = options.schedule_gamma = 0;
    settings = settings_of(&options);
    cr_assert_float_eq(settings.rule.beta1, 0, 0);
    cr_assert_float_eq(settings.rule.beta2, 0, 0);
    cr_assert_float_eq(settings.rule.epsilon, 0, 0);
    cr_assert_float_eq(settings.schedule.learning_rate, 0, 0);
    cr_assert_float_eq(settings.schedule.gamma, 0, 0);
    cr_assert_float_eq(settings.schedule.rise, 0, 0);
    options.optimizer = STOKER_OPTIMIZER_ADADELTA;
    cr_assert_float_eq(settings_of(&options).rule.beta1, 0, 0);
    options.rho = STOKER_OPTIMIZER_DEFAULT;
    cr_assert_float_eq(settings_of(&options).rule.beta1, 0.9, 0);
}

/* Options as another version of the library has them. */
struct other_version {
    stoker_trainer_options ours;
    uint64_t added;
};

static int create_sized(const struct other_version *options, size_t size, stoker_error *error)
{
    stoker_model *model = chain(2);
    stoker_trainer *trainer = NULL;
    struct other_version given = *options;
    given.ours.struct_size = size;
    const int rc = stoker_trainer_create(&trainer, model, &given.ours, error);
    cr_assert_eq(trainer != NULL, rc == STOKER_OK);
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
    return rc;
}

CleanTest(trainer_step_memory, options_of_other_versions)
{
    const size_t ours = sizeof(stoker_trainer_options);
    stoker_error error = { .code = 0 };
    struct other_version options = { .ours = chain_options("cpu") };
    cr_assert_eq(create_sized(&options, ours + sizeof(options.added), &error), STOKER_OK);
    cr_assert_eq(
        create_sized(&options, STK_SIZE_UP_TO(stoker_trainer_options, sync_batch_norm), &error),
        STOKER_OK);
    cr_assert_eq(error.code, 0, "%s", error.message);
    options.added = 1;
    cr_assert_eq(create_sized(&options, ours + sizeof(options.added), &error), STOKER_EINVAL);
    cr_assert_eq(strncmp(error.message, "stoker_trainer_options: struct_size", 35), 0, "%s",
                 error.message);
    error.message[0] = '\0';
    cr_assert_eq(create_sized(&options, SIZE_MAX, &error), STOKER_EINVAL);
    cr_assert_eq(strncmp(error.message, "stoker_trainer_options: struct_size", 35), 0, "%s",
                 error.message);
    cr_assert_eq(create_sized(&options, 0, &error), STOKER_EINVAL);
}
