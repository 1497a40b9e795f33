/* trainer.c - a trainer comes to be, and goes.
 *
 *   options ──▶ settings ──▶ back end ──▶ plans ──▶ arenas, programs ──▶ first weights
 *   options.c   memory.c: batch size and recomputation
 *
 * step.c runs it, save.c and load.c write it down and go on. */
#include "trainer/trainer.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory.h"
#include "trainer/view.h"

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
    int rc = stk_view_blank(&parameters, trainer, trainer->arenas.parameters,
                            trainer->memory.parameters, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_view_blank(&statistics, trainer, trainer->arenas.statistics,
                        trainer->memory.statistics, error);
    if (rc != STOKER_OK)
        goto close;
    stk_model_initialize(trainer->model, trainer->settings.seed, parameters.floats,
                         statistics.floats);
    rc = stk_view_store(&parameters, trainer, error);
    if (rc == STOKER_OK)
        rc = stk_view_store(&statistics, trainer, error);
    if (rc == STOKER_OK && trainer->ema != NULL)
        rc = stk_arena_write(trainer, trainer->ema, parameters.floats, parameters.bytes, error);
    stk_view_close(&statistics);
close:
    stk_view_close(&parameters);
    return rc;
}

static int make_ready(stoker_trainer *trainer, stoker_error *error)
{
    const struct stk_backend_ops *ops = trainer->ops;
    int rc = ops->load(&trainer->train, trainer->backend, &trainer->train_plan, error);
    if (rc == STOKER_OK)
        rc = ops->load(&trainer->evaluation, trainer->backend, &trainer->evaluation_plan, error);
    if (rc != STOKER_OK)
        return rc;
    trainer->progress.seed = trainer->settings.seed;
    trainer->progress.loss_scale = trainer->settings.loss_scale;
    if (ops->begin != NULL)
        rc = ops->begin(trainer->backend, &trainer->training, error);
    if (rc == STOKER_OK)
        rc = stk_trainer_place(trainer, error);
    return rc == STOKER_OK ? first_weights(trainer, error) : rc;
}

static void describe_training(stoker_trainer *trainer)
{
    const struct stk_trainer_settings *settings = &trainer->settings;
    trainer->training = (struct stk_training){ .rule = &settings->rule,
                                               .schedule = &settings->schedule,
                                               .clip_norm = settings->clip_norm,
                                               .ema_decay = settings->ema_decay,
                                               .dynamic = settings->loss_scale.dynamic };
}

static void describe_needs(struct stk_backend_options *options, const stoker_model *model)
{
    for (uint32_t i = 0; i < model->layer_count; i++) {
        options->needs_convolutions |= model->layers[i].kind == STK_CONV2D;
        options->needs_linear |= model->layers[i].kind == STK_LINEAR;
    }
}

/* What was left to us is a GPU's, and the CPU's where none can be had, whatever the reason; but for what
 * the CPU cannot do. */
static int open_backend(stoker_trainer *trainer, stoker_error *error)
{
    const struct stk_backend_options *const options = &trainer->settings.backend;
    trainer->ops = trainer->settings.automatic ? &stk_backend_cuda : trainer->settings.ops;
    const bool other = trainer->settings.automatic && !options->benchmark &&
                       (trainer->settings.ops->storages >> options->storage & 1) != 0;
    int rc = trainer->ops->create(&trainer->backend, options, other ? NULL : error);
    if (rc != STOKER_OK && other) {
        trainer->ops = trainer->settings.ops;
        rc = trainer->ops->create(&trainer->backend, options, error);
    }
    assert((trainer->ops->upload == NULL) == (trainer->ops->download == NULL));
    return rc;
}

static int build(stoker_trainer *trainer, const stoker_trainer_options *options,
                 stoker_error *error)
{
    int rc = stk_trainer_settings_read(&trainer->settings, options, error);
    if (rc != STOKER_OK)
        return rc;
    describe_training(trainer);
    describe_needs(&trainer->settings.backend, trainer->model);
    rc = open_backend(trainer, error);
    if (rc == STOKER_OK)
        rc = stk_trainer_settle(trainer, error);
    if (rc == STOKER_OK)
        rc = take_arenas(trainer, error);
    if (rc == STOKER_OK)
        rc = make_ready(trainer, error);
    return rc;
}

/* Options of an older version are shorter: what they lack is 0, the default. */
static int read_struct(stoker_trainer_options *out, const stoker_trainer_options *given)
{
    const size_t oldest = sizeof(stoker_trainer_options);
    if (given == NULL || given->struct_size < oldest || given->struct_size > sizeof(*out))
        return STOKER_EINVAL;
    memset(out, 0, sizeof(*out));
    memcpy(out, given, given->struct_size);
    return STOKER_OK;
}

int stoker_trainer_create(stoker_trainer **out, const stoker_model *model,
                          const stoker_trainer_options *options)
{
    stoker_trainer_options given;
    if (out == NULL || model == NULL || read_struct(&given, options) != STOKER_OK)
        return STOKER_EINVAL;
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
    int rc = build(trainer, &given, given.error);
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
    if (t->backend != NULL) {
        t->ops->unload(t->evaluation);
        t->ops->unload(t->train);
        release_arenas(t);
        t->ops->destroy(t->backend);
    }
    stk_plan_free(&t->evaluation_plan);
    stk_plan_free(&t->train_plan);
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

const char *stoker_trainer_backend(const stoker_trainer *trainer)
{
    return trainer->ops->name;
}

uint32_t stoker_trainer_threads(const stoker_trainer *trainer)
{
    return trainer->ops->threads(trainer->backend);
}

struct CUstream_st *stoker_trainer_stream(const stoker_trainer *trainer)
{
    return trainer->ops->stream == NULL ? NULL : trainer->ops->stream(trainer->backend);
}
