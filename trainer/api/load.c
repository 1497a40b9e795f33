/* load.c - continues from files: everything in them is checked before anything changes.
 *
 *   open ──▶ weights fit the model? ──▶ state fits the options? ──▶ copy: fails only with the device
 */
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory.h"
#include "trainer/api/checkpoint_names.h"
#include "trainer/api/counters.h"
#include "trainer/api/gather_arena.h"
#include "trainer/api/peers.h"
#include "trainer/files/checkpoint.h"
#include "trainer/files/file_floats.h"
#include "trainer/model/torch_layout.h"

/* A file, and where to report its errors. */
struct reading {
    const stoker_trainer *trainer;
    const char *path;
    const struct stk_tensor_set *set;
    stoker_error *error;
};

static int refuse_tensor(const struct reading *reading, int code, const char *name, const char *why)
{
    struct stk_place place = STK_NOWHERE;
    place.path = reading->path;
    return stk_error_set(reading->error, code, STOKER_STAGE_OPEN, &place, "%s: %s", name, why);
}

/* ---- weights --------------------------------------------------------------------- */

static bool shape_is(const struct stk_named_tensor *tensor, const struct stk_parameter *parameter)
{
    if (tensor->rank != parameter->rank)
        return false;
    for (uint32_t axis = 0; axis < tensor->rank; axis++)
        if (tensor->shape[axis] != parameter->torch_shape[axis])
            return false;
    return true;
}

static int check_parameters(const struct reading *reading, const struct stk_parameter *parameters,
                            uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct stk_named_tensor *tensor = stk_tensor_find(reading->set, parameters[i].name);
        if (tensor == NULL)
            return refuse_tensor(reading, STOKER_EMISMATCH, parameters[i].name,
                                 "missing in the file");
        if (!stk_holds_floats(tensor->dtype))
            return refuse_tensor(reading, STOKER_EMISMATCH, parameters[i].name,
                                 "not of type F32, F16, BF16 or F64");
        if (!shape_is(tensor, &parameters[i]))
            return refuse_tensor(reading, STOKER_EMISMATCH, parameters[i].name,
                                 "another shape than in the model");
    }
    return STOKER_OK;
}

static bool names_one(const struct stk_parameter *parameters, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(parameters[i].name, name) == 0)
            return true;
    return false;
}

static bool is_tracked(const char *name)
{
    static const char suffix[] = ".num_batches_tracked";
    const size_t length = strlen(name);
    return length >= sizeof(suffix) && strcmp(name + length - (sizeof(suffix) - 1), suffix) == 0;
}

/* All tensors of the model were found; refuses others. */
static int check_nothing_more(const struct reading *reading)
{
    const stoker_model *model = reading->trainer->model;
    uint32_t others = 0;
    for (uint32_t i = 0; i < reading->set->tensor_count; i++)
        others += is_tracked(reading->set->tensors[i].name) ? 0 : 1;
    if (others == model->parameter_count + model->statistic_count)
        return STOKER_OK;
    for (uint32_t i = 0; i < reading->set->tensor_count; i++) {
        const char *name = reading->set->tensors[i].name;
        if (!is_tracked(name) && !names_one(model->parameters, model->parameter_count, name) &&
            !names_one(model->statistics, model->statistic_count, name))
            return refuse_tensor(reading, STOKER_EMISMATCH, name, "not in the model");
    }
    return refuse_tensor(reading, STOKER_EMISMATCH, "tensors", "not as many as the model has");
}

static int check_weights(const struct reading *reading)
{
    const stoker_model *model = reading->trainer->model;
    int rc = check_parameters(reading, model->parameters, model->parameter_count);
    if (rc == STOKER_OK)
        rc = check_parameters(reading, model->statistics, model->statistic_count);
    return rc == STOKER_OK ? check_nothing_more(reading) : rc;
}

/* wide: a buffer for the largest tensor that is not F32. */
static void copy_parameters(const struct stk_tensor_set *set, const stoker_model *model,
                            const struct stk_parameter *parameters, uint32_t count, float *wide,
                            float *arena)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct stk_named_tensor *tensor = stk_tensor_find(set, parameters[i].name);
        const void *floats = tensor->data;
        if (tensor->dtype != STK_FILE_F32) {
            stk_read_floats(wide, tensor->data, tensor->dtype, parameters[i].elements);
            floats = wide;
        }
        stk_layout_from_file(model, &parameters[i], floats, arena + parameters[i].offset);
    }
}

