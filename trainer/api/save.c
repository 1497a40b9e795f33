/* save.c - writes a checkpoint: the trainer as one set of tensors (checkpoint.h). */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/io/output_file.h"
#include "loader/base/memory/memory.h"
#include "trainer/api/checkpoint.h"
#include "trainer/api/counters.h"
#include "trainer/api/gather_arena.h"
#include "trainer/api/peers.h"
#include "trainer/files/safetensors.h"
#include "trainer/model/torch_layout.h"

enum { ARENAS_MAX = STK_STATE_ARENAS_MAX + 1, STATE_TENSORS_MAX = ARENAS_MAX + 2 };

/* ---- names ----------------------------------------------------------------------- */

struct stk_tensor_name stk_state_arena_name(uint32_t index)
{
    struct stk_tensor_name name;
    (void)snprintf(name.text, sizeof(name.text), "state.optimizer.%u", index);
    return name;
}

struct stk_tensor_name stk_tracked_name(const char *prefix, const struct stk_layer *layer)
{
    struct stk_tensor_name name;
    (void)snprintf(name.text, sizeof(name.text), "%s%s.num_batches_tracked", prefix, layer->name);
    return name;
}

struct stk_schedule_note stk_schedule_note(const struct stk_schedule *schedule)
{
    struct stk_schedule_note note = { "" };
    const bool one_cycle = schedule->kind == STK_SCHEDULE_ONE_CYCLE;
    if (one_cycle || schedule->kind == STK_SCHEDULE_COSINE)
        (void)snprintf(note.text, sizeof(note.text), "%s, %" PRIu64 " updates",
                       one_cycle ? "one-cycle" : "cosine", schedule->total_updates);
    return note;
}

/* ---- the set --------------------------------------------------------------------- */

/* The tensors, in file order, and what they point to. It must not move. */
struct saving {
    const stoker_trainer *trainer;
    struct stk_named_tensor *tensors;
    struct stk_tensor_name *names; /* one for each tensor */
    uint32_t count;
    float *floats;    /* model and averages, in the layout of the file */
    int64_t *batches; /* num_batches_tracked of each BatchNorm */
    struct stk_counters counters;
    struct stk_view views[ARENAS_MAX];
    uint32_t view_count;
    struct stk_note notes[STK_TRAINER_NOTES_MAX + 2];
    uint32_t note_count;
    struct stk_schedule_note schedule;
};

static struct stk_named_tensor *add_tensor(struct saving *saving, const char *prefix,
                                           const char *name, enum stk_file_dtype dtype,
                                           uint64_t length, const void *data)
{
    struct stk_tensor_name *const full = &saving->names[saving->count];
    struct stk_named_tensor *const tensor = &saving->tensors[saving->count++];
    (void)snprintf(full->text, sizeof(full->text), "%s%s", prefix, name);
    *tensor = (struct stk_named_tensor){ .name = full->text,
                                         .dtype = dtype,
                                         .rank = 1,
                                         .shape = { length },
                                         .data = data,
                                         .bytes = length * stk_file_dtype_bytes(dtype) };
    return tensor;
}

/* Add the arena's parameters or statistics, in PyTorch's layout; *to is where their floats go. */
static int add_parameters(struct saving *saving, const char *prefix, enum stk_arena which,
                          float **to, stoker_error *error)
{
    const stoker_model *const model = saving->trainer->model;
    const bool statistics = which == STK_ARENA_STATISTICS;
    const struct stk_parameter *const parameters =
        statistics ? model->statistics : model->parameters;
    struct stk_view view;
    const int rc = stk_gather_read(&view, saving->trainer, which, error);
    if (rc != STOKER_OK)
        return rc;
    for (uint32_t i = 0; i < (statistics ? model->statistic_count : model->parameter_count); i++) {
        const struct stk_parameter *const parameter = &parameters[i];
        struct stk_named_tensor *const tensor =
            add_tensor(saving, prefix, parameter->name, STK_FILE_F32, parameter->elements, *to);
        tensor->rank = parameter->rank;
        for (uint32_t axis = 0; axis < parameter->rank; axis++)
            tensor->shape[axis] = parameter->torch_shape[axis];
        stk_layout_to_file(model, parameter, view.floats + parameter->offset, *to);
        *to += parameter->elements;
    }
    stk_view_close(&view);
    return STOKER_OK;
}

