/* plan_memory.c - how much memory a trainer takes, before it takes any.
 *
 *   fixed     parameters | gradients | optimiser state, moving average | statistics | 16-bit parameters
 *   plans     activations: the larger of training and evaluation | workspace: both, and what a device
 *             that decides for itself keeps
 */
#include <stdio.h>
#include <string.h>

#include "loader/base/budget.h"
#include "loader/base/memory.h"
#include "trainer/model/digits.h"
#include "trainer/plan/budget.h"
#include "trainer/plan/precision.h"
#include "trainer/split/split.h"

static uint64_t largest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void count_fixed(const stoker_trainer *trainer, stoker_trainer_memory *memory)
{
    const uint64_t arena_bytes = trainer->model->parameter_floats * sizeof(float);
    const uint64_t averages = trainer->settings.ema_decay > 0 ? 1 : 0;
    memory->parameters = arena_bytes;
    memory->gradients = arena_bytes;
    memory->optimizer_state =
        arena_bytes * (stk_optimizer_state_arenas(&trainer->settings.rule) + averages);
    memory->statistics = trainer->model->statistic_floats * sizeof(float);
    memory->stored_parameters = stk_is_narrow(trainer->settings.backend.storage)
                                    ? trainer->model->parameter_floats *
                                          stoker_dtype_bytes(trainer->settings.backend.storage)
                                    : 0;
}

static int make_evaluation_plan(const stoker_trainer *trainer, uint32_t batch, struct stk_plan *out,
                                stoker_error *error)
{
    const uint32_t asked = trainer->settings.evaluation_batch_size;
    const struct stk_plan_options options = { .batch = asked == 0 ? batch : asked,
                                              .storage = trainer->settings.backend.storage };
    return stk_plan_make(out, trainer->model, &options, error);
}

/* What load takes for what is run of a plan. */
static int count_workspace(const stoker_trainer *trainer, const struct stk_plan *plan,
                           uint64_t *bytes, stoker_error *error)
{
    struct stk_plan halves[2];
    uint64_t second_bytes = 0;
    stk_plan_cut(plan, halves);
    int rc = trainer->ops->workspace_bytes(trainer->backend, &halves[0], bytes, error);
    if (rc == STOKER_OK && halves[1].op_count > 0)
        rc = trainer->ops->workspace_bytes(trainer->backend, &halves[1], &second_bytes, error);
    *bytes += second_bytes;
    return rc;
}

/* All classes, with these two plans. */
static int count_plans(const stoker_trainer *trainer, const struct stk_plan *train,
                       const struct stk_plan *evaluation, stoker_trainer_memory *memory,
                       stoker_error *error)
{
    uint64_t train_bytes = 0;
    uint64_t evaluation_bytes = 0;
    uint64_t training_bytes = 0;
    int rc = count_workspace(trainer, train, &train_bytes, error);
    if (rc == STOKER_OK)
        rc = count_workspace(trainer, evaluation, &evaluation_bytes, error);
    if (rc == STOKER_OK && trainer->ops->training_bytes != NULL)
        rc = trainer->ops->training_bytes(trainer->backend, &trainer->training, &training_bytes,
                                          error);
    if (rc != STOKER_OK)
        return rc;
    count_fixed(trainer, memory);
    memory->activations =
        trainer->slots * largest(train->activation_bytes, evaluation->activation_bytes);
    memory->workspace = train_bytes + evaluation_bytes + training_bytes;
    memory->peak = memory->parameters + memory->gradients + memory->optimizer_state +
                   memory->statistics + memory->stored_parameters + memory->activations +
                   memory->workspace;
    return STOKER_OK;
}

/* A stk_bytes_of: what the whole trainer takes with this plan. */
static int bytes_of(void *context, const struct stk_plan *plan, uint64_t *bytes,
                    stoker_error *error)
{
    const stoker_trainer *trainer = context;
    struct stk_plan evaluation;
    stoker_trainer_memory memory;
    int rc = make_evaluation_plan(trainer, plan->options.batch, &evaluation, error);
    if (rc != STOKER_OK)
        return rc;
    rc = count_plans(trainer, plan, &evaluation, &memory, error);
    stk_plan_free(&evaluation);
    if (rc == STOKER_OK)
        *bytes = memory.peak;
    return rc;
}