/* Allocates a buffer to convert them one by one; NULL if all are F32. */
static int take_wide(float **out, const struct stk_tensor_set *set, stoker_error *error)
{
    uint64_t most = 0;
    *out = NULL;
    for (uint32_t i = 0; i < set->tensor_count; i++) {
        const struct stk_named_tensor *tensor = &set->tensors[i];
        const uint64_t elements = tensor->bytes / stk_file_dtype_bytes(tensor->dtype);
        if (tensor->dtype != STK_FILE_F32 && stk_holds_floats(tensor->dtype) && elements > most)
            most = elements;
    }
    if (most > 0)
        *out = stk_calloc(most, sizeof(float));
    return most == 0 || *out != NULL
               ? STOKER_OK
               : stk_refuse_option(error, STOKER_ENOMEM, "load: a tensor in float32");
}

/* Copies num_batches_tracked of each BatchNorm, if the file has it. */
static void copy_tracked(stoker_trainer *trainer, const struct stk_tensor_set *set)
{
    const stoker_model *model = trainer->model;
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        if (model->layers[i].kind != STK_BATCH_NORM)
            continue;
        const struct stk_tracked_name name = stk_tracked_name(&model->layers[i]);
        const struct stk_named_tensor *tensor = stk_tensor_find(set, name.text);
        uint64_t batches;
        if (tensor != NULL && tensor->dtype == STK_FILE_I64 && tensor->bytes == sizeof(batches)) {
            memcpy(&batches, tensor->data, sizeof(batches));
            trainer->batches_before[count] = batches - trainer->progress.passes;
        }
        count++;
    }
}

/* averages_too: restarts the moving average of the weights from them. */
static int copy_weights(stoker_trainer *trainer, const struct stk_tensor_set *set,
                        bool averages_too, stoker_error *error)
{
    const stoker_model *model = trainer->model;
    struct stk_view parameters;
    struct stk_view statistics = STK_VIEW_CLOSED;
    float *wide;
    int rc = take_wide(&wide, set, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_gather_blank(&parameters, trainer, STK_ARENA_PARAMETERS, error);
    if (rc == STOKER_OK)
        rc = stk_gather_blank(&statistics, trainer, STK_ARENA_STATISTICS, error);
    if (rc != STOKER_OK)
        goto close;
    copy_parameters(set, model, model->parameters, model->parameter_count, wide, parameters.floats);
    copy_parameters(set, model, model->statistics, model->statistic_count, wide, statistics.floats);
    copy_tracked(trainer, set);
    for (uint32_t s = 0; s < trainer->stage_count; s++)
        trainer->stage[s]->half_weights_from = NULL;
    rc = stk_gather_store(&parameters, trainer, STK_ARENA_PARAMETERS, error);
    if (rc == STOKER_OK)
        rc = stk_gather_store(&statistics, trainer, STK_ARENA_STATISTICS, error);
    if (rc == STOKER_OK && averages_too && trainer->settings.ema_decay > 0)
        rc = stk_gather_write(trainer, STK_ARENA_EMA, parameters.floats, error);
close:
    stk_view_close(&statistics);
    stk_view_close(&parameters);
    stk_free(wide);
    return rc;
}

/* ---- state ----------------------------------------------------------------------- */

/* Returns the tensor of that name, type and length; NULL: *rc is the error. */
static const struct stk_named_tensor *find_row(const struct reading *reading, const char *name,
                                               enum stk_file_dtype dtype, uint64_t length, int *rc)
{
    const struct stk_named_tensor *tensor = stk_tensor_find(reading->set, name);
    if (tensor == NULL)
        *rc = refuse_tensor(reading, STOKER_EMISMATCH, name, "missing in the state");
    else if (tensor->dtype != dtype || tensor->rank != 1 || tensor->shape[0] != length)
        *rc = refuse_tensor(reading, STOKER_EMISMATCH, name, "wrong type or length");
    else
        return tensor;
    return NULL;
}

static int check_arena(const struct reading *reading, const char *name)
{
    int rc = STOKER_OK;
    (void)find_row(reading, name, STK_FILE_F32, reading->trainer->model->parameter_floats, &rc);
    return rc;
}

static int check_counters(const struct reading *reading, struct stk_progress *progress)
{
    struct stk_counters counters;
    int rc = STOKER_OK;
    const struct stk_named_tensor *tensor =
        find_row(reading, STK_NAME_COUNTERS, STK_FILE_U64, STK_COUNTERS, &rc);
    if (tensor == NULL)
        return rc;
    memcpy(&counters, tensor->data, sizeof(counters));
    *progress = reading->trainer->progress;
    progress->loss_scale = reading->trainer->settings.loss_scale;
    const char *why = stk_counters_read(&counters, progress);
    const uint64_t world_size = reading->trainer->peers->world_size; /* each makes one of them */
    progress->group_passes = (progress->group_batches + world_size - 1) / world_size;
    return why == NULL ? STOKER_OK : refuse_tensor(reading, STOKER_EFORMAT, STK_NAME_COUNTERS, why);
}

static int check_arenas(const struct reading *reading, const struct stk_progress *progress)
{
    const stoker_trainer *trainer = reading->trainer;
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < trainer->state_count && rc == STOKER_OK; i++)
        rc = check_arena(reading, stk_state_arena_name(i));
    if (rc == STOKER_OK && trainer->settings.ema_decay > 0)
        rc = check_arena(reading, STK_NAME_EMA);
    if (rc == STOKER_OK && progress->group_passes > 0)
        rc = check_arena(reading, STK_NAME_GRADIENTS);
    return rc;
}

