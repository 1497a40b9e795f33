/* plan_memory.c - computes the memory of a stage before any is allocated.
 *
 *   fixed     parameters | gradients | optimizer state, moving average | statistics | 16-bit
 *             parameters
 *   plans     activations: the larger of training and evaluation | workspace: both, and the
 *             training state of a device that decides
 */
#include "loader/base/error.h"
#include "loader/base/memory/budget.h"
#include "loader/base/memory/memory.h"
#include "trainer/plan/budget.h"
#include "trainer/plan/precision.h"
#include "trainer/stage/stage.h"

static uint64_t largest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void count_fixed(const struct stk_stage *stage, stoker_trainer_memory *memory)
{
    const uint64_t arena_bytes = stage->model->parameter_floats * sizeof(float);
    const uint64_t averages = stage->settings.ema_decay > 0 ? 1 : 0;
    memory->parameters = arena_bytes;
    memory->gradients = arena_bytes * (stk_stage_sums_passes(stage) ? 2 : 1);
    memory->optimizer_state =
        arena_bytes * (stk_optimizer_state_arenas(&stage->settings.rule) + averages);
    memory->statistics = stage->model->statistic_floats * sizeof(float);
    memory->stored_parameters =
        stk_is_narrow(stage->settings.backend.storage)
            ? stage->model->parameter_floats * stoker_dtype_bytes(stage->settings.backend.storage)
            : 0;
}

static int make_evaluation_plan(const struct stk_stage *stage, uint32_t batch, struct stk_plan *out,
                                stoker_error *error)
{
    const uint32_t asked = stage->settings.evaluation_batch_size;
    const struct stk_plan_options options = { .batch = asked == 0 ? batch : asked,
                                              .storage = stage->settings.backend.storage };
    return stk_plan_make(out, stage->model, &options, error);
}

/* Bytes that load takes for the parts of a plan that run. */
static int count_workspace(const struct stk_stage *stage, const struct stk_plan *plan,
                           uint64_t *bytes, stoker_error *error)
{
    struct stk_plan halves[2];
    uint64_t second_bytes = 0;
    stk_plan_cut(plan, halves);
    int rc = stage->ops->workspace_bytes(stage->backend, &halves[0], bytes, error);
    if (rc == STOKER_OK && halves[1].op_count > 0)
        rc = stage->ops->workspace_bytes(stage->backend, &halves[1], &second_bytes, error);
    *bytes += second_bytes;
    return rc;
}

/* Counts all classes with these two plans. */
static int count_plans(const struct stk_stage *stage, const struct stk_plan *train,
                       const struct stk_plan *evaluation, stoker_trainer_memory *memory,
                       stoker_error *error)
{
    uint64_t train_bytes = 0;
    uint64_t evaluation_bytes = 0;
    uint64_t training_bytes = 0;
    int rc = count_workspace(stage, train, &train_bytes, error);
    if (rc == STOKER_OK)
        rc = count_workspace(stage, evaluation, &evaluation_bytes, error);
    if (rc == STOKER_OK && stage->ops->device != NULL)
        rc = stage->ops->device->training_bytes(stage->backend, &stage->training, &training_bytes,
                                                error);
    if (rc != STOKER_OK)
        return rc;
    count_fixed(stage, memory);
    memory->activations =
        stage->slots * largest(train->activation_bytes, evaluation->activation_bytes);
    memory->workspace = train_bytes + evaluation_bytes + training_bytes;
    memory->peak = memory->parameters + memory->gradients + memory->optimizer_state +
                   memory->statistics + memory->stored_parameters + memory->activations +
                   memory->workspace;
    return STOKER_OK;
}

/* A stk_bytes_of: bytes of the whole stage with this plan. */
static int bytes_of(void *context, const struct stk_plan *plan, uint64_t *bytes,
                    stoker_error *error)
{
    const struct stk_stage *stage = context;
    struct stk_plan evaluation;
    stoker_trainer_memory memory;
    int rc = make_evaluation_plan(stage, plan->options.batch, &evaluation, error);
    if (rc != STOKER_OK)
        return rc;
    rc = count_plans(stage, plan, &evaluation, &memory, error);
    stk_plan_free(&evaluation);
    if (rc == STOKER_OK)
        *bytes = memory.peak;
    return rc;
}

/* The memory budget, at most what a device has left; half of what is left if the largest batch is
 * wanted without a budget. 0 = none. */
static uint64_t limit_bytes(const struct stk_stage *stage)
{
    const bool on_device = stage->ops->device != NULL;
    const uint64_t asked = stage->settings.memory_budget;
    const bool largest_batch = stage->settings.batch_size == STOKER_BATCH_SIZE_AUTO;
    if (asked == 0 && !largest_batch)
        return 0;
    const uint64_t free_bytes =
        on_device ? stage->ops->device->free_bytes(stage->backend) : stk_memory_available();
    if (asked == 0)
        return free_bytes / 2;
    return on_device && free_bytes < asked ? free_bytes : asked;
}

static void set_searching(const struct stk_stage *stage, bool searching)
{
    if (stage->ops->device != NULL)
        stage->ops->device->search(stage->backend, searching);
}

