/* metrics.c - reports losses and counts, every metrics_interval passes.
 *
 *   the host decides     run ─▶ loss ─▶ unread ──────────────┐
 *   the device decides   step ─▶ metrics on the device       ├─▶ report: stoker_step
 *                                  └─ sync: read ─▶ unread ──┘
 *
 * Only a read makes the host wait for a device. */
#include "loader/base/error.h"
#include "trainer/api/options.h"
#include "trainer/api/peers.h"

static void count_metrics(stoker_trainer *trainer, const struct stk_update_state *state,
                          const struct stk_step_metrics *metrics)
{
    struct stk_progress *const progress = &trainer->progress;
    struct stk_unread *const unread = &trainer->unread;
    if (stk_trainer_device_decides(trainer)) {
        progress->updates = state->updates;
        progress->loss_scale = state->loss_scale;
    }
    stk_loss_add(&unread->loss, &metrics->loss);
    unread->bad_labels += metrics->bad_labels;
}

static int read_device(stoker_trainer *trainer, struct stk_step_metrics *metrics,
                       stoker_error *error)
{
    struct stk_update_state state = { .loss_scale = trainer->progress.loss_scale };
    const struct stk_stage *const last =
        trainer->stage[trainer->stage_count - 1]; /* has the loss */
    const int rc = last->ops->device->read_state(last->backend, &state, metrics, error);
    if (rc == STOKER_OK)
        count_metrics(trainer, &state, metrics);
    return rc;
}

static bool has_loss_on_device(const stoker_trainer *trainer)
{
    return trainer->stage[trainer->stage_count - 1]->ops->device != NULL;
}

int stk_trainer_drain(stoker_trainer *trainer, stoker_error *error)
{
    return trainer->runner->ops->drain(trainer->runner, &trainer->unread.loss, error);
}

int stk_trainer_sync(stoker_trainer *trainer, stoker_error *error)
{
    struct stk_step_metrics metrics;
    const int rc = stk_trainer_drain(trainer, error);
    if (rc != STOKER_OK || !has_loss_on_device(trainer))
        return rc;
    return read_device(trainer, &metrics, error);
}

static int complain(const struct stk_unread *unread, stoker_error *error)
{
    return stk_refuse_option(
        error, STOKER_EINVAL,
        "%llu labels of the last %llu passes are out of range: these samples were "
        "ignored",
        (unsigned long long)unread->bad_labels, (unsigned long long)unread->passes);
}

int stk_trainer_report(stoker_trainer *trainer, stoker_step *out, stoker_error *error)
{
    struct stk_unread *const unread = &trainer->unread;
    int rc = stk_trainer_drain(trainer, error);
    if (rc == STOKER_OK)
        rc = stk_trainer_reach_read(trainer, error);
    if (rc == STOKER_OK && has_loss_on_device(trainer)) {
        struct stk_step_metrics metrics;
        const bool decides = stk_trainer_device_decides(trainer);
        rc = stk_trainer_report_device(trainer, read_device(trainer, &metrics, error), error);
        out->loss_scale = trainer->progress.loss_scale.scale;
        if (rc == STOKER_OK && decides && unread->groups > 0) {
            out->gradient_norm = metrics.gradient_norm;
            out->skipped = out->updated && !metrics.used;
            out->updated = out->updated && metrics.used;
        }
    }
    rc = stk_trainer_sum_loss(trainer, STK_SYNC_REPORT, rc, &unread->loss, &unread->bad_labels,
                              error);
    out->loss = unread->loss.count == 0 ? 0 : unread->loss.loss_sum / (double)unread->loss.count;
    out->correct = unread->loss.correct;
    out->count = unread->loss.count;
    if (rc == STOKER_OK && unread->bad_labels > 0)
        rc = complain(unread, error);
    *unread = (struct stk_unread){ 0 };
    return rc;
}

int stoker_trainer_set_metrics_interval(stoker_trainer *trainer, uint32_t passes)
{
    if (trainer == NULL || passes == 0 || passes > STK_METRICS_INTERVAL_MAX)
        return STOKER_EINVAL;
    trainer->settings.metrics_interval = passes;
    return STOKER_OK;
}

/* Sums over the stages, and the first reason. */
void stoker_trainer_get_capture(const stoker_trainer *trainer, stoker_trainer_capture *out)
{
    if (out == NULL)
        return;
    *out = (stoker_trainer_capture){ .reason = NULL };
    for (uint32_t s = 0; trainer != NULL && s < trainer->stage_count; s++) {
        const struct stk_stage *const stage = trainer->stage[s];
        if (stage->ops->device == NULL)
            continue;
        const struct stk_capture *const found = stage->ops->device->capture(stage->backend);
        out->launched += found->launched;
        out->queued += found->queued;
        out->refused += found->refused;
        if (out->reason == NULL && found->refused > 0)
            out->reason = found->reason.message;
        const struct stk_engines engines = stage->ops->device->engines(stage->backend);
        if (out->replaced == 0 && engines.graphs > 0)
            out->replacement = engines.first;
        out->replaced += engines.graphs;
        if (out->engines == NULL && engines.lines[0] != '\0')
            out->engines = engines.lines;
    }
}

/* After create, after a checkpoint was read, and as rank 0 says. */
int stk_trainer_upload_state(stoker_trainer *trainer, stoker_error *error)
{
    const struct stk_progress *const progress = &trainer->progress;
    const struct stk_update_state state = { .updates = progress->updates,
                                            .groups = progress->groups,
                                            .loss_scale = progress->loss_scale };
    int rc = STOKER_OK;
    trainer->unread = (struct stk_unread){ 0 };
    for (uint32_t s = 0; s < trainer->stage_count && rc == STOKER_OK; s++)
        if (trainer->stage[s]->ops->device != NULL)
            rc = trainer->stage[s]->ops->device->upload_state(trainer->stage[s]->backend, &state,
                                                              error);
    return rc;
}
