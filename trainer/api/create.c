/* create.c - creates and destroys a trainer.
 *
 *   options ──▶ settings ──▶ one stage, or two on halves of the model ──▶ memory ──▶ runner ──▶ first weights
 *   options.c                open                          plan, allocate
 *
 * step.c trains, save.c and load.c write and read checkpoints. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "trainer/api/gather_arena.h"
#include "trainer/api/join.h"
#include "trainer/api/options.h"
#include "trainer/api/peers.h"
#include "trainer/model/cut.h"
#include "trainer/split/split.h"

static int first_weights(stoker_trainer *trainer, stoker_error *error)
{
    struct stk_view parameters;
    struct stk_view statistics;
    int rc = stk_gather_blank(&parameters, trainer, STK_ARENA_PARAMETERS, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_gather_blank(&statistics, trainer, STK_ARENA_STATISTICS, error);
    if (rc != STOKER_OK)
        goto close;
    stk_model_initialize(trainer->model, trainer->settings.seed, parameters.floats,
                         statistics.floats);
    rc = stk_gather_store(&parameters, trainer, STK_ARENA_PARAMETERS, error);
    if (rc == STOKER_OK)
        rc = stk_gather_store(&statistics, trainer, STK_ARENA_STATISTICS, error);
    if (rc == STOKER_OK && trainer->settings.ema_decay > 0)
        rc = stk_gather_write(trainer, STK_ARENA_EMA, parameters.floats, error);
    stk_view_close(&statistics);
close:
    stk_view_close(&parameters);
    return rc;
}

/* ---- stages ------------------------------------------------------------------------ */

static int open_stage(stoker_trainer *trainer, const stoker_model *model,
                      const struct stk_trainer_settings *settings, uint32_t slots,
                      stoker_error *error)
{
    struct stk_stage *const stage = stk_calloc(1, sizeof(*stage));
    if (stage == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "a stage");
    trainer->stage[trainer->stage_count++] = stage;
    return stk_stage_open(stage, model, settings, slots, error);
}

static int open_two_stages(stoker_trainer *trainer, stoker_error *error)
{
    const struct stk_trainer_settings *const settings = &trainer->settings;
    struct stk_trainer_settings second = *settings;
    second.ops = settings->second_ops;
    second.backend.device = settings->second_device;
    int rc = stk_model_cut(trainer->stage_model, trainer->model, settings->split, error);
    if (rc == STOKER_OK)
        rc = open_stage(trainer, trainer->stage_model[0], settings,
                        settings->accumulate > 1 ? 2 : 1, error);
    return rc == STOKER_OK ? open_stage(trainer, trainer->stage_model[1], &second, 1, error) : rc;
}

/* Both stages use the smaller of their largest batches. */
static int plan_memory(stoker_trainer *trainer, stoker_error *error)
{
    struct stk_trainer_settings asked = trainer->settings;
    int rc = STOKER_OK;
    for (uint32_t s = 0; s < trainer->stage_count && rc == STOKER_OK; s++) {
        rc = stk_stage_plan_memory(trainer->stage[s], &trainer->settings, error);
        if (rc == STOKER_OK && trainer->stage[s]->settings.batch_size < asked.batch_size)
            asked.batch_size = trainer->stage[s]->settings.batch_size;
    }
    for (uint32_t s = 0; s < trainer->stage_count && rc == STOKER_OK; s++)
        if (trainer->stage[s]->settings.batch_size > asked.batch_size)
            rc = stk_stage_plan_memory(trainer->stage[s], &asked, error);
    return rc;
}