/* The rate of some schedules depends on the length of the run: refuses another length. Another kind
 * of schedule is the caller's choice. */
static int check_schedule(const struct reading *reading)
{
    const struct stk_schedule_note ours = stk_schedule_note(&reading->trainer->settings.schedule);
    const char *const theirs = stk_note_find(reading->set, STK_NOTE_SCHEDULE);
    if (theirs == NULL || ours.text[0] == '\0' ||
        strncmp(theirs, ours.text, strcspn(ours.text, ",")) != 0 || strcmp(theirs, ours.text) == 0)
        return STOKER_OK;
    char why[256];
    (void)snprintf(
        why, sizeof(why),
        "the schedule of the checkpoint; this run has %s, which would change the rate: keep "
        "the length, or start a new schedule from the weights alone (--weights)",
        ours.text);
    return refuse_tensor(reading, STOKER_EMISMATCH, theirs, why);
}

static int check_state(const struct reading *reading, struct stk_progress *progress,
                       const struct stk_named_tensor **loader)
{
    const char *ours = stk_optimizer_name(reading->trainer->settings.rule.optimizer);
    const char *optimizer = stk_note_find(reading->set, STK_NOTE_OPTIMIZER);
    int rc = STOKER_OK;
    if (optimizer == NULL || strcmp(optimizer, ours) != 0)
        return refuse_tensor(reading, STOKER_EMISMATCH,
                             optimizer == NULL ? "no optimizer" : optimizer,
                             "the state of another optimizer");
    rc = check_schedule(reading);
    if (rc == STOKER_OK)
        rc = check_counters(reading, progress);
    if (rc == STOKER_OK)
        rc = check_arenas(reading, progress);
    *loader = NULL;
    if (rc == STOKER_OK && stk_tensor_find(reading->set, STK_NAME_LOADER) != NULL)
        *loader = find_row(reading, STK_NAME_LOADER, STK_FILE_U8, sizeof(stoker_state), &rc);
    return rc;
}

static int copy_arena(stoker_trainer *trainer, const struct stk_tensor_set *set, const char *name,
                      enum stk_arena which, stoker_error *error)
{
    return stk_gather_write(trainer, which, stk_tensor_find(set, name)->data, error);
}

static int copy_state(stoker_trainer *trainer, const struct stk_tensor_set *set,
                      const struct stk_progress *progress, stoker_error *error)
{
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < trainer->state_count && rc == STOKER_OK; i++)
        rc = copy_arena(trainer, set, stk_state_arena_name(i), STK_ARENA_STATE + i, error);
    if (rc == STOKER_OK && trainer->settings.ema_decay > 0)
        rc = copy_arena(trainer, set, STK_NAME_EMA, STK_ARENA_EMA, error);
    if (rc == STOKER_OK && progress->group_passes > 0)
        rc = copy_arena(trainer, set, STK_NAME_GRADIENTS, STK_ARENA_GRADIENTS, error);
    if (rc != STOKER_OK)
        return rc;
    trainer->progress = *progress;
    return stk_trainer_upload_state(trainer, error);
}

/* ---- public calls ---------------------------------------------------------------- */

static int load_open(stoker_trainer *trainer, const struct stk_checkpoint *checkpoint,
                     const char *path, stoker_state *loader, bool *has_loader, stoker_error *error)
{
    struct reading reading = {
        .trainer = trainer, .path = path, .set = &checkpoint->weights.set, .error = error
    };
    struct stk_progress progress = trainer->progress;
    const struct stk_named_tensor *loader_tensor = NULL;
    if (!checkpoint->has_state)
        return refuse_tensor(&reading, STOKER_EMISMATCH, "checkpoint",
                             "has weights only, no state to continue from");
    int rc = check_weights(&reading);
    if (rc != STOKER_OK)
        return rc;
    reading.set = &checkpoint->state.set;
    rc = check_state(&reading, &progress, &loader_tensor);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_trainer_drain(trainer, error);
    for (uint32_t s = 0; s < trainer->stage_count && rc == STOKER_OK; s++)
        rc = stk_stage_refill(trainer->stage[s], error); /* the file may have gradients */
    if (rc == STOKER_OK)
        rc = copy_weights(trainer, &checkpoint->weights.set, false, error);
    if (rc == STOKER_OK)
        rc = copy_state(trainer, &checkpoint->state.set, &progress, error);
    if (rc != STOKER_OK)
        return rc;
    copy_tracked(trainer, &checkpoint->weights.set); /* after the passes of the state */
    if (loader != NULL && loader_tensor != NULL)
        memcpy(loader->bytes, loader_tensor->data, sizeof(loader->bytes));
    if (has_loader != NULL)
        *has_loader = loader_tensor != NULL;
    return STOKER_OK;
}

