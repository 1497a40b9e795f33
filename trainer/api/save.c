/* save.c - a trainer as two sets of tensors: weights for any program, and the state that continuing
 * needs.
 *
 *   weights   conv1.weight, conv1.bias, bn1.running_mean, bn1.num_batches_tracked, ...   PyTorch's
 *   averages  the same, with the moving average of each parameter in its place
 *   state     counters | optimizer.0, ... | ema | gradients (of a group under way) | loader
 *
 * The arenas of the state are written as they are in memory. */
#include <math.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory.h"
#include "trainer/api/checkpoint_names.h"
#include "trainer/api/counters.h"
#include "trainer/api/gather_arena.h"
#include "trainer/api/peers.h"
#include "trainer/files/checkpoint.h"
#include "trainer/model/torch_layout.h"

/* The weights, in file order. */
struct weights {
    struct stk_named_tensor *tensors;
    uint32_t count;
    float *floats; /* the data of all of them */
    struct stk_tracked_name *tracked;
    int64_t *batches; /* num_batches_tracked of each BatchNorm */
};

static void add_parameters(struct weights *weights, const stoker_model *model,
                           const struct stk_parameter *parameters, uint32_t count,
                           const float *arena, float **to)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct stk_parameter *parameter = &parameters[i];
        struct stk_named_tensor *tensor = &weights->tensors[weights->count++];
        *tensor = (struct stk_named_tensor){ .name = parameter->name,
                                             .dtype = STK_FILE_F32,
                                             .rank = parameter->rank,
                                             .data = *to,
                                             .bytes = parameter->elements * sizeof(float) };
        for (uint32_t axis = 0; axis < parameter->rank; axis++)
            tensor->shape[axis] = parameter->torch_shape[axis];
        stk_layout_to_file(model, parameter, arena + parameter->offset, *to);
        *to += parameter->elements;
    }
}

static void add_tracked(struct weights *weights, const stoker_trainer *trainer)
{
    const stoker_model *model = trainer->model;
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        if (model->layers[i].kind != STK_BATCH_NORM)
            continue;
        weights->tracked[count] = stk_tracked_name(&model->layers[i]);
        weights->batches[count] =
            (int64_t)(trainer->batches_before[count] + trainer->progress.passes);
        weights->tensors[weights->count++] =
            (struct stk_named_tensor){ .name = weights->tracked[count].text,
                                       .dtype = STK_FILE_I64,
                                       .data = &weights->batches[count],
                                       .bytes = sizeof(weights->batches[count]) };
        count++;
    }
}

static void weights_free(struct weights *weights)
{
    stk_free(weights->tensors);
    stk_free(weights->floats);
    stk_free(weights->tracked);
    stk_free(weights->batches);
}

/* Adds the tensors of both arenas, in the layout of the file. */
static int add_arenas(struct weights *weights, const stoker_trainer *trainer,
                      enum stk_arena parameters, stoker_error *error)
{
    const stoker_model *model = trainer->model;
    float *to = weights->floats;
    struct stk_view view;
    int rc = stk_gather_read(&view, trainer, parameters, error);
    if (rc != STOKER_OK)
        return rc;
    add_parameters(weights, model, model->parameters, model->parameter_count, view.floats, &to);
    stk_view_close(&view);
    rc = stk_gather_read(&view, trainer, STK_ARENA_STATISTICS, error);
    if (rc != STOKER_OK)
        return rc;
    add_parameters(weights, model, model->statistics, model->statistic_count, view.floats, &to);
    stk_view_close(&view);
    return STOKER_OK;
}

static int check_finite(const struct weights *weights, uint64_t floats, stoker_error *error)
{
    for (uint64_t i = 0; i < floats; i++)
        if (!isfinite(weights->floats[i]))
            return stk_refuse_option(error, STOKER_EDIVERGED,
                                     "training diverged: a weight is %g, so nothing was saved",
                                     (double)weights->floats[i]);
    return STOKER_OK;
}

