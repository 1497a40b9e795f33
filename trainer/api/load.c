/* load.c - reads checkpoints and weights: everything is checked before anything changes.
 *
 *   open ──▶ weights fit the model? ──▶ state fits the options? ──▶ copy: only the device fails
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "trainer/api/checkpoint.h"
#include "trainer/api/counters.h"
#include "trainer/api/gather_arena.h"
#include "trainer/api/peers.h"
#include "trainer/files/safetensors.h"
#include "trainer/model/torch_layout.h"

/* A file, and where to report its errors. */
struct reading {
    const stoker_trainer *trainer;
    const char *path;
    const struct stk_tensor_set *set;
    const char *parameters, *statistics; /* prefixes of their names */
    stoker_error *error;
};

static int refuse_tensor(const struct reading *reading, int code, const char *name, const char *why)
{
    return stk_refuse_file(reading->error, code, reading->path, STOKER_NO_OFFSET, "%s: %s", name,
                           why);
}

static const struct stk_named_tensor *find_tensor(const struct stk_tensor_set *set,
                                                  const char *prefix, const char *name)
{
    struct stk_tensor_name full;
    (void)snprintf(full.text, sizeof(full.text), "%s%s", prefix, name);
    return stk_tensor_find(set, full.text);
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

static int check_parameters(const struct reading *reading, const char *prefix,
                            const struct stk_parameter *parameters, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct stk_named_tensor *tensor =
            find_tensor(reading->set, prefix, parameters[i].name);
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

/* All tensors of the model were found; refuses others that begin like its statistics. */
static int check_nothing_more(const struct reading *reading)
{
    const stoker_model *model = reading->trainer->model;
    const size_t prefix = strlen(reading->statistics);
    for (uint32_t i = 0; i < reading->set->tensor_count; i++) {
        const char *const full = reading->set->tensors[i].name;
        const char *const name = full + prefix;
        if (strncmp(full, reading->statistics, prefix) == 0 && !is_tracked(name) &&
            !names_one(model->parameters, model->parameter_count, name) &&
            !names_one(model->statistics, model->statistic_count, name))
            return refuse_tensor(reading, STOKER_EMISMATCH, full, "not in the model");
    }
    return STOKER_OK;
}

static int check_weights(const struct reading *reading)
{
    const stoker_model *model = reading->trainer->model;
    int rc =
        check_parameters(reading, reading->parameters, model->parameters, model->parameter_count);
    if (rc == STOKER_OK)
        rc = check_parameters(reading, reading->statistics, model->statistics,
                              model->statistic_count);
    return rc == STOKER_OK ? check_nothing_more(reading) : rc;
}

/* wide: a buffer for the largest tensor that is not F32. */
static void copy_parameters(const struct stk_tensor_set *set, const char *prefix,
                            const stoker_model *model, const struct stk_parameter *parameters,
                            uint32_t count, float *wide, float *arena)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct stk_named_tensor *tensor = find_tensor(set, prefix, parameters[i].name);
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
static void copy_tracked(stoker_trainer *trainer, const struct stk_tensor_set *set,
                         const char *prefix)
{
    const stoker_model *model = trainer->model;
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        if (model->layers[i].kind != STK_BATCH_NORM)
            continue;
        const struct stk_tensor_name name = stk_tracked_name(prefix, &model->layers[i]);
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
static int copy_weights(stoker_trainer *trainer, const struct reading *from, bool averages_too,
                        stoker_error *error)
{
    const stoker_model *model = trainer->model;
    const struct stk_tensor_set *const set = from->set;
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
    copy_parameters(set, from->parameters, model, model->parameters, model->parameter_count, wide,
                    parameters.floats);
    copy_parameters(set, from->statistics, model, model->statistics, model->statistic_count, wide,
                    statistics.floats);
    copy_tracked(trainer, set, from->statistics);
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
        *rc = refuse_tensor(reading, STOKER_EMISMATCH, name, "missing in the file");
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
        find_row(reading, STK_NAME_COUNTERS, STK_FILE_I64, STK_COUNTERS, &rc);
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
        rc = check_arena(reading, stk_state_arena_name(i).text);
    if (rc == STOKER_OK && trainer->settings.ema_decay > 0)
        rc = check_parameters(reading, STK_PREFIX_EMA, trainer->model->parameters,
                              trainer->model->parameter_count);
    if (rc == STOKER_OK && progress->group_passes > 0)
        rc = check_arena(reading, STK_NAME_GRADIENTS);
    return rc;
}

/* The rate of some schedules depends on the length of the run: refuses another length. Another
 * kind of schedule is the caller's choice. */
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
    *loader = stk_tensor_find(reading->set, STK_NAME_LOADER);
    if (rc == STOKER_OK && *loader != NULL)
        (void)find_row(reading, STK_NAME_LOADER, STK_FILE_U8, (*loader)->bytes, &rc);
    return rc;
}

static int copy_arena(stoker_trainer *trainer, const struct stk_tensor_set *set, const char *name,
                      enum stk_arena which, stoker_error *error)
{
    return stk_gather_write(trainer, which, stk_tensor_find(set, name)->data, error);
}

static int copy_averages(stoker_trainer *trainer, const struct stk_tensor_set *set,
                         stoker_error *error)
{
    const stoker_model *const model = trainer->model;
    struct stk_view view;
    float *wide;
    int rc = take_wide(&wide, set, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_gather_blank(&view, trainer, STK_ARENA_EMA, error);
    if (rc == STOKER_OK) {
        copy_parameters(set, STK_PREFIX_EMA, model, model->parameters, model->parameter_count, wide,
                        view.floats);
        rc = stk_gather_store(&view, trainer, STK_ARENA_EMA, error);
        stk_view_close(&view);
    }
    stk_free(wide);
    return rc;
}

static int copy_state(stoker_trainer *trainer, const struct stk_tensor_set *set,
                      const struct stk_progress *progress, stoker_error *error)
{
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < trainer->state_count && rc == STOKER_OK; i++)
        rc = copy_arena(trainer, set, stk_state_arena_name(i).text, STK_ARENA_STATE + i, error);
    if (rc == STOKER_OK && trainer->settings.ema_decay > 0)
        rc = copy_averages(trainer, set, error);
    if (rc == STOKER_OK && progress->group_passes > 0)
        rc = copy_arena(trainer, set, STK_NAME_GRADIENTS, STK_ARENA_GRADIENTS, error);
    if (rc != STOKER_OK)
        return rc;
    trainer->progress = *progress;
    return stk_trainer_upload_state(trainer, error);
}

/* ---- public calls ---------------------------------------------------------------- */

/* The loader's state: where the caller wants it, and what a checkpoint has. */
struct loaded {
    void *state; /* NULL: nowhere */
    size_t capacity;
    uint64_t size; /* 0 = it has none */
};

static int load_open(stoker_trainer *trainer, const struct stk_tensor_set *set, const char *path,
                     struct loaded *loaded, stoker_error *error)
{
    const struct reading reading = { .trainer = trainer,
                                     .path = path,
                                     .set = set,
                                     .parameters = STK_PREFIX_MODEL,
                                     .statistics = STK_PREFIX_MODEL,
                                     .error = error };
    struct stk_progress progress = trainer->progress;
    const struct stk_named_tensor *loader = NULL;
    if (stk_tensor_find(set, STK_NAME_COUNTERS) == NULL)
        return refuse_tensor(&reading, STOKER_EMISMATCH, "checkpoint",
                             "has weights only, no state to continue from");
    int rc = check_weights(&reading);
    if (rc == STOKER_OK)
        rc = check_state(&reading, &progress, &loader);
    if (rc != STOKER_OK)
        return rc;
    loaded->size = loader == NULL ? 0 : loader->bytes;
    if (loaded->state != NULL && loaded->capacity < loaded->size)
        return stk_refuse_option(error, STOKER_ELIMIT,
                                 "load: capacity is %zu bytes, the loader's state has %" PRIu64,
                                 loaded->capacity, loaded->size);
    rc = stk_trainer_drain(trainer, error);
    for (uint32_t s = 0; s < trainer->stage_count && rc == STOKER_OK; s++)
        rc = stk_stage_refill(trainer->stage[s], error); /* the file may have gradients */
    if (rc == STOKER_OK)
        rc = copy_weights(trainer, &reading, false, error);
    if (rc == STOKER_OK)
        rc = copy_state(trainer, set, &progress, error);
    if (rc != STOKER_OK)
        return rc;
    copy_tracked(trainer, set, STK_PREFIX_MODEL); /* after the passes of the state */
    if (loaded->state != NULL && loader != NULL)
        memcpy(loaded->state, loader->data, loaded->size);
    return STOKER_OK;
}

static int load(stoker_trainer *trainer, const char *path, struct loaded *loaded,
                stoker_error *error)
{
    struct stk_safetensors file;
    int rc = stk_safetensors_open(&file, path, error);
    if (rc != STOKER_OK)
        return rc;
    rc = load_open(trainer, &file.set, path, loaded, error);
    stk_safetensors_close(&file);
    return rc;
}

/* Give the others the loader's state. A rank without room takes part. */
static int share_loader(stoker_trainer *trainer, struct loaded *loaded, stoker_error *error)
{
    uint8_t piece[256] = { 0 };
    uint64_t sizes[2] = { loaded->size, loaded->state == NULL ? 0 : loaded->size };
    int rc = stk_trainer_share_bytes(trainer, sizes, sizeof(sizes), error);
    loaded->size = sizes[0];
    for (uint64_t at = 0; at < sizes[1] && rc == STOKER_OK; at += sizeof(piece)) {
        const uint64_t left = sizes[1] - at;
        const size_t bytes = left < sizeof(piece) ? left : sizeof(piece);
        uint8_t *const place = loaded->state != NULL && loaded->capacity >= at + bytes
                                   ? (uint8_t *)loaded->state + at
                                   : piece;
        rc = stk_trainer_share_bytes(trainer, place, bytes, error);
    }
    return rc;
}

/* The others continue from what rank 0 has read. */
static int share(stoker_trainer *trainer, int rc, struct loaded *loaded, stoker_error *error)
{
    rc = stk_trainer_reach(trainer, STK_SYNC_LOAD, rc, error);
    if (rc == STOKER_OK)
        rc = stk_trainer_share_state(trainer, error);
    return rc == STOKER_OK && stk_trainer_has_peers(trainer) ? share_loader(trainer, loaded, error)
                                                             : rc;
}

int stoker_trainer_load(stoker_trainer *trainer, const char *path, void *state, size_t capacity,
                        size_t *size, stoker_error *error)
{
    struct loaded loaded = { .state = state, .capacity = capacity };
    if (trainer == NULL || path == NULL)
        return stk_refuse_option(error, STOKER_EINVAL, "load: trainer or path is NULL");
    int rc = trainer->peers->rank == 0 ? load(trainer, path, &loaded, error) : STOKER_OK;
    rc = share(trainer, rc, &loaded, error);
    if (rc == STOKER_OK && state != NULL && loaded.size > capacity) /* of this rank alone */
        rc = stk_refuse_option(error, STOKER_ELIMIT,
                               "the loader's state has %" PRIu64 " bytes, and capacity is %zu",
                               (uint64_t)loaded.size, capacity);
    if (size != NULL && (rc == STOKER_OK || rc == STOKER_ELIMIT))
        *size = loaded.size;
    return rc;
}

static int load_weights(stoker_trainer *trainer, const char *path, bool averages,
                        stoker_error *error)
{
    struct stk_safetensors file;
    int rc = stk_safetensors_open(&file, path, error);
    if (rc != STOKER_OK)
        return rc;
    /* A file of another program has the model alone, and no prefixes. */
    const bool ours = stk_tensor_find(&file.set, STK_NAME_COUNTERS) != NULL;
    const struct reading reading = { .trainer = trainer,
                                     .path = path,
                                     .set = &file.set,
                                     .parameters = averages ? STK_PREFIX_EMA
                                                   : ours   ? STK_PREFIX_MODEL
                                                            : "",
                                     .statistics = ours ? STK_PREFIX_MODEL : "",
                                     .error = error };
    rc = check_weights(&reading);
    if (rc == STOKER_OK)
        rc = stk_trainer_drain(trainer, error);
    if (rc == STOKER_OK)
        rc = copy_weights(trainer, &reading, true, error);
    stk_safetensors_close(&file);
    return rc;
}

static int load_weights_together(stoker_trainer *trainer, const char *path, bool averages,
                                 stoker_error *error)
{
    struct loaded nothing = { .state = NULL };
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
