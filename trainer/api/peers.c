/* peers.c - see peers.h. */
#include "trainer/api/peers.h"

#include <math.h>

/* ---- sync points -------------------------------------------------------------------- */

int stk_trainer_reach(stoker_trainer *trainer, enum stk_sync_point sync_point, int rc,
                      stoker_error *error)
{
    const struct stk_word word = stk_peers_word(sync_point, rc, error);
    if (!stk_trainer_has_peers(trainer))
        return rc;
    return stk_peers_agree(trainer->peers, &word, NULL, error);
}

int stk_trainer_report_device(stoker_trainer *trainer, int rc, const stoker_error *error)
{
    const struct stk_word word = stk_peers_word(STK_SYNC_ANY, rc, error);
    if (trainer->device_sums != NULL && (rc == STOKER_EDEVICE || rc == STOKER_ENOMEM))
        trainer->peers->ops->failed(trainer->peers, rc, word.text);
    return rc;
}

/* What a pass of these samples needs of a device, so that its failure is known before the others
 * sum with it. */
static int prepare_device(stoker_trainer *trainer, uint32_t count, bool *forgets)
{
    struct stk_stage *const stage = trainer->stage[0];
    if (stage->ops->device == NULL)
        return STOKER_OK;
    const int rc = stk_stage_refill(stage, &trainer->error);
    return rc == STOKER_OK
               ? stage->ops->device->prepare_step(stage->train, count, forgets, &trainer->error)
               : rc;
}

int stk_trainer_reach_pass(stoker_trainer *trainer, int rc, uint32_t count,
                           struct stk_pass_share *out)
{
    const struct stk_peers *const peers = trainer->peers;
    const struct stk_word *all = NULL;
    bool forgets = false;
    *out = (struct stk_pass_share){ .samples = count, .passes = count > 0 ? 1 : 0 };
    if (!stk_trainer_has_peers(trainer))
        return rc;
    if (rc == STOKER_OK)
        rc = prepare_device(trainer, count, &forgets);
    struct stk_word word = stk_peers_word(STK_SYNC_PASS, rc, &trainer->error);
    word.number[0] = count;
    word.number[1] = forgets ? 1 : 0;
    const int met = stk_peers_agree(trainer->peers, &word, &all, &trainer->error);
    if (met != STOKER_OK)
        return met;
    *out = (struct stk_pass_share){ .hash = STK_HASH_START };
    for (uint32_t r = 0; r < peers->world_size; r++) {
        out->before += r < peers->rank ? all[r].number[0] : 0;
        out->samples += all[r].number[0];
        out->passes += all[r].number[0] > 0 ? 1 : 0;
        out->hash = stk_hash_add(out->hash, &all[r].number[0], sizeof(all[r].number[0]));
        out->forgets = out->forgets || all[r].number[1] != 0;
    }
    return STOKER_OK;
}

int stoker_trainer_any(stoker_trainer *trainer, bool *flag)
{
    const struct stk_word *all = NULL;
    struct stk_word word = stk_peers_word(STK_SYNC_ANY, STOKER_OK, NULL);
    if (trainer == NULL || flag == NULL)
        return STOKER_EINVAL;
    word.number[0] = *flag ? 1 : 0;
    const int rc = stk_peers_agree(trainer->peers, &word, &all, &trainer->error);
    for (uint32_t r = 0; r < trainer->peers->world_size && rc == STOKER_OK; r++)
        *flag |= all[r].number[0] != 0;
    return rc;
}

uint32_t stoker_trainer_rank(const stoker_trainer *trainer)
{
    return trainer == NULL ? 0 : trainer->peers->rank;
}

uint32_t stoker_trainer_world_size(const stoker_trainer *trainer)
{
    return trainer == NULL ? 0 : trainer->peers->world_size;
}

/* ---- a pass ---------------------------------------------------------------------- */

