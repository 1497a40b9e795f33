/* stage.c - see stage.h.
 *
 * With 16-bit values the weights are kept a second time, rounded, for the operations that multiply
 * them:
 *
 *   parameters ──update──▶ half_weights        an update writes both
 *   parameters ──narrow──▶ half_weights        after they were written from outside, and after an evaluation
 *   average    ──narrow──▶ half_weights        for an evaluation with the moving average
 */
#include "trainer/stage/stage.h"

#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "trainer/stage/choose_backend.h"

static void describe_needs(struct stk_backend_options *options, const stoker_model *model)
{
    for (uint32_t i = 0; i < model->layer_count; i++) {
        options->needs_convolutions |= model->layers[i].kind == STK_CONV2D;
        options->needs_linear |= model->layers[i].kind == STK_LINEAR;
    }
}

static void describe_training(struct stk_stage *stage)
{
    const struct stk_trainer_settings *settings = &stage->settings;
    stage->training = (struct stk_training){ .rule = &settings->rule,
                                             .schedule = &settings->schedule,
                                             .clip_norm = settings->clip_norm,
                                             .ema_decay = settings->ema_decay,
                                             .dynamic = settings->loss_scale.dynamic,
                                             .split = settings->split > 0 };
}

int stk_stage_open(struct stk_stage *stage, const stoker_model *model,
                   const struct stk_trainer_settings *settings, uint32_t slots, stoker_error *error)
{
    stage->model = model;
    stage->settings = *settings;
    stage->slots = slots;
    describe_training(stage);
    describe_needs(&stage->settings.backend, model);
    return stk_backend_open(&stage->backend, &stage->ops, &stage->settings, error);
}

/* Allocates memory of the back end into the pointer at out; NULL for 0 bytes. */
static int allocate_part(struct stk_stage *stage, void *out, uint64_t bytes, const char *what,
                         stoker_error *error)
{
    void *memory = NULL;
    if (bytes > 0) {
        memory = bytes > SIZE_MAX ? NULL : stage->ops->allocate(stage->backend, (size_t)bytes);
        if (memory == NULL)
            return stk_refuse_option(error, STOKER_ENOMEM, "%llu bytes of %s",
                                     (unsigned long long)bytes, what);
    }
    memcpy(out, &memory, sizeof(memory));
    return STOKER_OK;
}

bool stk_stage_sums_passes(const struct stk_stage *stage)
{
    const struct stk_trainer_settings *const settings = &stage->settings;
    return settings->backend.deterministic && settings->accumulate > 1 && settings->split == 0 &&
           stage->ops->device == NULL;
}

/* Those that are missing. */
static int take_gradients(struct stk_stage *stage, stoker_error *error)
{
    const uint64_t bytes = stage->memory.parameters;
    float **const gradients = &stage->arenas.gradients;
    int rc = STOKER_OK;
    if (*gradients == NULL)
        rc = allocate_part(stage, gradients, bytes, "gradients", error);
    if (rc == STOKER_OK && stage->pass_gradients == NULL && stk_stage_sums_passes(stage))
        rc = allocate_part(stage, &stage->pass_gradients, bytes, "gradients of a pass", error);
    return rc;
}

static int take_arenas(struct stk_stage *stage, stoker_error *error)
{
    const uint64_t bytes = stage->memory.parameters;
    struct stk_arenas *arenas = &stage->arenas;
    int rc = allocate_part(stage, &arenas->parameters, bytes, "parameters", error);
    if (rc == STOKER_OK)
        rc = take_gradients(stage, error);
    if (rc == STOKER_OK)
        rc = allocate_part(stage, &arenas->statistics, stage->memory.statistics, "statistics",
                           error);
    if (rc == STOKER_OK)
        rc = allocate_part(stage, &arenas->activations, stage->memory.activations, "activations",
                           error);
    if (rc == STOKER_OK)
        rc = allocate_part(stage, &arenas->half_weights, stage->memory.stored_parameters,
                           "16-bit parameters", error);
    const uint32_t states = stk_optimizer_state_arenas(&stage->settings.rule);
    for (uint32_t i = 0; i < states && rc == STOKER_OK; i++)
        rc = allocate_part(stage, &stage->state[i], bytes, "optimizer state", error);
    if (rc == STOKER_OK && stage->settings.ema_decay > 0)
        rc = allocate_part(stage, &stage->ema, bytes, "averaged weights", error);
    return rc;
}

/* Only in a first stage has the second half of a plan operations. */
static int load_programs(struct stk_stage *stage, stoker_error *error)
{
    const struct stk_backend_ops *ops = stage->ops;
    stk_plan_cut(&stage->train_plan, stage->train_halves);
    stk_plan_cut(&stage->evaluation_plan, stage->evaluation_halves);
    int rc = ops->load(&stage->train, stage->backend, &stage->train_halves[0], error);
    if (rc == STOKER_OK && stage->train_halves[1].op_count > 0)
        rc = ops->load(&stage->backward, stage->backend, &stage->train_halves[1], error);
    if (rc == STOKER_OK)
        rc = ops->load(&stage->evaluation, stage->backend, &stage->evaluation_halves[0], error);
    return rc;
}