static void add_tracked(struct saving *saving)
{
    const stoker_trainer *const trainer = saving->trainer;
    uint32_t count = 0;
    for (uint32_t i = 0; i < trainer->model->layer_count; i++) {
        const struct stk_layer *const layer = &trainer->model->layers[i];
        if (layer->kind != STK_BATCH_NORM)
            continue;
        int64_t *const batches = &saving->batches[count];
        *batches = (int64_t)(trainer->batches_before[count++] + trainer->progress.passes);
        add_tensor(saving, "", stk_tracked_name(STK_PREFIX_MODEL, layer).text, STK_FILE_I64, 1,
                   batches)
            ->rank = 0;
    }
}

static int check_finite(const float *from, const float *end, stoker_error *error)
{
    for (; from < end; from++)
        if (!isfinite(*from))
            return stk_refuse_option(error, STOKER_EDIVERGED,
                                     "training diverged: a weight is %g, so nothing was saved",
                                     (double)*from);
    return STOKER_OK;
}

static int add_model(struct saving *saving, stoker_error *error)
{
    float *to = saving->floats;
    int rc = add_parameters(saving, STK_PREFIX_MODEL, STK_ARENA_PARAMETERS, &to, error);
    if (rc == STOKER_OK)
        rc = add_parameters(saving, STK_PREFIX_MODEL, STK_ARENA_STATISTICS, &to, error);
    if (rc == STOKER_OK && saving->trainer->settings.ema_decay > 0)
        rc = add_parameters(saving, STK_PREFIX_EMA, STK_ARENA_EMA, &to, error);
    if (rc == STOKER_OK)
        rc = check_finite(saving->floats, to, error);
    add_tracked(saving);
    return rc;
}

static int add_arena(struct saving *saving, const char *name, enum stk_arena which,
                     stoker_error *error)
{
    struct stk_view *const view = &saving->views[saving->view_count];
    const int rc = stk_gather_read(view, saving->trainer, which, error);
    if (rc != STOKER_OK)
        return rc;
    saving->view_count++;
    (void)add_tensor(saving, "", name, STK_FILE_F32, saving->trainer->model->parameter_floats,
                     view->floats);
    return STOKER_OK;
}

static int add_state(struct saving *saving, const void *loader, size_t loader_bytes,
                     stoker_error *error)
{
    const stoker_trainer *const trainer = saving->trainer;
    int rc = STOKER_OK;
    saving->counters = stk_counters_write(&trainer->progress);
    (void)add_tensor(saving, "", STK_NAME_COUNTERS, STK_FILE_I64, STK_COUNTERS,
                     saving->counters.value);
    for (uint32_t i = 0; i < trainer->state_count && rc == STOKER_OK; i++)
        rc = add_arena(saving, stk_state_arena_name(i).text, STK_ARENA_STATE + i, error);
    if (rc == STOKER_OK && trainer->progress.group_passes > 0)
        rc = add_arena(saving, STK_NAME_GRADIENTS, STK_ARENA_GRADIENTS, error);
    if (loader_bytes > 0)
        (void)add_tensor(saving, "", STK_NAME_LOADER, STK_FILE_U8, loader_bytes, loader);
    return rc;
}

static void add_notes(struct saving *saving)
{
    const stoker_trainer *const trainer = saving->trainer;
    saving->notes[saving->note_count++] =
        (struct stk_note){ STK_NOTE_OPTIMIZER,
                           stk_optimizer_name(trainer->settings.rule.optimizer) };
    saving->schedule = stk_schedule_note(&trainer->settings.schedule);
    if (saving->schedule.text[0] != '\0')
        saving->notes[saving->note_count++] =
            (struct stk_note){ STK_NOTE_SCHEDULE, saving->schedule.text };
    for (uint32_t i = 0; i < trainer->notes.count; i++)
        saving->notes[saving->note_count++] = trainer->notes.note[i];
}