/* Sums of BatchNorm in a pass, and the first error. */
struct summing {
    stoker_trainer *trainer;
    int rc;
};

/* A stk_pass_sums.add. */
static void add_values(void *context, double *values, uint32_t count)
{
    struct summing *const summing = context;
    if (summing->rc == STOKER_OK)
        summing->rc =
            stk_peers_sum(summing->trainer->peers, values, count, &summing->trainer->error);
}

/* Moves running statistics [at, at + count) by what each rank has found, in the order of ranks: as
 * one rank does in as many passes. all: [rank][count]; a rank without samples has NaN. */
static void move(float *running, const double *all, uint32_t world_size, uint64_t count,
                 double momentum)
{
    for (uint32_t r = 0; r < world_size; r++)
        for (uint64_t i = 0; i < count; i++) {
            const double found = all[r * count + i];
            if (!isnan(found))
                running[i] = (float)((1 - momentum) * (double)running[i] + momentum * found);
        }
}

static int share_statistic(stoker_trainer *trainer, const struct stk_parameter *statistic)
{
    struct stk_peers *const peers = trainer->peers;
    const uint64_t most = peers->gather_bytes_max / sizeof(double);
    float *const running = trainer->stage[0]->arenas.statistics + statistic->offset;
    const double *const found = trainer->batch_statistics + statistic->offset;
    const double momentum = (double)trainer->model->layers[statistic->layer].momentum;
    for (uint64_t done = 0; done < statistic->elements;) {
        const uint64_t left = statistic->elements - done;
        const uint64_t count = left < most ? left : most;
        const void *all = NULL;
        const int rc =
            peers->ops->gather(peers, found + done, count * sizeof(double), &all, &trainer->error);
        if (rc != STOKER_OK)
            return rc;
        move(running + done, all, peers->world_size, count, momentum);
        done += count;
    }
    return STOKER_OK;
}

/* A pass has failed in the middle: the others wait somewhere in it. */
static int fail_pass(stoker_trainer *trainer, int rc)
{
    trainer->peers->ops->failed(trainer->peers, rc,
                                trainer->error.message[0] != '\0' ? trainer->error.message
                                                                  : stoker_strerror(rc));
    return rc;
}

/* True if the ranks add their gradients after each pass of a group, not after its last. Then the
 * passes are added one by one, in the order in which one rank makes them, and the bits do not
 * depend on how many of a group's passes a rank makes. */
static bool sums_each_pass(const stoker_trainer *trainer)
{
    return stk_trainer_has_peers(trainer) && stk_stage_sums_passes(trainer->stage[0]);
}

/* Gradients become the sums over all ranks. If that is done for each pass, rank 0 has added its own
 * to the group's sum before, and the others bring their pass alone. */
static int sum(stoker_trainer *trainer, stoker_error *error)
{
    return stk_gradient_sum_finish(&trainer->gradient_sum, trainer->stage[0]->arenas.gradients,
                                   error);
}

/* The device sums gradients and statistics itself. */
static int run_pass_on_device(stoker_trainer *trainer, const struct stk_pass *pass,
                              const struct stk_group_pass *group)
{
    const int rc = trainer->runner->ops->train(trainer->runner, pass, group, &trainer->unread.loss,
                                               &trainer->error);
    return rc == STOKER_OK ? rc : fail_pass(trainer, rc);
}

