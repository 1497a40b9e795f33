/* create.c - a trainer comes to be, and goes.
 *
 *   options ──▶ settings ──▶ back end ──▶ plans ──▶ arenas, programs ──▶ first weights
 *   options.c   plan_memory.c: batch size and recomputation
 *
 * step.c runs it, save.c and load.c write it down and go on. */
#include "trainer/api/trainer.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory.h"
#include "trainer/api/gather_arena.h"
#include "trainer/split/split.h"

static const struct stk_place nowhere = STK_NOWHERE;

int stk_trainer_take(stoker_trainer *trainer, void *out, uint64_t bytes, const char *what,
                     stoker_error *error)
{
    void *memory = NULL;
    if (bytes > 0) {
        memory = bytes > SIZE_MAX ? NULL : trainer->ops->allocate(trainer->backend, (size_t)bytes);
        if (memory == NULL)
            return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPTIONS, &nowhere,
                                 "%llu bytes of %s", (unsigned long long)bytes, what);
    }
    memcpy(out, &memory, sizeof(memory));
    return STOKER_OK;
}

static int take_arenas(stoker_trainer *trainer, stoker_error *error)
{
    const uint64_t bytes = trainer->memory.parameters;
    struct stk_arenas *arenas = &trainer->arenas;
    int rc = stk_trainer_take(trainer, &arenas->parameters, bytes, "parameters", error);
    if (rc == STOKER_OK)
        rc = stk_trainer_take(trainer, &arenas->gradients, bytes, "gradients", error);
    if (rc == STOKER_OK)
        rc = stk_trainer_take(trainer, &arenas->statistics, trainer->memory.statistics,
                              "statistics", error);
    if (rc == STOKER_OK)
        rc = stk_trainer_take(trainer, &arenas->activations, trainer->memory.activations,
                              "activations", error);
    if (rc == STOKER_OK)
        rc = stk_trainer_take(trainer, &arenas->stored, trainer->memory.stored_parameters,
                              "16-bit parameters", error);
    trainer->state_count = stk_optimizer_state_arenas(&trainer->settings.rule);
    for (uint32_t i = 0; i < trainer->state_count && rc == STOKER_OK; i++)
        rc = stk_trainer_take(trainer, &trainer->state[i], bytes, "optimizer state", error);
    if (rc == STOKER_OK && trainer->settings.ema_decay > 0)
        rc = stk_trainer_take(trainer, &trainer->ema, bytes, "averaged weights", error);
    return rc;
}