static int build_stages(stoker_trainer *trainer, stoker_error *error)
{
    struct stk_stage *const *const stage = trainer->stage;
    int rc = trainer->settings.split == 0
                 ? open_stage(trainer, trainer->model, &trainer->settings, 1, error)
                 : open_two_stages(trainer, error);
    if (rc == STOKER_OK)
        rc = plan_memory(trainer, error);
    for (uint32_t s = 0; s < trainer->stage_count && rc == STOKER_OK; s++)
        rc = stk_stage_allocate(stage[s], error);
    if (rc != STOKER_OK)
        return rc;
    return trainer->settings.split == 0
               ? stk_one_stage_create(&trainer->runner, stage[0], error)
               : stk_split_create(&trainer->runner, stage[0], stage[1], error);
}

/* ---- sums over the stages ---------------------------------------------------------- */

static uint64_t sum(const stoker_trainer *trainer, size_t field)
{
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < trainer->stage_count; s++) {
        uint64_t value;
        memcpy(&value, (const char *)&trainer->stage[s]->memory + field, sizeof(value));
        bytes += value;
    }
    return bytes;
}

static void add_up_memory(stoker_trainer *trainer)
{
#define SUM(field) memory->field = sum(trainer, offsetof(stoker_trainer_memory, field))
    stoker_trainer_memory *const memory = &trainer->memory;
    *memory = trainer->stage[0]->memory;
    SUM(parameters);
    SUM(gradients);
    SUM(optimizer_state);
    SUM(statistics);
    SUM(activations);
    SUM(workspace);
    SUM(stored_parameters);
    SUM(peak);
    SUM(activations_plain);
    SUM(activations_float32);
#undef SUM
    for (uint32_t s = 1; s < trainer->stage_count; s++) {
        const stoker_trainer_memory *const other = &trainer->stage[s]->memory;
        if (other->checkpoint_segments > memory->checkpoint_segments)
            memory->checkpoint_segments = other->checkpoint_segments;
        memory->recompute_batch_norm |= other->recompute_batch_norm;
    }
}

static void name_backend(stoker_trainer *trainer)
{
    size_t length = 0;
    for (uint32_t s = 0; s < trainer->stage_count; s++) {
        char device[STK_STAGE_NAME_BYTES];
        stk_stage_name(trainer->stage[s], device);
        length += (size_t)snprintf(
            trainer->backend_name + length, sizeof(trainer->backend_name) - length, "%s%s",
            s == 0 ? "" : ",", trainer->stage_count == 1 ? trainer->stage[s]->ops->name : device);
    }
}

static int take_batch_statistics(stoker_trainer *trainer, stoker_error *error)
{
    const uint64_t floats = trainer->model->statistic_floats;
    if (!stk_trainer_has_peers(trainer) || floats == 0 || trainer->settings.ops->device != NULL)
        return STOKER_OK;
    trainer->batch_statistics = stk_calloc(floats, sizeof(*trainer->batch_statistics));
    return trainer->batch_statistics != NULL ? STOKER_OK
                                             : stk_refuse_option(error, STOKER_ENOMEM, "trainer");
}

