/* training.c - see training.h.
 *
 *   rates   the learning rate of update 0, 1, ..., until the schedule is constant
 *   block   state: updates, groups, loss scale │ metrics since the last read
 *
 *   gradients ─▶ norm ─▶ prepare: finite? clip, loss scale, step, factors ─▶ update of the whole arena: weights, and the
 *                                                                           same rounded to 16 bits
 *
 * The norm is computed if clipping or a dynamic loss scale needs it; two devices exchange theirs
 * before prepare.
 *
 * The host sees it in read_state() and, for forward plans, in collect_loss() alone. */
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "trainer/backend/cuda/device/device.h"
#include "trainer/backend/cuda/program/training.h"

/* 16 MiB of learning rates. */
enum { RATES_MAX = 1 << 22 };

/* ---- the rule, as the kernels have it -------------------------------------------------------- */

static uint32_t loop_of(const struct stk_update_rule *rule)
{
    const bool momentum = rule->momentum != 0;
    switch (rule->optimizer) {
    case STK_ADAM:
    case STK_ADAMW:
        return STK_TRAIN_ADAM;
    case STK_ADAGRAD:
        return STK_TRAIN_ADAGRAD;
    case STK_RMSPROP:
        if (rule->centered)
            return momentum ? STK_TRAIN_RMSPROP_CENTERED_MOMENTUM : STK_TRAIN_RMSPROP_CENTERED;
        return momentum ? STK_TRAIN_RMSPROP_MOMENTUM : STK_TRAIN_RMSPROP;
    case STK_ADADELTA:
        return STK_TRAIN_ADADELTA;
    case STK_ADAMAX:
        return STK_TRAIN_ADAMAX;
    case STK_ASGD:
        return STK_TRAIN_ASGD;
    case STK_SGD:
    default:
        if (!momentum)
            return STK_TRAIN_SGD;
        return rule->nesterov ? STK_TRAIN_SGD_NESTEROV : STK_TRAIN_SGD_MOMENTUM;
    }
}

static struct stk_train_rule rule_of(const struct stk_training *training)
{
    const struct stk_update_rule *const rule = training->rule;
    return (struct stk_train_rule){
        .loop = loop_of(rule),
        .momentum = rule->momentum,
        .dampening = rule->dampening,
        .epsilon = rule->epsilon,
        .weight_decay = rule->weight_decay,
        .lr_decay = rule->lr_decay,
        .decoupled = rule->optimizer == STK_ADAMW,
        .lambd = rule->lambd,
        .alpha = rule->alpha,
        .t0 = rule->t0,
        .beta1 = rule->beta1,
        .beta2 = rule->beta2,
        .clip_norm = (float)training->clip_norm,
        .dynamic = training->dynamic,
        .ema_decay = training->ema_decay,
    };
}

/* ---- learning rates -------------------------------------------------------------------------- */

/* Updates until the rate is constant. A schedule of steps ends when the rate underflows. */
static uint64_t rates_that_differ(const struct stk_schedule *schedule)
{
    const uint64_t warm = schedule->warmup_updates;
    switch (schedule->kind) {
    case STK_SCHEDULE_COSINE:
    case STK_SCHEDULE_ONE_CYCLE:
        return warm > schedule->total_updates ? warm + 1 : schedule->total_updates + 1;
    case STK_SCHEDULE_STEP: {
        uint64_t drops = 0;
        double rate = schedule->learning_rate;
        while (drops < RATES_MAX && (float)rate > 0 && rate * schedule->gamma != rate) {
            rate *= schedule->gamma;
            drops++;
        }
        if (drops > RATES_MAX / schedule->schedule_steps)
            return UINT64_MAX;
        return warm + (drops + 1) * schedule->schedule_steps;
    }
    case STK_SCHEDULE_CONSTANT:
    default:
        return warm + 1;
    }
}

static int count_rates(const struct stk_training *training, uint64_t *count, stoker_error *error)
{
    *count = rates_that_differ(training->schedule);
    if (*count < UINT64_MAX) /* ASGD uses the rate of the update before */
        *count += training->rule->optimizer == STK_ASGD ? 1 : 0;
    if (*count <= RATES_MAX)
        return STOKER_OK;
    return stk_refuse_option(
        error, STOKER_ELIMIT,
        "back end cuda: the schedule has more than %d different learning rates", (int)RATES_MAX);
}

