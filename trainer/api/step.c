/* step.c - one pass, and the update after every few passes.
 *
 *   step   [clear] ──▶ forward, loss, backward ──▶ gradients + gradients     group_passes + 1
 *   step               forward, loss, backward ──▶ gradients + gradients     group_passes = accumulate
 *                         └─▶ finish: norm, finite? ──▶ clip, divide, update; group_passes = 0
 *   flush  the same finish, earlier
 *
 * If a device decides (backend.h), all this is queued on it, and reported when it is read
 * (metrics.c). With two devices (split.h) a pass may still be under way when step returns.
 *
 * With several ranks (peers.h) the gradients are those of all before the host decides, which each
 * then does alike.
 *
 * Gradients are summed with the loss scale only and divided at the end, when the samples of the
 * group are counted, so a short last group has the right mean as well. */
#include <math.h>
#include <string.h>

#include "loader/base/error.h"
#include "trainer/api/peers.h"
#include "trainer/backend/common/operands.h"

/* Avoids division by a zero norm, as in PyTorch's clip_grad_norm_. */
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

/* Finds the factor of the gradients: mean over the samples, loss scale removed, 2-norm at most
 * clip_norm. If the norm is not finite, neither is the factor. */
static int find_factor(stoker_trainer *trainer, stoker_step *out, double *factor, bool *finite)
{
    const struct stk_progress *progress = &trainer->progress;
    const double limit = trainer->settings.clip_norm;
    double squared = 0;
    *factor = 1 / ((double)progress->loss_scale.scale * (double)progress->group_samples);
    *finite = true;
    if (!wants_norm(trainer))
        return STOKER_OK;
    const int rc = trainer->runner->ops->norm(trainer->runner, &squared, finite, &trainer->error);
    const double norm = sqrt(squared) * *factor;
    out->gradient_norm = (float)norm;
    const double kept = limit / (norm + clip_epsilon);
    if (limit > 0 && !(kept >= 1))
        *factor *= kept;
    return rc;
}

/* The host's update of a stage. A device beside the host decides the same, from the same norm. */
static int update_stage(stoker_trainer *trainer, const struct stk_stage *stage, double factor,
                        const stoker_step *out)
{
    struct stk_update update = stk_stage_update_of(stage);
    if (stage->ops->update == NULL)
        return stage->ops->device->queue_update(stage->backend, &update,
                                                trainer->progress.group_samples, &trainer->error);
    update.step = trainer->progress.updates + 1;
    update.gradient_factor = (float)factor;
    update.learning_rate = (float)stk_schedule_rate(
        &trainer->settings.schedule,
        stk_optimizer_rate_of(update.rule->optimizer, trainer->progress.updates));
    if (out->updated)
        stage->ops->update(stage->backend, &update);
    return STOKER_OK;
}

/* The host decides on the update, and makes it. */
static int decide(stoker_trainer *trainer, stoker_step *out)
{
    bool finite;
    double factor;
    int rc = stk_trainer_sum_gradients(trainer, &trainer->error);
    if (rc == STOKER_OK)
        rc = find_factor(trainer, out, &factor, &finite);
    if (rc == STOKER_OK && trainer->progress.loss_scale.dynamic)
        rc = stk_trainer_agree_finite(trainer, &finite);
    if (rc != STOKER_OK)
        return rc;
    out->updated = stk_loss_scale_take(&trainer->progress.loss_scale, finite);
    out->skipped = !out->updated;
    for (uint32_t s = 0; s < trainer->stage_count && rc == STOKER_OK; s++)
        rc = update_stage(trainer, trainer->stage[s], factor, out);
    return rc;
}

/* early: the group has fewer passes than settings.accumulate. */
static int end_group(stoker_trainer *trainer, stoker_step *out, bool early)
{
    struct stk_progress *progress = &trainer->progress;
    struct stk_runner *const runner = trainer->runner;
    int rc = stk_trainer_drain(trainer, &trainer->error);
    if (rc == STOKER_OK && stk_trainer_device_decides(trainer)) {
        out->updated = true;
        rc = stk_trainer_report_device(
            trainer,
            runner->ops->queue_update(runner, progress->group_samples, early, &trainer->error),
            &trainer->error);
    } else if (rc == STOKER_OK) {
        rc = decide(trainer, out);
    }
    if (rc != STOKER_OK)
        return rc;
    for (uint32_t s = 0; s < trainer->stage_count; s++)
        if (trainer->stage[s]->half_weights_from != trainer->stage[s]->arenas.parameters)
            trainer->stage[s]->half_weights_from =
                NULL; /* rounded for an evaluation, and possibly overwritten */
    progress->updates += out->updated ? 1 : 0;
    progress->groups++;
    trainer->unread.groups++;
    progress->group_passes = 0;
    progress->group_batches = 0;
    progress->group_samples = 0;
    return STOKER_OK;
}

