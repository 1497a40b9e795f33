/* split.c - see split.h: two stages are made, described and given back.
 *
 *   settings ──▶ halves of the model ──▶ back ends ──▶ settled, on one batch size ──▶ furnished ──▶ pipeline
 */
#include "trainer/split/split.h"

#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory.h"
#include "trainer/model/cut.h"
#include "trainer/model/digits.h"
#include "trainer/split/schedule.h"

static const struct stk_place nowhere = STK_NOWHERE;

enum { DEVICE_BYTES = 32 };

struct stk_split {
    stoker_model *models[STK_STAGES];
    stoker_trainer *stages[STK_STAGES];
    struct stk_pipeline *pipeline;
    char name[2 * DEVICE_BYTES];
    char devices[STK_STAGES][DEVICE_BYTES];
};

void stk_split_stages(const struct stk_split *split, struct stk_stages *stages)
{
    stages->count = STK_STAGES;
    for (uint32_t s = 0; s < STK_STAGES; s++)
        stages->stage[s] = split->stages[s];
}

const char *stk_split_name(const struct stk_split *split)
{
    return split->name;
}

/* ---- create ---------------------------------------------------------------------- */

static struct stk_trainer_settings settings_of(const stoker_trainer *whole, uint32_t s)
{
    struct stk_trainer_settings settings = whole->settings;
    if (s > 0) {
        settings.ops = whole->settings.second_ops;
        settings.backend.device = whole->settings.second_device;
    }
    return settings;
}

static void describe_device(char text[DEVICE_BYTES], const struct stk_trainer_settings *settings)
{
    if (settings->ops == &stk_backend_cuda)
        (void)snprintf(text, DEVICE_BYTES, "%s:%u", settings->ops->name, settings->backend.device);
    else
        (void)snprintf(text, DEVICE_BYTES, "%s", settings->ops->name);
}

static int make_stage(struct stk_split *split, uint32_t s, const stoker_trainer *whole,
                      stoker_error *error)
{
    stoker_trainer *stage = stk_calloc(1, sizeof(*stage));
    if (stage == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPTIONS, &nowhere, "a stage");
    split->stages[s] = stage;
    stage->model = split->models[s];
    stage->settings = settings_of(whole, s);
    stage->slots = s == 0 && whole->settings.accumulate > 1 ? 2 : 1;
    describe_device(split->devices[s], &stage->settings);
    return stk_trainer_open(stage, error);
}

static int settle_again(struct stk_split *split, uint32_t s, const stoker_trainer *whole,
                        uint32_t batch_size, stoker_error *error)
{
    stoker_trainer *const stage = split->stages[s];
    const struct stk_backend_options backend = stage->settings.backend; /* in use */
    stk_plan_free(&stage->train_plan);
    stk_plan_free(&stage->evaluation_plan);
    stage->settings = settings_of(whole, s);
    stage->settings.backend = backend;
    stage->settings.batch_size = batch_size;
    return stk_trainer_settle(stage, error);
}

/* The largest batch is that of the stage that bears less. */
static int settle(struct stk_split *split, const stoker_trainer *whole, stoker_error *error)
{
    uint32_t least = UINT32_MAX;
    int rc = STOKER_OK;
    for (uint32_t s = 0; s < STK_STAGES && rc == STOKER_OK; s++) {
        rc = stk_trainer_settle(split->stages[s], error);
        if (rc == STOKER_OK && split->stages[s]->settings.batch_size < least)
            least = split->stages[s]->settings.batch_size;
    }
    for (uint32_t s = 0; s < STK_STAGES && rc == STOKER_OK; s++)
        if (split->stages[s]->settings.batch_size > least)
            rc = settle_again(split, s, whole, least, error);
    return rc;
}

static uint64_t sum(const struct stk_split *split, size_t field)
{
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < STK_STAGES; s++) {
        uint64_t value;
        memcpy(&value, (const char *)&split->stages[s]->memory + field, sizeof(value));
        bytes += value;
    }
    return bytes;
}

/* What both take together; choices are the first's, and made for both. */
static void add_up(stoker_trainer *whole, const struct stk_split *split)
{
#define SUM(field) sum(split, offsetof(stoker_trainer_memory, field))
    const stoker_trainer_memory *first = &split->stages[0]->memory;
    const stoker_trainer_memory *second = &split->stages[1]->memory;
    const bool first_more = first->checkpoint_segments > second->checkpoint_segments;
    whole->memory =
        (stoker_trainer_memory){ .parameters = SUM(parameters),
                                 .gradients = SUM(gradients),
                                 .optimizer_state = SUM(optimizer_state),
                                 .statistics = SUM(statistics),
                                 .activations = SUM(activations),
                                 .workspace = SUM(workspace),
                                 .stored_parameters = SUM(stored_parameters),
                                 .peak = SUM(peak),
                                 .activations_plain = SUM(activations_plain),
                                 .activations_float32 = SUM(activations_float32),
                                 .precision = first->precision,
                                 .batch_size = first->batch_size,
                                 .checkpoint_segments = first_more ? first->checkpoint_segments
                                                                   : second->checkpoint_segments,
                                 .recompute_batch_norm =
                                     first->recompute_batch_norm || second->recompute_batch_norm };
#undef SUM
    whole->settings.batch_size = first->batch_size;
    whole->settings.evaluation_batch_size = split->stages[0]->settings.evaluation_batch_size;
}