/* The loader's state that a checkpoint has, if any. */
struct loaded {
    stoker_state loader;
    bool has_loader;
};

static int load(stoker_trainer *trainer, const char *path, struct loaded *loaded,
                stoker_error *error)
{
    struct stk_checkpoint checkpoint;
    int rc = stk_checkpoint_open(&checkpoint, path, STK_CHECKPOINT_WHOLE, error);
    if (rc != STOKER_OK)
        return rc;
    rc = load_open(trainer, &checkpoint, path, &loaded->loader, &loaded->has_loader, error);
    stk_checkpoint_close(&checkpoint);
    return rc;
}

/* The others take what rank 0 has read. */
static int share(stoker_trainer *trainer, int rc, struct loaded *loaded, stoker_error *error)
{
    rc = stk_trainer_meet(trainer, STK_MEET_LOAD, rc, error);
    if (rc == STOKER_OK)
        rc = stk_trainer_share_state(trainer, error);
    return rc == STOKER_OK ? stk_trainer_share_bytes(trainer, loaded, sizeof(*loaded), error) : rc;
}

int stoker_trainer_load(stoker_trainer *trainer, const char *path, stoker_state *loader,
                        bool *has_loader, stoker_error *error)
{
    struct loaded loaded = { .has_loader = false };
    if (trainer == NULL || path == NULL)
        return stk_refuse_option(error, STOKER_EINVAL, "load: trainer or path is NULL");
    int rc = trainer->peers->rank == 0 ? load(trainer, path, &loaded, error) : STOKER_OK;
    rc = share(trainer, rc, &loaded, error);
    if (rc != STOKER_OK)
        return rc;
    if (loader != NULL && loaded.has_loader)
        *loader = loaded.loader;
    if (has_loader != NULL)
        *has_loader = loaded.has_loader;
    return STOKER_OK;
}

/* The averages of the state become the weights, which were copied before. */
static int copy_averages(stoker_trainer *trainer, const struct stk_tensor_set *state,
                         stoker_error *error)
{
    int rc = copy_arena(trainer, state, STK_NAME_EMA, STK_ARENA_PARAMETERS, error);
    if (rc == STOKER_OK && trainer->settings.ema_decay > 0)
        rc = copy_arena(trainer, state, STK_NAME_EMA, STK_ARENA_EMA, error);
    return rc;
}

static int load_weights(stoker_trainer *trainer, const char *path, bool averages,
                        stoker_error *error)
{
    struct stk_checkpoint checkpoint;
    int rc = stk_checkpoint_open(
        &checkpoint, path, averages ? STK_CHECKPOINT_WHOLE : STK_CHECKPOINT_WEIGHTS_ONLY, error);
    if (rc != STOKER_OK)
        return rc;
    struct reading reading = {
        .trainer = trainer, .path = path, .set = &checkpoint.weights.set, .error = error
    };
    rc = check_weights(&reading);
    reading.set = &checkpoint.state.set;
    if (rc == STOKER_OK && averages)
        rc = check_arena(&reading, STK_NAME_EMA);
    if (rc == STOKER_OK)
        rc = stk_trainer_drain(trainer, error);
    if (rc == STOKER_OK)
        rc = copy_weights(trainer, &checkpoint.weights.set, true, error);
    if (rc == STOKER_OK && averages)
        rc = copy_averages(trainer, &checkpoint.state.set, error);
    stk_checkpoint_close(&checkpoint);
    return rc;
}

static int load_weights_together(stoker_trainer *trainer, const char *path, bool averages,
                                 stoker_error *error)
{
    struct loaded nothing = { .has_loader = false };
    const int rc =
        trainer->peers->rank == 0 ? load_weights(trainer, path, averages, error) : STOKER_OK;
    return share(trainer, rc, &nothing, error);
}

int stoker_trainer_load_weights(stoker_trainer *trainer, const char *path, stoker_error *error)
{
    if (trainer == NULL || path == NULL)
        return stk_refuse_option(error, STOKER_EINVAL, "load_weights: trainer or path is NULL");
    return load_weights_together(trainer, path, false, error);
}

int stoker_trainer_load_averages(stoker_trainer *trainer, const char *path, stoker_error *error)
{
    if (trainer == NULL || path == NULL)
        return stk_refuse_option(error, STOKER_EINVAL, "load_averages: trainer or path is NULL");
    return load_weights_together(trainer, path, true, error);
}