/* Gathers the weights, or their averages (parameters = STK_ARENA_EMA). weights must not move:
 * tensors point into it. On failure nothing is left to free. */
static int weights_gather(struct weights *weights, const stoker_trainer *trainer,
                          enum stk_arena parameters, stoker_error *error)
{
    const stoker_model *model = trainer->model;
    uint64_t floats = model->parameter_elements;
    for (uint32_t i = 0; i < model->statistic_count; i++)
        floats += model->statistics[i].elements;
    /* A BatchNorm has two statistics and one count of passes. */
    const uint32_t tracked = model->statistic_count / 2;
    const uint32_t tensors = model->parameter_count + model->statistic_count + tracked;
    *weights = (struct weights){ .count = 0 };
    weights->tensors = stk_calloc(tensors, sizeof(*weights->tensors));
    weights->floats = stk_calloc(floats, sizeof(*weights->floats));
    weights->tracked = stk_calloc(tracked + 1, sizeof(*weights->tracked));
    weights->batches = stk_calloc(tracked + 1, sizeof(*weights->batches));
    if (weights->tensors == NULL || weights->floats == NULL || weights->tracked == NULL ||
        weights->batches == NULL) {
        weights_free(weights);
        return stk_refuse_option(error, STOKER_ENOMEM, "save: a copy of the weights");
    }
    int rc = add_arenas(weights, trainer, parameters, error);
    if (rc == STOKER_OK)
        rc = check_finite(weights, floats, error);
    if (rc != STOKER_OK) {
        weights_free(weights);
        return rc;
    }
    add_tracked(weights, trainer);
    return STOKER_OK;
}

enum { STATE_ARENAS_MAX = STK_STATE_ARENAS_MAX + 2, STATE_TENSORS_MAX = STATE_ARENAS_MAX + 2 };

struct state {
    struct stk_named_tensor tensors[STATE_TENSORS_MAX];
    uint32_t count;
    struct stk_counters counters;
    struct stk_note notes[2];
    uint32_t note_count;
    struct stk_schedule_note schedule;
    struct stk_view views[STATE_ARENAS_MAX];
    uint32_t view_count;
};

static void state_add(struct state *state, const char *name, enum stk_file_dtype dtype,
                      uint64_t length, const void *data)
{
    state->tensors[state->count++] =
        (struct stk_named_tensor){ .name = name,
                                   .dtype = dtype,
                                   .rank = 1,
                                   .shape = { length },
                                   .data = data,
                                   .bytes = length * stk_file_dtype_bytes(dtype) };
}

static void state_close(struct state *state)
{
    for (uint32_t i = 0; i < state->view_count; i++)
        stk_view_close(&state->views[i]);
}

static int state_add_arena(struct state *state, const stoker_trainer *trainer, const char *name,
                           enum stk_arena which, stoker_error *error)
{
    struct stk_view *view = &state->views[state->view_count];
    int rc = stk_gather_read(view, trainer, which, error);
    if (rc != STOKER_OK)
        return rc;
    state->view_count++;
    state_add(state, name, STK_FILE_F32, trainer->model->parameter_floats, view->floats);
    return STOKER_OK;
}

static int state_add_arenas(struct state *state, const stoker_trainer *trainer, stoker_error *error)
{
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < trainer->state_count && rc == STOKER_OK; i++)
        rc = state_add_arena(state, trainer, stk_state_arena_name(i), STK_ARENA_STATE + i, error);
    if (rc == STOKER_OK && trainer->settings.ema_decay > 0)
        rc = state_add_arena(state, trainer, STK_NAME_EMA, STK_ARENA_EMA, error);
    if (rc == STOKER_OK && trainer->progress.group_passes > 0)
        rc = state_add_arena(state, trainer, STK_NAME_GRADIENTS, STK_ARENA_GRADIENTS, error);
    return rc;
}