static int first_weights(stoker_trainer *trainer, stoker_error *error)
{
    struct stk_view parameters;
    struct stk_view statistics;
    int rc = stk_whole_blank(&parameters, trainer, STK_ARENA_PARAMETERS, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_whole_blank(&statistics, trainer, STK_ARENA_STATISTICS, error);
    if (rc != STOKER_OK)
        goto close;
    stk_model_initialize(trainer->model, trainer->settings.seed, parameters.floats,
                         statistics.floats);
    rc = stk_whole_store(&parameters, trainer, STK_ARENA_PARAMETERS, error);
    if (rc == STOKER_OK)
        rc = stk_whole_store(&statistics, trainer, STK_ARENA_STATISTICS, error);
    if (rc == STOKER_OK && trainer->settings.ema_decay > 0)
        rc = stk_whole_write(trainer, STK_ARENA_EMA, parameters.floats, error);
    stk_view_close(&statistics);
close:
    stk_view_close(&parameters);
    return rc;
}

/* The second half of a plan has operations in a first stage only. */
static int load_programs(stoker_trainer *trainer, stoker_error *error)
{
    const struct stk_backend_ops *ops = trainer->ops;
    stk_plan_cut(&trainer->train_plan, trainer->train_halves);
    stk_plan_cut(&trainer->evaluation_plan, trainer->evaluation_halves);
    int rc = ops->load(&trainer->train, trainer->backend, &trainer->train_halves[0], error);
    if (rc == STOKER_OK && trainer->train_halves[1].op_count > 0)
        rc = ops->load(&trainer->backward, trainer->backend, &trainer->train_halves[1], error);
    if (rc == STOKER_OK)
        rc = ops->load(&trainer->evaluation, trainer->backend, &trainer->evaluation_halves[0],
                       error);
    return rc;
}

/* Before there is anything in the arenas. */
static int warm_up(const stoker_trainer *trainer, struct stk_program *program, stoker_error *error)
{
    const uint32_t count = trainer->settings.batch_size;
    const uint32_t last = trainer->settings.last_batch_size;
    if (trainer->ops->warm == NULL || program == NULL)
        return STOKER_OK;
    int rc = trainer->ops->warm(program, &trainer->arenas, count, error);
    if (rc == STOKER_OK && last > 0 && last < count)
        rc = trainer->ops->warm(program, &trainer->arenas, last, error);
    return rc;
}

int stk_trainer_furnish(stoker_trainer *trainer, stoker_error *error)
{
    int rc = take_arenas(trainer, error);
    if (rc == STOKER_OK)
        rc = load_programs(trainer, error);
    if (rc == STOKER_OK && trainer->ops->begin != NULL)
        rc = trainer->ops->begin(trainer->backend, &trainer->training, error);
    if (rc == STOKER_OK)
        rc = warm_up(trainer, trainer->train, error);
    return rc == STOKER_OK ? warm_up(trainer, trainer->backward, error) : rc;
}

static void describe_training(stoker_trainer *trainer)
{
    const struct stk_trainer_settings *settings = &trainer->settings;
    trainer->training = (struct stk_training){ .rule = &settings->rule,
                                               .schedule = &settings->schedule,
                                               .clip_norm = settings->clip_norm,
                                               .ema_decay = settings->ema_decay,
                                               .dynamic = settings->loss_scale.dynamic,
                                               .split = settings->split > 0 };
}

static void describe_needs(struct stk_backend_options *options, const stoker_model *model)
{
    for (uint32_t i = 0; i < model->layer_count; i++) {
        options->needs_convolutions |= model->layers[i].kind == STK_CONV2D;
        options->needs_linear |= model->layers[i].kind == STK_LINEAR;
    }
}

/* What only a GPU could do, and there is none; the words of the code are told once. */
static int needs_gpu(const char *lack, const struct stk_backend_options *asked, int rc,
                     const stoker_error *cause, stoker_error *error)
{
    char other[STK_LACK_BYTES];
    const char *const words = stoker_strerror(rc);
    size_t said = strlen(cause->message);
    if (said > strlen(words) + 2 && strcmp(cause->message + said - strlen(words), words) == 0)
        said -= strlen(words) + 2;
    return stk_error_set(error, rc, STOKER_STAGE_OPTIONS, &nowhere,
                         "%s (leave it out%s), and no GPU can be had: %.*s", lack,
                         stk_trainer_lacks(&stk_backend_ref, asked, other)
                             ? ""
                             : ", or choose back end ref, which is slow",
                         (int)said, cause->message);
}

/* What was left to us is a GPU's, and the CPU's where none can be had, whatever the reason; but for what
 * the CPU cannot do. */
static int open_backend(stoker_trainer *trainer, stoker_error *error)
{
    stoker_error cause = { .message = "" };
    char lack[STK_LACK_BYTES];
    const struct stk_backend_options *const options = &trainer->settings.backend;
    trainer->ops = trainer->settings.automatic ? &stk_backend_cuda : trainer->settings.ops;
    int rc = trainer->ops->create(&trainer->backend, options,
                                  trainer->settings.automatic ? &cause : error);
    if (rc != STOKER_OK && trainer->settings.automatic) {
        trainer->ops = trainer->settings.ops;
        if (stk_trainer_lacks(trainer->ops, options, lack))
            return needs_gpu(lack, options, rc, &cause, error);
        rc = trainer->ops->create(&trainer->backend, options, error);
    }
    assert((trainer->ops->upload == NULL) == (trainer->ops->download == NULL));
    return rc;
}

int stk_trainer_open(stoker_trainer *trainer, stoker_error *error)
{
    describe_training(trainer);
    describe_needs(&trainer->settings.backend, trainer->model);
    return open_backend(trainer, error);
}

static int build_on_one(stoker_trainer *trainer, stoker_error *error)
{
    trainer->slots = 1;
    int rc = stk_trainer_open(trainer, error);
    if (rc == STOKER_OK)
        rc = stk_trainer_settle(trainer, error);
    return rc == STOKER_OK ? stk_trainer_furnish(trainer, error) : rc;
}

static int build(stoker_trainer *trainer, const stoker_trainer_options *options,
                 stoker_error *error)
{
    int rc = stk_trainer_settings_read(&trainer->settings, options, error);
    if (rc == STOKER_OK)
        rc = trainer->settings.split == 0 ? build_on_one(trainer, error)
                                          : stk_split_create(trainer, error);
    if (rc != STOKER_OK)
        return rc;
    trainer->state_count = stk_optimizer_state_arenas(&trainer->settings.rule);
    trainer->progress.seed = trainer->settings.seed;
    trainer->progress.loss_scale = trainer->settings.loss_scale;
    rc = stk_trainer_place(trainer, error);
    return rc == STOKER_OK ? first_weights(trainer, error) : rc;
}

int stoker_trainer_create(stoker_trainer **out, const stoker_model *model,
                          const stoker_trainer_options *options)
{
    stoker_trainer_options given;
    if (out == NULL || model == NULL || options == NULL)
        return STOKER_EINVAL;
    int rc = stk_trainer_options_copy(&given, options);
    if (rc != STOKER_OK)
        return rc;
    if (stoker_model_error(model) != NULL)
        return stk_error_set(given.error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                             "the model: %s", stoker_model_error(model)->message);
    if (!model->closed)
        return stk_error_set(given.error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                             "the model has no loss yet");
    stoker_trainer *trainer = stk_calloc(1, sizeof(*trainer));
    if (trainer == NULL)
        return stk_error_set(given.error, STOKER_ENOMEM, STOKER_STAGE_OPTIONS, &nowhere, "trainer");
    trainer->model = model;
    trainer->batches_before = stk_calloc(model->statistic_count / 2 + 1, sizeof(uint64_t));
    if (trainer->batches_before == NULL) {
        stoker_trainer_destroy(&trainer);
        return stk_error_set(given.error, STOKER_ENOMEM, STOKER_STAGE_OPTIONS, &nowhere, "trainer");
    }
    rc = build(trainer, &given, given.error);
    if (rc != STOKER_OK)
        stoker_trainer_destroy(&trainer);
    else
        *out = trainer;
    return rc;
}

static void release_arenas(stoker_trainer *trainer)
{
    void *const arenas[] = {
        trainer->arenas.parameters,  trainer->arenas.gradients, trainer->arenas.statistics,
        trainer->arenas.activations, trainer->arenas.stored,    trainer->state[0],
        trainer->state[1],           trainer->state[2],         trainer->ema
    };
    _Static_assert(STK_STATE_ARENAS_MAX == 3, "each one is given back");
    for (size_t i = 0; i < sizeof(arenas) / sizeof(arenas[0]); i++)
        if (arenas[i] != NULL)
            trainer->ops->release(trainer->backend, arenas[i]);
}

void stoker_trainer_destroy(stoker_trainer **trainer)
{
    if (trainer == NULL || *trainer == NULL)
        return;
    stoker_trainer *const t = *trainer;
    stk_split_destroy(&t->split);
    if (t->backend != NULL) {
        t->ops->unload(t->evaluation);
        t->ops->unload(t->backward);
        t->ops->unload(t->train);
        release_arenas(t);
        t->ops->destroy(t->backend);
    }
    stk_plan_free(&t->evaluation_plan);
    stk_plan_free(&t->train_plan);
    stk_notes_free(&t->notes);
    stk_free(t->batches_before);
    stk_free(t);
    *trainer = NULL;
}

struct stk_shape stk_trainer_output_shape(const stoker_model *model)
{
    return model->layers[model->layer_count - 1].in;
}

const stoker_error *stoker_trainer_error(const stoker_trainer *trainer)
{
    return trainer->error.code == STOKER_OK ? NULL : &trainer->error;
}

uint64_t stoker_trainer_updates(const stoker_trainer *trainer)
{
    return trainer->progress.updates;
}

struct stk_stages stk_stages_of(const stoker_trainer *trainer)
{
    struct stk_stages stages = { .count = 1, .stage = { (stoker_trainer *)trainer } };
    if (trainer->split != NULL)
        stk_split_stages(trainer->split, &stages);
    return stages;
}

bool stk_trainer_device_decides(const stoker_trainer *trainer)
{
    const struct stk_stages stages = stk_stages_of(trainer);
    bool decides = true;
    for (uint32_t s = 0; s < stages.count; s++)
        decides = decides && stages.stage[s]->ops->step != NULL;
    return decides;
}

const char *stoker_trainer_backend(const stoker_trainer *trainer)
{
    return trainer->split != NULL ? stk_split_name(trainer->split) : trainer->ops->name;
}

uint32_t stoker_trainer_threads(const stoker_trainer *trainer)
{
    const struct stk_stages stages = stk_stages_of(trainer);
    uint32_t threads = 0;
    for (uint32_t s = 0; s < stages.count; s++)
        threads += stages.stage[s]->ops->threads(stages.stage[s]->backend);
    return threads;
}

struct CUstream_st *stoker_trainer_stream(const stoker_trainer *trainer)
{
    const stoker_trainer *first = stk_stages_of(trainer).stage[0];
    return first->ops->stream == NULL ? NULL : first->ops->stream(first->backend);
}