/* Overwrites arenas: only before they have contents. */
static int warm_up(const struct stk_stage *stage, struct stk_program *program, stoker_error *error)
{
    const uint32_t count = stage->settings.batch_size;
    const uint32_t last = stage->settings.last_batch_size;
    if (stage->ops->device == NULL || program == NULL)
        return STOKER_OK;
    int rc = stage->ops->device->warm(program, &stage->arenas, count, error);
    if (rc == STOKER_OK && last > 0 && last < count)
        rc = stage->ops->device->warm(program, &stage->arenas, last, error);
    return rc;
}

int stk_stage_allocate(struct stk_stage *stage, stoker_error *error)
{
    int rc = take_arenas(stage, error);
    if (rc == STOKER_OK)
        rc = load_programs(stage, error);
    if (rc == STOKER_OK && stage->ops->device != NULL)
        rc = stage->ops->device->start_training(stage->backend, &stage->training, error);
    if (rc == STOKER_OK)
        rc = warm_up(stage, stage->train, error);
    return rc == STOKER_OK ? warm_up(stage, stage->backward, error) : rc;
}

static void release_arenas(struct stk_stage *stage)
{
    void *const arenas[] = { stage->arenas.parameters,  stage->arenas.gradients,
                             stage->pass_gradients,     stage->arenas.statistics,
                             stage->arenas.activations, stage->arenas.half_weights,
                             stage->state[0],           stage->state[1],
                             stage->state[2],           stage->ema };
    _Static_assert(STK_STATE_ARENAS_MAX == 3, "each one is released");
    for (size_t i = 0; i < sizeof(arenas) / sizeof(arenas[0]); i++)
        if (arenas[i] != NULL)
            stage->ops->release(stage->backend, arenas[i]);
}

void stk_stage_close(struct stk_stage *stage)
{
    if (stage->backend != NULL) {
        stage->ops->unload(stage->evaluation);
        stage->ops->unload(stage->backward);
        stage->ops->unload(stage->train);
        release_arenas(stage);
        stage->ops->destroy(stage->backend);
    }
    stk_plan_free(&stage->evaluation_plan);
    stk_plan_free(&stage->train_plan);
}

void stk_stage_name(const struct stk_stage *stage, char text[STK_STAGE_NAME_BYTES])
{
    if (stage->ops == &stk_backend_cuda)
        (void)snprintf(text, STK_STAGE_NAME_BYTES, "%s:%u", stage->ops->name,
                       stage->settings.backend.device);
    else
        (void)snprintf(text, STK_STAGE_NAME_BYTES, "%s", stage->ops->name);
}

/* ---- trim and refill ------------------------------------------------------------- */

static uint64_t trim_program(const struct stk_stage *stage, struct stk_program *program)
{
    return stage->ops->device == NULL || program == NULL ? 0 : stage->ops->device->trim(program);
}

/* Releases the arena at `memory`, and returns its bytes. */
static uint64_t give(const struct stk_stage *stage, void *memory, uint64_t bytes)
{
    if (memory == NULL)
        return 0;
    stage->ops->release(stage->backend, memory);
    return bytes;
}

uint64_t stk_stage_trim(struct stk_stage *stage, bool between_groups)
{
    struct stk_arenas *const arenas = &stage->arenas;
    uint64_t bytes = trim_program(stage, stage->train) + trim_program(stage, stage->evaluation) +
                     trim_program(stage, stage->backward);
    bytes += give(stage, arenas->activations, stage->memory.activations);
    arenas->activations = NULL;
    if (between_groups) {
        bytes += give(stage, stage->pass_gradients, 0);
        bytes += give(stage, arenas->gradients, stage->memory.gradients);
        stage->pass_gradients = NULL;
        arenas->gradients = NULL;
    }
    return bytes;
}

int stk_stage_refill(struct stk_stage *stage, stoker_error *error)
{
    struct stk_arenas *const arenas = &stage->arenas;
    int rc = STOKER_OK;
    if (arenas->activations == NULL)
        rc = allocate_part(stage, &arenas->activations, stage->memory.activations, "activations",
                           error);
    return rc == STOKER_OK ? take_gradients(stage, error) : rc;
}

/* ---- what a pass or an update uses ------------------------------------------------ */

int stk_stage_round_weights(struct stk_stage *stage, const float *weights, stoker_error *error)
{
    if (stage->arenas.half_weights == NULL || stage->half_weights_from == weights)
        return STOKER_OK;
    stage->half_weights_from = NULL;
    const int rc =
        stage->ops->narrow(stage->backend, stage->arenas.half_weights, weights,
                           stage->model->parameter_floats, stage->settings.backend.storage, error);
    if (rc == STOKER_OK)
        stage->half_weights_from = weights;
    return rc;
}

struct stk_update stk_stage_update_of(const struct stk_stage *stage)
{
    struct stk_update update = {
        .rule = &stage->settings.rule,
        .parameters = stage->arenas.parameters,
        .gradients = stage->arenas.gradients,
        .ema = stage->ema,
        .ema_decay = stage->settings.ema_decay,
        .half_weights = stage->arenas.half_weights,
        .storage = stage->settings.backend.storage,
        .floats = stage->model->parameter_floats,
    };
    memcpy(update.state, stage->state, sizeof(update.state));
    return update;
}

struct stk_arenas stk_stage_evaluation_arenas(const struct stk_stage *stage)
{
    struct stk_arenas arenas = stage->arenas;
    arenas.gradients = NULL;
    if (stage->ema != NULL)
        arenas.parameters = stage->ema;
    return arenas;
}