static int furnish(struct stk_split *split, stoker_error *error)
{
    uint64_t between[STK_STAGES];
    int rc = STOKER_OK;
    stk_pipeline_bytes(split->stages[0], split->stages[1], between);
    for (uint32_t s = 0; s < STK_STAGES; s++) {
        split->stages[s]->memory.workspace += between[s];
        split->stages[s]->memory.peak += between[s];
    }
    for (uint32_t s = 0; s < STK_STAGES && rc == STOKER_OK; s++)
        rc = stk_trainer_furnish(split->stages[s], error);
    if (rc == STOKER_OK)
        rc = stk_pipeline_create(&split->pipeline, split->stages[0], split->stages[1], error);
    return rc;
}

int stk_split_create(stoker_trainer *trainer, stoker_error *error)
{
    struct stk_split *split = stk_calloc(1, sizeof(*split));
    if (split == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPTIONS, &nowhere, "two stages");
    int rc = stk_model_cut(split->models, trainer->model, trainer->settings.split, error);
    for (uint32_t s = 0; s < STK_STAGES && rc == STOKER_OK; s++)
        rc = make_stage(split, s, trainer, error);
    if (rc == STOKER_OK)
        rc = settle(split, trainer, error);
    if (rc == STOKER_OK)
        rc = furnish(split, error);
    if (rc != STOKER_OK) {
        stk_split_destroy(&split);
        return rc;
    }
    (void)snprintf(split->name, sizeof(split->name), "%s,%s", split->devices[0], split->devices[1]);
    add_up(trainer, split);
    trainer->split = split;
    return STOKER_OK;
}

void stk_split_destroy(struct stk_split **split)
{
    struct stk_split *const s = *split;
    if (s == NULL)
        return;
    stk_pipeline_destroy(&s->pipeline);
    for (uint32_t i = STK_STAGES; i-- > 0;) {
        stoker_trainer_destroy(&s->stages[i]);
        stoker_model_destroy(&s->models[i]);
    }
    stk_free(s);
    *split = NULL;
}

/* ---- passes ---------------------------------------------------------------------- */

/* What was trimmed is there again, and 16-bit weights are those of this pass. */
static int prepare(stoker_trainer *trainer, bool averages)
{
    const struct stk_split *split = trainer->split;
    int rc = stk_trainer_refill(trainer, &trainer->error);
    for (uint32_t s = 0; s < STK_STAGES && rc == STOKER_OK; s++) {
        stoker_trainer *stage = split->stages[s];
        rc = stk_trainer_store(stage, averages && stage->ema != NULL ? stage->ema
                                                                     : stage->arenas.parameters);
        if (rc != STOKER_OK)
            trainer->error = stage->error;
    }
    return rc;
}

int stk_split_pass(stoker_trainer *trainer, const struct stk_pass *pass)
{
    const int rc = prepare(trainer, false);
    if (rc != STOKER_OK)
        return rc;
    return stk_pipeline_pass(trainer->split->pipeline, pass, trainer->progress.group_passes == 0,
                             &trainer->unread.loss, &trainer->error);
}

int stk_split_drain(stoker_trainer *trainer, stoker_error *error)
{
    if (trainer->split == NULL)
        return STOKER_OK;
    return stk_pipeline_drain(trainer->split->pipeline, &trainer->unread.loss, error);
}

int stk_split_norm(stoker_trainer *trainer, double *squared, bool *finite)
{
    return stk_pipeline_norm(trainer->split->pipeline, squared, finite, &trainer->error);
}

int stk_split_forward(stoker_trainer *trainer, const struct stk_pass *pass, struct stk_loss *loss)
{
    int rc = stk_split_drain(trainer, &trainer->error);
    if (rc == STOKER_OK)
        rc = prepare(trainer, true);
    if (rc != STOKER_OK)
        return rc;
    return stk_pipeline_forward(trainer->split->pipeline, pass, loss, &trainer->error);
}

/* ---- for a person ---------------------------------------------------------------- */

enum { TABLE_BYTES = 3072 };

size_t stk_split_memory_table(const stoker_trainer *trainer, char *text, size_t bytes)
{
    const struct stk_split *split = trainer->split;
    char table[TABLE_BYTES];
    size_t length = 0;
    for (uint32_t s = 0; s < STK_STAGES; s++) {
        const uint32_t before = split->models[s]->layers_before;
        length += (size_t)snprintf(table + length, sizeof(table) - length, "%s, layers %u to %u\n",
                                   split->devices[s], before + 1,
                                   before + split->models[s]->layer_count - 2);
        length +=
            stoker_trainer_memory_table(split->stages[s], table + length, sizeof(table) - length);
        length += (size_t)snprintf(table + length, sizeof(table) - length, "\n");
    }
    length += (size_t)snprintf(table + length, sizeof(table) - length, "%-18s %18s\n",
                               "peak of both", stk_digits(trainer->memory.peak).text);
    if (bytes > 0) {
        const size_t copied = length < bytes ? length : bytes - 1;
        memcpy(text, table, copied);
        text[copied] = '\0';
    }
    return length;
}