static int run_shared_pass(stoker_trainer *trainer, struct stk_pass *pass,
                           const struct stk_group_pass *of_group)
{
    struct stk_group_pass group = *of_group;
    if (sums_each_pass(trainer))
        group.first = group.first || trainer->peers->rank != 0;
    const stoker_model *const model = trainer->model;
    struct summing summing = { .trainer = trainer };
    const struct stk_pass_sums sums = { .add = add_values, .context = &summing };
    if (trainer->settings.sync_batch_norm)
        pass->sums = &sums;
    else
        pass->batch_statistics = trainer->batch_statistics;
    for (uint64_t i = 0; i < model->statistic_floats; i++)
        trainer->batch_statistics[i] = (double)NAN; /* until a batch has some */
    if (group.last || sums_each_pass(trainer))
        pass->watch =
            stk_gradient_sum_watch(&trainer->gradient_sum, trainer->stage[0]->arenas.gradients);
    int rc = trainer->runner->ops->train(trainer->runner, pass, &group, &trainer->unread.loss,
                                         &trainer->error);
    if (rc == STOKER_OK)
        rc = summing.rc;
    if (rc != STOKER_OK)
        return fail_pass(trainer, rc);
    for (uint32_t i = 0; i < model->statistic_count && rc == STOKER_OK; i++)
        if (!trainer->settings.sync_batch_norm)
            rc = share_statistic(trainer, &model->statistics[i]);
    return rc == STOKER_OK && sums_each_pass(trainer) ? sum(trainer, &trainer->error) : rc;
}

int stk_trainer_run_pass(stoker_trainer *trainer, struct stk_pass *pass,
                         const struct stk_group_pass *group)
{
    if (trainer->device_sums != NULL)
        return run_pass_on_device(trainer, pass, group);
    return stk_trainer_has_peers(trainer)
               ? run_shared_pass(trainer, pass, group)
               : trainer->runner->ops->train(trainer->runner, pass, group, &trainer->unread.loss,
                                             &trainer->error);
}

/* ---- an update, and reports ------------------------------------------------------- */

int stk_trainer_sum_gradients(stoker_trainer *trainer, stoker_error *error)
{
    const struct stk_stage *const stage = trainer->stage[0];
    if (trainer->device_sums != NULL)
        return stage->ops->device->sum(stage->backend, stage->arenas.gradients,
                                       trainer->model->parameter_floats, error);
    return !stk_trainer_has_peers(trainer) || sums_each_pass(trainer) ? STOKER_OK
                                                                      : sum(trainer, error);
}

int stk_trainer_agree_finite(stoker_trainer *trainer, bool *finite)
{
    const struct stk_word *all = NULL;
    struct stk_word word = stk_peers_word(STK_SYNC_UPDATE, STOKER_OK, NULL);
    if (!stk_trainer_has_peers(trainer))
        return STOKER_OK;
    word.number[0] = *finite ? 1 : 0;
    const int rc = stk_peers_agree(trainer->peers, &word, &all, &trainer->error);
    for (uint32_t r = 0; r < trainer->peers->world_size && rc == STOKER_OK; r++)
        *finite = *finite && all[r].number[0] == 1;
    return rc;
}

int stk_trainer_reach_read(stoker_trainer *trainer, stoker_error *error)
{
    return trainer->device_sums == NULL
               ? STOKER_OK
               : stk_trainer_reach(trainer, STK_SYNC_READ, STOKER_OK, error);
}

int stk_trainer_sum_loss(stoker_trainer *trainer, enum stk_sync_point sync_point, int came,
                         struct stk_loss *loss, uint64_t *bad_labels, stoker_error *error)
{
    const struct stk_word *all = NULL;
    struct stk_word word = stk_peers_word(sync_point, came, error);
    if (!stk_trainer_has_peers(trainer))
        return came;
    word.sum = loss->loss_sum;
    word.number[0] = loss->correct;
    word.number[1] = loss->count;
    word.number[2] = *bad_labels;
    const int rc = stk_peers_agree(trainer->peers, &word, &all, error);
    if (rc != STOKER_OK)
        return rc;
    *loss = (struct stk_loss){ 0 };
    *bad_labels = 0;
    for (uint32_t r = 0; r < trainer->peers->world_size; r++) {
        *bad_labels += all[r].number[2];
        const struct stk_loss one = { .loss_sum = all[r].sum,
                                      .correct = all[r].number[0],
                                      .count = all[r].number[1] };
        stk_loss_add(loss, &one);
    }
    return STOKER_OK;
}