static int search(struct stk_stage *stage, struct stk_plan_options *options, stoker_error *error)
{
    const struct stk_budget budget = { .limit_bytes = stage->settings.memory_budget,
                                       .bytes_of = bytes_of,
                                       .context = stage };
    set_searching(stage, true);
    const int rc =
        options->batch == STOKER_BATCH_SIZE_AUTO
            ? stk_budget_largest_batch(options, stage->model, &budget, STK_BATCH_MAX, NULL, error)
            : stk_budget_fit(options, stage->model, &budget, NULL, error);
    set_searching(stage, false);
    return rc;
}

static int choose(struct stk_stage *stage, struct stk_plan_options *options, stoker_error *error)
{
    struct stk_trainer_settings *settings = &stage->settings;
    settings->memory_budget = limit_bytes(stage);
    *options = (struct stk_plan_options){ .batch = settings->batch_size,
                                          .train = true,
                                          .storage = settings->backend.storage,
                                          .recompute_batch_norm = settings->recompute_batch_norm,
                                          .checkpoint_segments = settings->checkpoint_segments };
    return settings->memory_budget > 0 ? search(stage, options, error) : STOKER_OK;
}

/* Bytes of activations with these options for training. */
static int count_activations(const struct stk_stage *stage, struct stk_plan_options options,
                             uint64_t *bytes, stoker_error *error)
{
    struct stk_plan train;
    struct stk_plan evaluation;
    const struct stk_plan_options forward = { .batch = stage->settings.evaluation_batch_size,
                                              .storage = options.storage };
    int rc = stk_plan_make(&evaluation, stage->model, &forward, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_plan_make(&train, stage->model, &options, error);
    if (rc == STOKER_OK)
        *bytes = stage->slots * largest(train.activation_bytes, evaluation.activation_bytes);
    stk_plan_free(&train);
    stk_plan_free(&evaluation);
    return rc;
}

/* Bytes of activations without recomputation, and in float32. */
static int count_others(struct stk_stage *stage, stoker_error *error)
{
    stoker_trainer_memory *memory = &stage->memory;
    struct stk_plan_options options = { .batch = stage->settings.batch_size,
                                        .train = true,
                                        .storage = stage->settings.backend.storage };
    int rc = count_activations(stage, options, &memory->activations_plain, error);
    if (rc != STOKER_OK)
        return rc;
    options = stage->train_plan.options;
    options.storage = STOKER_DTYPE_FLOAT32;
    return count_activations(stage, options, &memory->activations_float32, error);
}

static int count_all(struct stk_stage *stage, stoker_error *error)
{
    stoker_trainer_memory *memory = &stage->memory;
    int rc = count_plans(stage, &stage->train_plan, &stage->evaluation_plan, memory, error);
    if (rc != STOKER_OK)
        return rc;
    stage->slot_bytes = memory->activations / stage->slots;
    memory->batch_size = stage->settings.batch_size;
    memory->checkpoint_segments = stage->train_plan.segments;
    memory->recompute_batch_norm = stage->settings.recompute_batch_norm;
    memory->precision = stage->train_plan.storage;
    return count_others(stage, error);
}

static void take_settings(struct stk_trainer_settings *to, const struct stk_trainer_settings *asked)
{
    to->batch_size = asked->batch_size;
    to->evaluation_batch_size = asked->evaluation_batch_size;
    to->memory_budget = asked->memory_budget;
    to->checkpoint_segments = asked->checkpoint_segments;
    to->recompute_batch_norm = asked->recompute_batch_norm;
}

static int plan_once(struct stk_stage *stage, const struct stk_trainer_settings *asked,
                     stoker_error *error)
{
    struct stk_plan_options options;
    stk_plan_free(&stage->train_plan);
    stk_plan_free(&stage->evaluation_plan);
    take_settings(&stage->settings, asked);
    int rc = choose(stage, &options, error);
    if (rc == STOKER_OK)
        rc = stk_plan_make(&stage->train_plan, stage->model, &options, error);
    if (rc == STOKER_OK)
        rc = make_evaluation_plan(stage, options.batch, &stage->evaluation_plan, error);
    if (rc != STOKER_OK)
        return rc;
    stage->settings.batch_size = options.batch;
    stage->settings.evaluation_batch_size = stage->evaluation_plan.options.batch;
    stage->settings.checkpoint_segments = options.checkpoint_segments;
    stage->settings.recompute_batch_norm = options.recompute_batch_norm;
    return count_all(stage, error);
}

/* Only the engines of the chosen plan run. If one fails and another one needs more workspace, the
 * plan may exceed the budget: the next search leaves that much out of it. */
int stk_stage_plan_memory(struct stk_stage *stage, const struct stk_trainer_settings *asked,
                          stoker_error *error)
{
    enum { SEARCHES_MAX = 8 };
    struct stk_trainer_settings now = *asked;
    int rc = plan_once(stage, &now, error);
    const uint64_t budget = stage->settings.memory_budget;
    uint64_t limit = budget;
    for (int i = 1; rc == STOKER_OK && budget > 0 && stage->memory.peak > budget; i++) {
        const uint64_t excess = stage->memory.peak - budget;
        if (i == SEARCHES_MAX || excess >= limit)
            return stk_refuse_option(
                error, STOKER_ELIMIT,
                "memory_budget: engines that failed were replaced, and with those "
                "that run nothing fits in %llu bytes",
                (unsigned long long)budget);
        now.memory_budget = limit -= excess;
        rc = plan_once(stage, &now, error);
    }
    stage->settings.memory_budget = budget;
    return rc;
}