/* As in PyTorch: the variance of one number is 0, which trains nothing. */
static int check_batch_norm(stoker_trainer *trainer, uint64_t count)
{
    const stoker_model *const model = trainer->model;
    for (uint32_t i = 0; count == 1 && i < model->layer_count; i++) {
        const struct stk_layer *const layer = &model->layers[i];
        if (layer->kind == STK_BATCH_NORM && layer->in.h * layer->in.w == 1)
            return stk_refuse_option(
                &trainer->error, STOKER_EINVAL,
                "BatchNorm '%s' has one value per channel in a batch of 1 sample, and "
                "needs 2: drop such a batch (options.last DROP or PAD)",
                layer->name);
    }
    return STOKER_OK;
}

/* What can be wrong with this rank's batch, before anything changes. Labels of a batch on a device
 * are checked there. */
static int check_pass(stoker_trainer *trainer, const stoker_batch *batch)
{
    const uint32_t count = batch->count;
    if (count > trainer->settings.batch_size)
        return stk_refuse_option(&trainer->error, STOKER_EINVAL, "a batch of %u, batch_size is %u",
                                 count, trainer->settings.batch_size);
    if (count == 0)
        return STOKER_OK;
    int rc = stk_trainer_check_batch(trainer, batch);
    if (rc == STOKER_OK && !trainer->settings.sync_batch_norm)
        rc = check_batch_norm(trainer, count);
    if (rc == STOKER_OK && stk_trainer_has_peers(trainer) && batch->device != STOKER_DEVICE_CUDA) {
        const struct stk_pass pass = { .labels = batch->labels.data, .count = count };
        rc = stk_operands_check_labels(&trainer->stage[0]->train_halves[0], &pass, &trainer->error);
    }
    return rc;
}

static int train_pass(stoker_trainer *trainer, const stoker_batch *batch,
                      const struct stk_pass_share *share)
{
    struct stk_progress *progress = &trainer->progress;
    struct stk_pass pass = { .samples = batch->images.data,
                             .labels = batch->labels.data,
                             .on_device = batch->device == STOKER_DEVICE_CUDA,
                             .page_locked = batch->device == STOKER_DEVICE_CUDA_HOST,
                             .count = batch->count,
                             .samples_of_all = share->samples,
                             .shares = share->hash,
                             .forgets = share->forgets,
                             .first_sample = progress->group_samples + share->before,
                             .step = progress->groups,
                             .seed = progress->seed,
                             .gradient_scale = progress->loss_scale.scale };
    const struct stk_group_pass group = { .first = progress->group_passes == 0,
                                          .last = progress->group_passes + 1 >=
                                                  trainer->settings.accumulate,
                                          .samples = progress->group_samples + share->samples };
    const int rc = stk_trainer_run_pass(trainer, &pass, &group);
    if (rc != STOKER_OK)
        return rc;
    progress->passes += share->passes;
    progress->group_passes++;
    progress->group_batches += share->passes;
    progress->group_samples += share->samples;
    trainer->unread.passes++;
    return STOKER_OK;
}

/* One pass of all ranks, of which some may have no samples. */
static int train_together(stoker_trainer *trainer, const stoker_batch *batch,
                          const struct stk_pass_share *share, stoker_step *step)
{
    int rc = STOKER_OK;
    if (share->samples == 0)
        return rc;
    if (trainer->settings.sync_batch_norm)
        rc = check_batch_norm(trainer, share->samples);
    if (rc == STOKER_OK)
        rc = train_pass(trainer, batch, share);
    if (rc == STOKER_OK && trainer->progress.group_passes >= trainer->settings.accumulate)
        rc = end_group(trainer, step, false);
    if (rc == STOKER_OK && trainer->unread.passes >= trainer->settings.metrics_interval)
        rc = stk_trainer_report(trainer, step, &trainer->error);
    return rc;
}

int stoker_trainer_step(stoker_trainer *trainer, const stoker_batch *batch, stoker_step *out)
{
    if (trainer == NULL || batch == NULL)
        return STOKER_EINVAL;
    stoker_step step;
    struct stk_pass_share share;
    describe(trainer, &step);
    int rc = stk_trainer_reach_pass(trainer, check_pass(trainer, batch), batch->count, &share);
    if (rc == STOKER_OK)
        rc = train_together(trainer, batch, &share, &step);
    if (rc != STOKER_OK)
        return rc;
    if (out != NULL)
        *out = step;
    return STOKER_OK;
}

int stoker_trainer_flush(stoker_trainer *trainer, stoker_step *out)
{
    if (trainer == NULL)
        return STOKER_EINVAL;
    stoker_step step;
    int rc = STOKER_OK;
    describe(trainer, &step);
    if (trainer->progress.group_passes > 0)
        rc = end_group(trainer, &step, true);
    if (rc == STOKER_OK && trainer->unread.passes + trainer->unread.groups > 0)
        rc = stk_trainer_report(trainer, &step, &trainer->error);
    if (rc != STOKER_OK)
        return rc;
    if (out != NULL)
        *out = step;
    return STOKER_OK;
}
