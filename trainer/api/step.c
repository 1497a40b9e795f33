/* step.c - one pass, and what follows every few of them.
 *
 *   step   [clear] ──▶ forward, loss, backward ──▶ gradients + gradients     group_passes + 1
 *   step               forward, loss, backward ──▶ gradients + gradients     group_passes = accumulate
 *                         └─▶ finish: norm, finite? ──▶ clip, divide, update; group_passes = 0
 *   flush  the same finish, earlier
 *
 * Where a device decides (backend.h) all this is queued on it, and told when it is read (metrics.c). Over two
 * devices a pass runs through two stages (split.h), of which the last may still be under way when step returns.
 *
 * The loss is summed with the loss scale alone; what divides it is known at the end, when all samples
 * of the group are counted. So a short last group has the right mean as well. */
#include <math.h>
#include <string.h>

#include "loader/base/error.h"
#include "trainer/split/split.h"

static const struct stk_place nowhere = STK_NOWHERE;

/* Keeps a zero norm from dividing; PyTorch's clip_grad_norm_ has the same. */
static const double clip_epsilon = 1e-6;

static void describe(const stoker_trainer *trainer, stoker_step *out)
{
    memset(out, 0, sizeof(*out));
    out->learning_rate =
        (float)stk_schedule_rate(&trainer->settings.schedule, trainer->progress.updates);
    out->loss_scale = trainer->progress.loss_scale.scale;
}

static bool wants_norm(const stoker_trainer *trainer)
{
    return trainer->settings.clip_norm > 0 || trainer->progress.loss_scale.dynamic;
}

static int norm_squared(stoker_trainer *trainer, double *squared, bool *finite)
{
    if (trainer->split != NULL)
        return stk_split_norm(trainer, squared, finite);
    *squared = trainer->ops->norm_squared(trainer->backend, trainer->arenas.gradients,
                                          trainer->model->parameter_floats, finite);
    return STOKER_OK;
}

/* What gradients are multiplied by: the mean over the samples, without the loss scale, and at most
 * clip_norm long. A norm that is not finite makes the factor so: nothing is hidden. */
static int find_factor(stoker_trainer *trainer, stoker_step *out, double *factor, bool *finite)
{
    const struct stk_progress *progress = &trainer->progress;
    const double limit = trainer->settings.clip_norm;
    double squared = 0;
    *factor = 1 / ((double)progress->loss_scale.scale * (double)progress->group_samples);
    *finite = true;
    if (!wants_norm(trainer))
        return STOKER_OK;
    const int rc = norm_squared(trainer, &squared, finite);
    const double norm = sqrt(squared) * *factor;
    out->gradient_norm = (float)norm;
    const double kept = limit / (norm + clip_epsilon);
    if (limit > 0 && !(kept >= 1))
        *factor *= kept;
    return rc;
}

struct stk_update stk_trainer_update_of(const stoker_trainer *trainer)
{
    struct stk_update update = {
        .rule = &trainer->settings.rule,
        .parameters = trainer->arenas.parameters,
        .gradients = trainer->arenas.gradients,
        .ema = trainer->ema,
        .ema_decay = trainer->settings.ema_decay,
        .stored = trainer->arenas.stored,
        .storage = trainer->settings.backend.storage,
        .floats = trainer->model->parameter_floats,
        .step = trainer->progress.updates + 1,
    };
    memcpy(update.state, trainer->state, sizeof(update.state));
    return update;
}

/* A device beside the host decides the same, from the same norm. */
static int update_stage(stoker_trainer *trainer, const stoker_trainer *stage, double factor,
                        const stoker_step *out)
{
    struct stk_update update = stk_trainer_update_of(stage);
    if (stage->ops->update == NULL)
        return stage->ops->finish(stage->backend, &update, trainer->progress.group_samples,
                                  &trainer->error);
    update.step = trainer->progress.updates + 1;
    update.gradient_factor = (float)factor;
    update.learning_rate = (float)stk_schedule_rate(
        &trainer->settings.schedule,
        stk_optimizer_rate_of(update.rule->optimizer, trainer->progress.updates));
    if (out->updated)
        stage->ops->update(stage->backend, &update);
    return STOKER_OK;
}

