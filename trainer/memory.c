/* memory.c - how much memory a trainer takes, before it takes any.
 *
 *   fixed     parameters | gradients | optimiser state, moving average | statistics
 *   plans     activations: the larger of training and evaluation | workspace: both
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "trainer/plan/budget.h"
#include "trainer/trainer.h"

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
}

static int make_evaluation_plan(const stoker_trainer *trainer, uint32_t batch, struct stk_plan *out,
                                stoker_error *error)
{
    const uint32_t asked = trainer->settings.evaluation_batch_size;
    const struct stk_plan_options options = { .batch = asked == 0 ? batch : asked };
    return stk_plan_make(out, trainer->model, &options, error);
}

/* All classes, with these two plans. */
static int count_plans(const stoker_trainer *trainer, const struct stk_plan *train,
                       const struct stk_plan *evaluation, stoker_trainer_memory *memory,
                       stoker_error *error)
{
    uint64_t train_bytes = 0;
    uint64_t evaluation_bytes = 0;
    int rc = trainer->ops->workspace_bytes(trainer->backend, train, &train_bytes, error);
    if (rc == STOKER_OK)
        rc = trainer->ops->workspace_bytes(trainer->backend, evaluation, &evaluation_bytes, error);
    if (rc != STOKER_OK)
        return rc;
    count_fixed(trainer, memory);
    memory->activations = largest(train->activation_bytes, evaluation->activation_bytes);
    memory->workspace = train_bytes + evaluation_bytes;
    memory->peak = memory->parameters + memory->gradients + memory->optimizer_state +
                   memory->statistics + memory->activations + memory->workspace;
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

static int choose(stoker_trainer *trainer, struct stk_plan_options *options, stoker_error *error)
{
    const struct stk_trainer_settings *settings = &trainer->settings;
    const struct stk_budget budget = { .limit_bytes = settings->memory_budget,
                                       .bytes_of = bytes_of,
                                       .context = trainer };
    *options = (struct stk_plan_options){ .batch = settings->batch_size,
                                          .train = true,
                                          .recompute_batch_norm = settings->recompute_batch_norm,
                                          .checkpoint_segments = settings->checkpoint_segments };
    if (settings->batch_size == STOKER_BATCH_SIZE_MAX)
        return stk_budget_largest_batch(options, trainer->model, &budget, STK_BATCH_MAX, NULL,
                                        error);
    if (settings->memory_budget > 0)
        return stk_budget_fit(options, trainer->model, &budget, NULL, error);
    return STOKER_OK;
}

/* What activations would be if nothing were made again. */
static int count_plain(stoker_trainer *trainer, stoker_error *error)
{
    const struct stk_plan_options options = { .batch = trainer->settings.batch_size,
                                              .train = true };
    struct stk_plan plan;
    int rc = stk_plan_make(&plan, trainer->model, &options, error);
    if (rc != STOKER_OK)
        return rc;
    trainer->memory.activations_plain =
        largest(plan.activation_bytes, trainer->evaluation_plan.activation_bytes);
    stk_plan_free(&plan);
    return STOKER_OK;
}

static int count_all(stoker_trainer *trainer, stoker_error *error)
{
    stoker_trainer_memory *memory = &trainer->memory;
    int rc = count_plans(trainer, &trainer->train_plan, &trainer->evaluation_plan, memory, error);
    if (rc != STOKER_OK)
        return rc;
    memory->batch_size = trainer->settings.batch_size;
    memory->checkpoint_segments = trainer->train_plan.segments;
    memory->recompute_batch_norm = trainer->settings.recompute_batch_norm;
    return count_plain(trainer, error);
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

enum { TABLE_BYTES = 1024, GROUPED_BYTES = 32 };

/* 1199882 as "1,199,882" */
static const char *grouped(char *out, uint64_t value)
{
    char digits[24];
    const int length = snprintf(digits, sizeof(digits), "%" PRIu64, value);
    char *to = out;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return out;
}

static void add_line(char *table, const char *name, uint64_t bytes, const char *remark)
{
    char number[GROUPED_BYTES];
    const size_t length = strlen(table);
    (void)snprintf(table + length, TABLE_BYTES - length, "%-18s %18s%s\n", name,
                   grouped(number, bytes), remark);
}

/* What recomputation saves, or nothing to say. */
static void describe_saving(char *remark, size_t bytes, const stoker_trainer_memory *memory)
{
    char number[GROUPED_BYTES];
    remark[0] = '\0';
    if (memory->activations < memory->activations_plain)
        (void)snprintf(remark, bytes, "  (without recomputation %s: %.1f times as much)",
                       grouped(number, memory->activations_plain),
                       (double)memory->activations_plain / (double)memory->activations);
}

static void add_choice(char *table, const stoker_trainer_memory *memory)
{
    char segments[48] = "";
    if (memory->checkpoint_segments > 1)
        (void)snprintf(segments, sizeof(segments), ", %" PRIu32 " checkpoint segments",
                       memory->checkpoint_segments);
    const size_t length = strlen(table);
    (void)snprintf(table + length, TABLE_BYTES - length, "batch size %" PRIu32 "%s%s\n",
                   memory->batch_size, segments,
                   memory->recompute_batch_norm ? ", BatchNorm recomputed" : "");
}

size_t stoker_trainer_memory_table(const stoker_trainer *trainer, char *text, size_t bytes)
{
    const stoker_trainer_memory *memory = &trainer->memory;
    char table[TABLE_BYTES];
    char remark[96];
    describe_saving(remark, sizeof(remark), memory);
    (void)snprintf(table, sizeof(table), "%-18s %18s\n", "memory", "bytes");
    add_line(table, "parameters", memory->parameters, "");
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