static int take_memory(struct saving *saving, stoker_error *error)
{
    const stoker_model *const model = saving->trainer->model;
    const uint64_t averages = saving->trainer->settings.ema_decay > 0 ? 1 : 0;
    const uint32_t tracked = model->statistic_count / 2; /* a BatchNorm has two statistics */
    const uint64_t tensors = model->parameter_count * (1 + averages) + model->statistic_count +
                             tracked + STATE_TENSORS_MAX;
    uint64_t floats = model->parameter_elements * (1 + averages);
    for (uint32_t i = 0; i < model->statistic_count; i++)
        floats += model->statistics[i].elements;
    saving->tensors = stk_calloc(tensors, sizeof(*saving->tensors));
    saving->names = stk_calloc(tensors, sizeof(*saving->names));
    saving->floats = stk_calloc(floats, sizeof(*saving->floats));
    saving->batches = stk_calloc(tracked + 1, sizeof(*saving->batches));
    return saving->tensors != NULL && saving->names != NULL && saving->floats != NULL &&
                   saving->batches != NULL
               ? STOKER_OK
               : stk_refuse_option(error, STOKER_ENOMEM, "save: a copy of the weights");
}

/* ---- the file -------------------------------------------------------------------- */

static int write_file(const char *path, const struct stk_tensor_set *set, stoker_error *error)
{
    struct stk_place place = { .path = path,
                               .offset = STOKER_NO_OFFSET,
                               .sample = STOKER_NO_SAMPLE };
    struct stk_output output = STK_OUTPUT_CLOSED;
    if (stk_output_is_in_place(path))
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPEN, &place,
                             "a checkpoint must be a regular file");
    place.os_errno = stk_output_open(&output, path);
    if (place.os_errno != 0)
        return stk_error_set(error, stk_error_from_errno(place.os_errno), STOKER_STAGE_OPEN, &place,
                             "open for writing");
    const int rc = stk_safetensors_write(output.fd, path, set, error);
    if (rc != STOKER_OK) {
        stk_output_drop(&output);
        return rc;
    }
    place.os_errno = stk_output_commit(&output);
    return place.os_errno == 0 ? STOKER_OK
                               : stk_error_set(error, stk_error_from_errno(place.os_errno),
                                               STOKER_STAGE_TRANSFER, &place, "fsync and rename");
}

/* Of a group under way rank 0 then has the gradients of all ranks, and the others none: their
 * sum stays. */
static int gather_group(stoker_trainer *trainer, stoker_error *error)
{
    if (trainer->progress.group_passes == 0 || !stk_trainer_has_peers(trainer))
        return STOKER_OK;
    const int rc = stk_trainer_sum_gradients(trainer, error);
    return stk_trainer_report_device(
        trainer, rc == STOKER_OK ? stk_trainer_clear_gradients(trainer, error) : rc, error);
}

static int save(stoker_trainer *trainer, const char *path, const void *loader, size_t loader_bytes,
                stoker_error *error)
{
    struct saving saving = { .trainer = trainer };
    int rc = stk_trainer_sync(trainer, error);
    if (rc == STOKER_OK)
        rc = take_memory(&saving, error);
    if (rc == STOKER_OK)
        rc = add_model(&saving, error);
    if (rc == STOKER_OK)
        rc = add_state(&saving, loader, loader_bytes, error);
    if (rc == STOKER_OK) {
        add_notes(&saving);
        const struct stk_tensor_set set = { .tensors = saving.tensors,
                                            .tensor_count = saving.count,
                                            .notes = saving.notes,
                                            .note_count = saving.note_count };
        rc = write_file(path, &set, error);
    }
    for (uint32_t i = 0; i < saving.view_count; i++)
        stk_view_close(&saving.views[i]);
    stk_free(saving.tensors);
    stk_free(saving.names);
    stk_free(saving.floats);
    stk_free(saving.batches);
    return rc;
}

int stoker_trainer_save(stoker_trainer *trainer, const char *path, const void *state, size_t size,
                        stoker_error *error)
{
    if (trainer == NULL || path == NULL || (state == NULL && size > 0))
        return stk_refuse_option(error, STOKER_EINVAL, "save: trainer, path or state is NULL");
    int rc = stk_trainer_reach_read(trainer, error);
    if (rc == STOKER_OK)
        rc = gather_group(trainer, error);
    if (rc != STOKER_OK)
        return rc;
    if (trainer->peers->rank == 0)
        rc = save(trainer, path, state, size, error);
    return stk_trainer_reach(trainer, STK_SYNC_SAVE, rc, error);
}