/* state must not move: tensors point into it. The caller closes it, after a failure too. */
static int state_gather(struct state *state, const stoker_trainer *trainer,
                        const stoker_state *loader, stoker_error *error)
{
    memset(state, 0, sizeof(*state));
    state->counters = stk_counters_write(&trainer->progress);
    state_add(state, STK_NAME_COUNTERS, STK_FILE_U64, STK_COUNTERS, state->counters.value);
    int rc = state_add_arenas(state, trainer, error);
    if (loader != NULL)
        state_add(state, STK_NAME_LOADER, STK_FILE_U8, sizeof(loader->bytes), loader->bytes);
    state->schedule = stk_schedule_note(&trainer->settings.schedule);
    state->notes[state->note_count++] =
        (struct stk_note){ .key = STK_NOTE_OPTIMIZER,
                           .value = stk_optimizer_name(trainer->settings.rule.optimizer) };
    if (state->schedule.text[0] != '\0')
        state->notes[state->note_count++] =
            (struct stk_note){ .key = STK_NOTE_SCHEDULE, .value = state->schedule.text };
    return rc;
}

static struct stk_tensor_set set_of(const struct weights *weights, const stoker_trainer *trainer)
{
    return (struct stk_tensor_set){ .tensors = weights->tensors,
                                    .tensor_count = weights->count,
                                    .notes = trainer->notes.note,
                                    .note_count = trainer->notes.count };
}

/* Gathers the state and saves everything. */
static int save_gathered(const stoker_trainer *trainer, const char *path,
                         const stoker_state *loader, const struct weights *weights,
                         const struct weights *averages, stoker_error *error)
{
    struct state state;
    int rc = state_gather(&state, trainer, loader, error);
    const struct stk_tensor_set weights_set = set_of(weights, trainer);
    const struct stk_tensor_set averages_set = set_of(averages, trainer);
    const struct stk_tensor_set state_set = { .tensors = state.tensors,
                                              .tensor_count = state.count,
                                              .notes = state.notes,
                                              .note_count = state.note_count };
    if (rc == STOKER_OK)
        rc = stk_checkpoint_save(path, &weights_set, averages->count > 0 ? &averages_set : NULL,
                                 &state_set, error);
    state_close(&state);
    return rc;
}

/* Of a group under way rank 0 then has the gradients of all ranks, and the others none: their sum
 * stays. */
static int gather_group(stoker_trainer *trainer, stoker_error *error)
{
    if (trainer->progress.group_passes == 0 || !stk_trainer_has_peers(trainer))
        return STOKER_OK;
    const int rc = stk_trainer_sum_gradients(trainer, error);
    return stk_trainer_report_device(
        trainer, rc == STOKER_OK ? stk_trainer_clear_gradients(trainer, error) : rc, error);
}

static int save(stoker_trainer *trainer, const char *path, const stoker_state *loader,
                stoker_error *error)
{
    struct weights weights;
    struct weights averages = { .count = 0 };
    int rc = stk_trainer_sync(trainer, error);
    if (rc == STOKER_OK)
        rc = weights_gather(&weights, trainer, STK_ARENA_PARAMETERS, error);
    if (rc != STOKER_OK)
        return rc;
    if (trainer->settings.ema_decay > 0)
        rc = weights_gather(&averages, trainer, STK_ARENA_EMA, error);
    if (rc == STOKER_OK) {
        rc = save_gathered(trainer, path, loader, &weights, &averages, error);
        weights_free(&averages);
    }
    weights_free(&weights);
    return rc;
}

int stoker_trainer_save(stoker_trainer *trainer, const char *path, const stoker_state *loader,
                        stoker_error *error)
{
    if (trainer == NULL || path == NULL)
        return stk_refuse_option(error, STOKER_EINVAL, "save: trainer or path is NULL");
    int rc = stk_trainer_meet_to_read(trainer, error);
    if (rc == STOKER_OK)
        rc = gather_group(trainer, error);
    if (rc != STOKER_OK)
        return rc;
    if (trainer->peers->rank == 0)
        rc = save(trainer, path, loader, error);
    return stk_trainer_meet(trainer, STK_MEET_SAVE, rc, error);
}