/* The host decides whether this update is made, and makes it. */
static int decide(stoker_trainer *trainer, stoker_step *out)
{
    const struct stk_stages stages = stk_stages_of(trainer);
    bool finite;
    double factor;
    int rc = find_factor(trainer, out, &factor, &finite);
    if (rc != STOKER_OK)
        return rc;
    out->updated = stk_loss_scale_take(&trainer->progress.loss_scale, finite);
    out->skipped = !out->updated;
    for (uint32_t s = 0; s < stages.count && rc == STOKER_OK; s++)
        rc = update_stage(trainer, stages.stage[s], factor, out);
    return rc;
}

/* Both devices of two decide the same. */
static int queue_update(stoker_trainer *trainer, stoker_step *out)
{
    const struct stk_stages stages = stk_stages_of(trainer);
    double unused;
    bool finite;
    int rc = STOKER_OK;
    out->updated = true;
    if (trainer->split == NULL) /* it is behind the group's last pass */
        return rc;
    if (wants_norm(trainer))
        rc = norm_squared(trainer, &unused, &finite);
    for (uint32_t s = 0; s < stages.count && rc == STOKER_OK; s++)
        rc = update_stage(trainer, stages.stage[s], 1, out);
    return rc;
}

static int end_group(stoker_trainer *trainer, stoker_step *out)
{
    struct stk_progress *progress = &trainer->progress;
    const struct stk_stages stages = stk_stages_of(trainer);
    int rc = stk_split_drain(trainer, &trainer->error);
    if (rc == STOKER_OK)
        rc =
            stk_trainer_device_decides(trainer) ? queue_update(trainer, out) : decide(trainer, out);
    if (rc != STOKER_OK)
        return rc;
    for (uint32_t s = 0; s < stages.count; s++)
        if (stages.stage[s]->stored_from != stages.stage[s]->arenas.parameters)
            stages.stage[s]->stored_from = NULL; /* those of an evaluation, overwritten or not */
    progress->updates += out->updated ? 1 : 0;
    progress->groups++;
    trainer->unread.groups++;
    progress->group_passes = 0;
    progress->group_samples = 0;
    return STOKER_OK;
}

static int run_pass(stoker_trainer *trainer, const struct stk_pass *pass)
{
    struct stk_loss *const sum = &trainer->unread.loss;
    struct stk_loss loss;
    if (trainer->progress.group_passes == 0)
        trainer->ops->clear(trainer->backend, trainer->arenas.gradients,
                            trainer->model->parameter_floats);
    int rc = trainer->ops->run(trainer->train, &trainer->arenas, pass, &loss, &trainer->error);
    if (rc != STOKER_OK)
        return rc;
    sum->loss_sum += loss.loss_sum;
    sum->correct += loss.correct;
    sum->count += loss.count;
    return STOKER_OK;
}

/* With the update behind it, if it is the last of its group. */
static int queue_pass(stoker_trainer *trainer, const struct stk_pass *pass)
{
    const struct stk_progress *const progress = &trainer->progress;
    const struct stk_update update = stk_trainer_update_of(trainer);
    const struct stk_group_pass group = {
        .first = progress->group_passes == 0,
        .last = progress->group_passes + 1 >= trainer->settings.accumulate,
        .samples = progress->group_samples + pass->count,
        .update = &update,
    };
    return trainer->ops->step(trainer->train, &trainer->arenas, pass, &group, &trainer->error);
}

static int one_pass(stoker_trainer *trainer, const struct stk_pass *pass)
{
    int rc = stk_trainer_refill(trainer, &trainer->error);
    if (rc == STOKER_OK)
        rc = stk_trainer_store(trainer, trainer->arenas.parameters);
    if (rc == STOKER_OK)
        rc = trainer->ops->step == NULL ? run_pass(trainer, pass) : queue_pass(trainer, pass);
    return rc;
}