/* The limit asked for, which is at most what a device has left; half of what is left where only the
 * largest batch is asked for. 0 = none. */
static uint64_t limit_bytes(const stoker_trainer *trainer)
{
    const bool on_device = trainer->ops->free_bytes != NULL;
    const uint64_t asked = trainer->settings.memory_budget;
    const bool largest_batch = trainer->settings.batch_size == STOKER_BATCH_SIZE_MAX;
    if (asked == 0 && !largest_batch)
        return 0;
    const uint64_t free_bytes =
        on_device ? trainer->ops->free_bytes(trainer->backend) : stk_memory_available();
    if (asked == 0)
        return free_bytes / 2;
    return on_device && free_bytes < asked ? free_bytes : asked;
}

static int choose(stoker_trainer *trainer, struct stk_plan_options *options, stoker_error *error)
{
    struct stk_trainer_settings *settings = &trainer->settings;
    settings->memory_budget = limit_bytes(trainer);
    const struct stk_budget budget = { .limit_bytes = settings->memory_budget,
                                       .bytes_of = bytes_of,
                                       .context = trainer };
    *options = (struct stk_plan_options){ .batch = settings->batch_size,
                                          .train = true,
                                          .storage = settings->backend.storage,
                                          .recompute_batch_norm = settings->recompute_batch_norm,
                                          .checkpoint_segments = settings->checkpoint_segments };
    if (settings->batch_size == STOKER_BATCH_SIZE_MAX)
        return stk_budget_largest_batch(options, trainer->model, &budget, STK_BATCH_MAX, NULL,
                                        error);
    if (settings->memory_budget > 0)
        return stk_budget_fit(options, trainer->model, &budget, NULL, error);
    return STOKER_OK;
}