static int fill_rates(struct stk_backend *backend, const struct stk_training *training,
                      stoker_error *error)
{
    const uint64_t bytes = backend->rate_count * sizeof(float);
    float *rates = stk_calloc(backend->rate_count, sizeof(*rates));
    if (rates == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "learning rates");
    for (uint64_t i = 0; i < backend->rate_count; i++)
        rates[i] = (float)stk_schedule_rate(training->schedule,
                                            stk_optimizer_rate_of(training->rule->optimizer, i));
    int rc = stk_cuda_copy(backend, backend->rates, rates, bytes, cudaMemcpyHostToDevice, error);
    rc = stk_cuda_wait(backend, rc, error);
    stk_free(rates);
    return rc;
}

/* ---- start, state, loss ---------------------------------------------------------------------- */

int stk_cuda_training_bytes(struct stk_backend *backend, const struct stk_training *training,
                            uint64_t *out, stoker_error *error)
{
    (void)backend;
    uint64_t count = 0;
    const int rc = count_rates(training, &count, error);
    if (rc == STOKER_OK)
        *out = sizeof(struct stk_cuda_block) + count * sizeof(float);
    return rc;
}

int stk_cuda_training_start(struct stk_backend *backend, const struct stk_training *training,
                            stoker_error *error)
{
    int before;
    int rc = count_rates(training, &backend->rate_count, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    backend->rates = stk_cuda_alloc(backend, backend->rate_count * sizeof(float), error);
    rc = backend->rates == NULL ? STOKER_EDEVICE : fill_rates(backend, training, error);
    stk_cuda_leave(backend, before);
    backend->rule = rule_of(training);
    backend->training = training;
    return rc;
}

int stk_cuda_training_upload_state(struct stk_backend *backend,
                                   const struct stk_update_state *state, stoker_error *error)
{
    const struct stk_train_state copied = { .step = state->updates,
                                            .tried = state->groups,
                                            .loss_scale = state->loss_scale.scale,
                                            .good_updates = state->loss_scale.good_updates,
                                            .finite = 1 };
    int before;
    int rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_cuda_copy_pageable(backend, &backend->block->state, &copied, sizeof(copied),
                                cudaMemcpyHostToDevice, error);
    rc = stk_cuda_wait(backend, rc, error); /* `copied` ends with this function */
    stk_cuda_leave(backend, before);
    return rc;
}

/* Copy part of the block to the host, and clear the metrics in it, which count from one reading to
 * the next. */
static int fetch(struct stk_backend *backend, void *out, const void *part, uint64_t bytes,
                 struct stk_train_metrics *metrics, stoker_error *error)
{
    int before;
    int rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_cuda_copy_pageable(backend, out, part, bytes, cudaMemcpyDeviceToHost, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_clear(backend, metrics, sizeof(*metrics), error);
    rc = stk_cuda_end_read(backend, rc, error);
    stk_cuda_leave(backend, before);
    return rc;
}

/* State and metrics lie together: one copy. */
int stk_cuda_training_read_state(struct stk_backend *backend, struct stk_update_state *state,
                                 struct stk_step_metrics *metrics, stoker_error *error)
{
    struct stk_cuda_block block;
    const int rc = fetch(backend, &block, backend->block, offsetof(struct stk_cuda_block, run),
                         &backend->block->training, error);
    if (rc != STOKER_OK)
        return rc;
    state->updates = block.state.step;
    state->groups = block.state.tried;
    state->loss_scale.scale = block.state.loss_scale;
    state->loss_scale.good_updates = block.state.good_updates;
    *metrics = (struct stk_step_metrics){
        .loss = { .loss_sum = block.training.loss_sum,
                  .correct = block.training.correct,
                  .count = block.training.count },
        .bad_labels = block.training.bad_labels,
        .gradient_norm = block.state.gradient_norm,
        .used = block.state.use != 0,
    };
    return STOKER_OK;
}

int stk_cuda_training_collect_loss(struct stk_backend *backend, struct stk_loss *loss,
                                   uint64_t *bad_labels, stoker_error *error)
{
    struct stk_train_metrics *const forward = &backend->block->forward;
    struct stk_train_metrics found;
    const int rc = fetch(backend, &found, forward, sizeof(found), forward, error);
    if (rc != STOKER_OK)
        return rc;
    *loss = (struct stk_loss){ .loss_sum = found.loss_sum,
                               .correct = found.correct,
                               .count = found.count };
    *bad_labels = found.bad_labels;
    return STOKER_OK;
}

/* ---- update ---------------------------------------------------------------------------------- */

/* Only clipping and a dynamic loss scale need it. */
static bool wants_norm(const struct stk_backend *backend)
{
    return backend->rule.clip_norm > 0 || backend->rule.dynamic != 0;
}

static int queue_norm(struct stk_backend *backend, const struct stk_update *update,
                      stoker_error *error)
{
    const struct stk_train_norm norm = { .gradients = update->gradients,
                                         .count = update->floats,
                                         .state = &backend->block->state,
                                         .partial_sums = backend->block->norm_sums,
                                         .partial_finite = backend->block->norm_finite,
                                         .ticket = &backend->block->ticket };
    if (!wants_norm(backend))
        return STOKER_OK;
    return stk_cuda_launch(backend,
                           stk_train_kernel_in("stk_train_gradient_norm", STOKER_DTYPE_FLOAT32),
                           &norm, error);
}

int stk_cuda_training_update(struct stk_backend *backend, const struct stk_update *update,
                             uint64_t samples, stoker_error *error)
{
    const bool split = backend->training->split;
    const stoker_dtype storage =
        update->half_weights == NULL ? STOKER_DTYPE_FLOAT32 : update->storage;
    const struct stk_train_prepare prepare = { .rule = backend->rule,
                                               .state = &backend->block->state,
                                               .learning_rates = backend->rates,
                                               .rate_count = backend->rate_count,
                                               .samples = samples,
                                               .other = split && wants_norm(backend)
                                                            ? &backend->block->other
                                                            : NULL };
    struct stk_train_update weights = { .loop = backend->rule.loop,
                                        .state = &backend->block->state,
                                        .parameters = update->parameters,
                                        .half_weights = update->half_weights,
                                        .gradients = update->gradients,
                                        .ema = update->ema,
                                        .count = update->floats };
    _Static_assert((int)STK_TRAIN_STATE_MAX == (int)STK_STATE_ARENAS_MAX, "one set of arenas");
    memcpy(weights.moments, update->state, sizeof(weights.moments));
    int rc = split ? STOKER_OK : queue_norm(backend, update, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_launch(backend, stk_train_kernel_named("stk_train_prepare"), &prepare, error);
    return rc == STOKER_OK
               ? stk_cuda_launch(backend, stk_train_kernel_in("stk_train_update", storage),
                                 &weights, error)
               : rc;
}

/* Queue half_weights = parameters, rounded, after something else than an update has written
 * them. */
static int queue_cast(struct stk_backend *backend, void *half_weights, const float *parameters,
                      uint64_t count, stoker_dtype storage, stoker_error *error)
{
    const struct stk_train_cast cast = { parameters, half_weights, count };
    return stk_cuda_launch(backend, stk_train_kernel_in("stk_train_cast", storage), &cast, error);
}

int stk_cuda_training_queue_norm(struct stk_backend *backend, const struct stk_update *update,
                                 stoker_error *error)
{
    int before;
    int rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = queue_norm(backend, update, error);
    stk_cuda_leave(backend, before);
    return rc;
}

int stk_cuda_training_narrow(struct stk_backend *backend, void *half_weights,
                             const float *parameters, uint64_t count, stoker_dtype storage,
                             stoker_error *error)
{
    int before;
    int rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = queue_cast(backend, half_weights, parameters, count, storage, error);
    stk_cuda_leave(backend, before);
    return rc;
}

int stk_cuda_training_queue_update(struct stk_backend *backend, const struct stk_update *update,
                                   uint64_t samples, stoker_error *error)
{
    int before;
    int rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_cuda_training_update(backend, update, samples, error);
    stk_cuda_leave(backend, before);
    return rc;
}