/* As in PyTorch: the variance of one number is 0, and nothing can be learnt from that. */
static int check_batch_norm(stoker_trainer *trainer, uint32_t count)
{
    const stoker_model *const model = trainer->model;
    for (uint32_t i = 0; count == 1 && i < model->layer_count; i++) {
        const struct stk_layer *const layer = &model->layers[i];
        if (layer->kind == STK_BATCH_NORM && layer->in.h * layer->in.w == 1)
            return stk_error_set(
                &trainer->error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                "BatchNorm '%s' has one value of each channel in a batch of 1 sample, "
                "and needs 2: leave such a batch out (drop_last)",
                layer->name);
    }
    return STOKER_OK;
}

static int train_pass(stoker_trainer *trainer, const stoker_batch *batch)
{
    struct stk_progress *progress = &trainer->progress;
    const struct stk_pass pass = { .samples = batch->images.data,
                                   .labels = batch->labels.data,
                                   .on_device = batch->device == STOKER_DEVICE_CUDA,
                                   .page_locked = batch->device == STOKER_DEVICE_CUDA_HOST,
                                   .count = batch->count,
                                   .first_sample = progress->group_samples,
                                   .step = progress->groups,
                                   .seed = progress->seed,
                                   .gradient_scale = progress->loss_scale.scale };
    const int rc =
        trainer->split == NULL ? one_pass(trainer, &pass) : stk_split_pass(trainer, &pass);
    if (rc != STOKER_OK)
        return rc;
    progress->passes++;
    progress->group_passes++;
    progress->group_samples += batch->count;
    trainer->unread.passes++;
    return STOKER_OK;
}

int stoker_trainer_step(stoker_trainer *trainer, const stoker_batch *batch, stoker_step *out)
{
    if (trainer == NULL || batch == NULL)
        return STOKER_EINVAL;
    stoker_step step;
    describe(trainer, &step);
    if (batch->count > trainer->settings.batch_size)
        return stk_error_set(&trainer->error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                             "a batch of %u, batch_size is %u", batch->count,
                             trainer->settings.batch_size);
    if (batch->count > 0) {
        int rc = stk_trainer_check_batch(trainer, batch);
        if (rc == STOKER_OK)
            rc = check_batch_norm(trainer, batch->count);
        if (rc == STOKER_OK)
            rc = train_pass(trainer, batch);
        if (rc == STOKER_OK && trainer->progress.group_passes >= trainer->settings.accumulate)
            rc = end_group(trainer, &step);
        if (rc == STOKER_OK && trainer->unread.passes >= trainer->settings.metrics_interval)
            rc = stk_trainer_tell(trainer, &step, &trainer->error);
        if (rc != STOKER_OK)
            return rc;
    }
    if (out != NULL)
        *out = step;
    return STOKER_OK;
}

static int flush_group(stoker_trainer *trainer, stoker_step *out)
{
    const struct stk_update update = stk_trainer_update_of(trainer);
    if (trainer->split == NULL && trainer->ops->finish != NULL) {
        int rc = trainer->ops->finish(trainer->backend, &update, trainer->progress.group_samples,
                                      &trainer->error);
        if (rc != STOKER_OK)
            return rc;
    }
    return end_group(trainer, out);
}

int stoker_trainer_flush(stoker_trainer *trainer, stoker_step *out)
{
    if (trainer == NULL)
        return STOKER_EINVAL;
    stoker_step step;
    int rc = STOKER_OK;
    describe(trainer, &step);
    if (trainer->progress.group_passes > 0)
        rc = flush_group(trainer, &step);
    if (rc == STOKER_OK && trainer->unread.passes + trainer->unread.groups > 0)
        rc = stk_trainer_tell(trainer, &step, &trainer->error);
    if (rc != STOKER_OK)
        return rc;
    if (out != NULL)
        *out = step;
    return STOKER_OK;
}