/* What activations would be with these options for training. */
static int count_activations(const stoker_trainer *trainer, struct stk_plan_options options,
                             uint64_t *bytes, stoker_error *error)
{
    struct stk_plan train;
    struct stk_plan evaluation;
    const struct stk_plan_options forward = { .batch = trainer->settings.evaluation_batch_size,
                                              .storage = options.storage };
    int rc = stk_plan_make(&evaluation, trainer->model, &forward, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_plan_make(&train, trainer->model, &options, error);
    if (rc == STOKER_OK)
        *bytes = trainer->slots * largest(train.activation_bytes, evaluation.activation_bytes);
    stk_plan_free(&train);
    stk_plan_free(&evaluation);
    return rc;
}

/* What they would be if nothing were made again, and if they were float32. */
static int count_others(stoker_trainer *trainer, stoker_error *error)
{
    stoker_trainer_memory *memory = &trainer->memory;
    struct stk_plan_options options = { .batch = trainer->settings.batch_size,
                                        .train = true,
                                        .storage = trainer->settings.backend.storage };
    int rc = count_activations(trainer, options, &memory->activations_plain, error);
    if (rc != STOKER_OK)
        return rc;
    options = trainer->train_plan.options;
    options.storage = STOKER_FLOAT32;
    return count_activations(trainer, options, &memory->activations_float32, error);
}

static int count_all(stoker_trainer *trainer, stoker_error *error)
{
    stoker_trainer_memory *memory = &trainer->memory;
    int rc = count_plans(trainer, &trainer->train_plan, &trainer->evaluation_plan, memory, error);
    if (rc != STOKER_OK)
        return rc;
    trainer->slot_bytes = memory->activations / trainer->slots;
    memory->batch_size = trainer->settings.batch_size;
    memory->checkpoint_segments = trainer->train_plan.segments;
    memory->recompute_batch_norm = trainer->settings.recompute_batch_norm;
    memory->precision = trainer->train_plan.storage;
    return count_others(trainer, error);
}

int stk_trainer_settle(stoker_trainer *trainer, stoker_error *error)
{
    struct stk_plan_options options;
    int rc = choose(trainer, &options, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_plan_make(&trainer->train_plan, trainer->model, &options, error);
    if (rc != STOKER_OK)
        return rc;
    rc = make_evaluation_plan(trainer, options.batch, &trainer->evaluation_plan, error);
    if (rc != STOKER_OK)
        goto fail;
    trainer->settings.batch_size = options.batch;
    trainer->settings.evaluation_batch_size = trainer->evaluation_plan.options.batch;
    trainer->settings.checkpoint_segments = options.checkpoint_segments;
    trainer->settings.recompute_batch_norm = options.recompute_batch_norm;
    rc = count_all(trainer, error);
    if (rc == STOKER_OK)
        return rc;
    stk_plan_free(&trainer->evaluation_plan);
fail:
    stk_plan_free(&trainer->train_plan);
    return rc;
}

void stoker_trainer_get_memory(const stoker_trainer *trainer, stoker_trainer_memory *out)
{
    *out = trainer->memory;
}

/* ---- for a person ---------------------------------------------------------------- */

enum { TABLE_BYTES = 1024 };

static void add_line(char *table, const char *name, uint64_t bytes, const char *remark)
{
    const size_t length = strlen(table);
    (void)snprintf(table + length, TABLE_BYTES - length, "%-18s %18s%s\n", name,
                   stk_digits(bytes).text, remark);
}

static void describe_saving(char *remark, size_t bytes, const char *without, uint64_t more,
                            uint64_t taken)
{
    const size_t length = strlen(remark);
    if (taken < more)
        (void)snprintf(remark + length, bytes - length, "  (%s %s: %.1f times as much)", without,
                       stk_digits(more).text, (double)more / (double)taken);
}

/* What recomputation saves, and what 16 bits do, or nothing to say. */
static void describe_savings(char *remark, size_t bytes, const stoker_trainer_memory *memory)
{
    remark[0] = '\0';
    describe_saving(remark, bytes, "without recomputation", memory->activations_plain,
                    memory->activations);
    if (memory->precision != STOKER_FLOAT32)
        describe_saving(remark, bytes, "in float32", memory->activations_float32,
                        memory->activations);
}

static void add_choice(char *table, const stoker_trainer_memory *memory)
{
    char segments[48] = "";
    if (memory->checkpoint_segments > 1)
        (void)snprintf(segments, sizeof(segments), ", %" PRIu32 " checkpoint segments",
                       memory->checkpoint_segments);
    const size_t length = strlen(table);
    (void)snprintf(table + length, TABLE_BYTES - length, "batch size %" PRIu32 "%s%s%s%s\n",
                   memory->batch_size, segments,
                   memory->recompute_batch_norm ? ", BatchNorm recomputed" : "",
                   memory->precision != STOKER_FLOAT32 ? ", activations in " : "",
                   memory->precision != STOKER_FLOAT32 ? stoker_dtype_name(memory->precision) : "");
}

size_t stoker_trainer_memory_table(const stoker_trainer *trainer, char *text, size_t bytes)
{
    const stoker_trainer_memory *memory = &trainer->memory;
    char table[TABLE_BYTES];
    char remark[192];
    if (trainer->split != NULL)
        return stk_split_memory_table(trainer, text, bytes);
    describe_savings(remark, sizeof(remark), memory);
    (void)snprintf(table, sizeof(table), "%-18s %18s\n", "memory", "bytes");
    add_line(table, "parameters", memory->parameters, "");
    if (memory->stored_parameters > 0)
        add_line(table, "16-bit parameters", memory->stored_parameters, "");
    add_line(table, "gradients", memory->gradients, "");
    add_line(table, "optimizer state", memory->optimizer_state, "");
    add_line(table, "statistics", memory->statistics, "");
    add_line(table, "activations", memory->activations, remark);
    add_line(table, "workspace", memory->workspace, "");
    add_line(table, "peak", memory->peak, "");
    add_choice(table, memory);
    const size_t length = strlen(table);
    if (bytes > 0) {
        const size_t copied = length < bytes ? length : bytes - 1;
        memcpy(text, table, copied);
        text[copied] = '\0';
    }
    return length;
}