static int build(stoker_trainer *trainer, const stoker_trainer_options *options,
                 stoker_error *error)
{
    int rc = stk_trainer_settings_read(&trainer->settings, options, error);
    if (rc == STOKER_OK)
        rc = stk_trainer_check_peers(trainer, error);
    if (rc == STOKER_OK)
        rc = take_batch_statistics(trainer, error);
    if (rc == STOKER_OK)
        rc = build_stages(trainer, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_gradient_sum_open(&trainer->gradient_sum, trainer->peers,
                               &trainer->stage[0]->train_halves[0], error);
    if (rc != STOKER_OK)
        return rc;
    add_up_memory(trainer);
    name_backend(trainer);
    trainer->settings.batch_size = trainer->stage[0]->settings.batch_size;
    trainer->settings.evaluation_batch_size = trainer->stage[0]->settings.evaluation_batch_size;
    if (!(trainer->settings.loss_scale.scale > 0))
        trainer->settings.loss_scale.scale = stk_loss_scale_start(trainer->settings.batch_size);
    trainer->state_count = stk_optimizer_state_arenas(&trainer->settings.rule);
    trainer->progress.seed = trainer->settings.seed;
    trainer->progress.loss_scale = trainer->settings.loss_scale;
    rc = stk_trainer_upload_state(trainer, error);
    return rc == STOKER_OK ? first_weights(trainer, error) : rc;
}

/* What needs no other rank. */
static int begin_trainer(stoker_trainer **out, const stoker_model *model, stoker_error *error)
{
    if (stoker_model_error(model) != NULL)
        return stk_refuse_option(error, STOKER_EINVAL, "the model: %s",
                                 stoker_model_error(model)->message);
    if (!model->closed)
        return stk_refuse_option(error, STOKER_EINVAL, "the model has no loss yet");
    stoker_trainer *trainer = stk_calloc(1, sizeof(*trainer));
    if (trainer == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "trainer");
    trainer->model = model;
    trainer->batches_before = stk_calloc(model->statistic_count / 2 + 1, sizeof(uint64_t));
    if (trainer->batches_before == NULL) {
        stoker_trainer_destroy(&trainer);
        return stk_refuse_option(error, STOKER_ENOMEM, "trainer");
    }
    *out = trainer;
    return STOKER_OK;
}

int stoker_trainer_create(stoker_trainer **out, const stoker_model *model,
                          const stoker_trainer_options *options, stoker_error *error)
{
    stoker_trainer_options given;
    stoker_trainer *trainer = NULL;
    if (out == NULL || model == NULL || options == NULL)
        return stk_refuse_option(error, STOKER_EINVAL, "trainer: %s is NULL",
                                 out == NULL     ? "out"
                                 : model == NULL ? "model"
                                                 : "options");
    int rc = stk_trainer_options_copy(&given, options, error);
    if (rc != STOKER_OK)
        return rc;
    rc = begin_trainer(&trainer, model, error);
    if (trainer != NULL)
        rc = stk_trainer_join(trainer, &given, error);
    if (trainer == NULL || trainer->peers == NULL) {
        stk_trainer_stay_away(&given, rc, error);
        stoker_trainer_destroy(&trainer);
        return rc;
    }
    if (rc == STOKER_OK)
        rc = stk_trainer_reach_created(trainer, build(trainer, &given, error), error);
    if (rc == STOKER_OK)
        rc = stk_trainer_join_devices(trainer, error);
    if (rc == STOKER_OK)
        rc = stk_trainer_share_state(trainer, error);
    if (rc != STOKER_OK)
        stoker_trainer_destroy(&trainer);
    else
        *out = trainer;
    return rc;
}

/* A sum that has not ended may still write to the gradients: then they stay, until the process
 * ends. */
static void leave_peers(stoker_trainer *trainer)
{
    struct stk_peers *const peers = trainer->peers;
    if (peers != NULL && peers->ops->finish(peers, NULL) != STOKER_OK && peers->holds_arrays &&
        trainer->stage_count > 0)
        trainer->stage[0]->arenas.gradients = NULL;
    stk_peers_leave(&trainer->peers);
}

void stoker_trainer_destroy(stoker_trainer **trainer)
{
    if (trainer == NULL || *trainer == NULL)
        return;
    stoker_trainer *const t = *trainer;
    if (t->device_sums == NULL)
        leave_peers(t);
    if (t->runner != NULL)
        t->runner->ops->destroy(t->runner);
    for (uint32_t s = t->stage_count; s-- > 0;) { /* graphs go before what they sum with */
        stk_stage_close(t->stage[s]);
        stk_free(t->stage[s]);
    }
    stk_trainer_leave(t);
    for (int h = 0; h < 2; h++)
        stoker_model_destroy(&t->stage_model[h]);
    stk_notes_free(&t->notes);
    stk_free(t->batches_before);
    stk_gradient_sum_close(&t->gradient_sum);
    stk_free(t->batch_statistics);
    stk_free(t);
    *trainer = NULL;
}
