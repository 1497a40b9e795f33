/* cuda_program.c - a plan made ready for a GPU, and run.
 *
 *   count of samples ──▶ set: each convolution and linear layer of the plan, made for that count
 *                        full: plan.batch         made by load
 *                        part: a smaller batch    made when it first comes, the last such is kept
 *
 *   scratch, one allocation:   samples │ labels │ tickets │ workspace: the most that one operation takes
 *
 * A batch is copied to scratch first: the loader has its memory back as soon as the stream is past
 * that, and what runs afterwards finds it at the same addresses each time. */
#include <assert.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory.h"
#include "trainer/backend/cuda.h"
#include "trainer/backend/cuda_conv.h"
#include "trainer/backend/cuda_linear.h"
#include "trainer/plan/precision.h"

static const struct stk_place nowhere = STK_NOWHERE;

/* What one operation has of its own; neither = a kernel of ours. */
struct made {
    struct stk_cuda_conv *conv;
    struct stk_cuda_linear *linear;
};

struct set {
    uint32_t count;    /* 0 = not made */
    struct made *made; /* one for each operation of the plan */
};

/* Offsets into scratch, bytes. */
struct layout {
    uint64_t labels, tickets, workspace, end;
    uint64_t workspace_bytes;
};

struct stk_program {
    struct stk_backend *backend;
    const struct stk_plan *plan;
    struct set full, part;
    struct stk_cuda_math
        part_math; /* what a part is made with, and borrows: the back end's, but for the
                                       workspace, which is there already */
    struct layout layout;
    uint8_t *scratch;
    bool drops; /* there is dropout in it */
    struct stk_cuda_recordings recordings;
};

/* ---- operations made for a count ------------------------------------------------------------------ */

static bool direction_of(enum stk_op_kind kind, enum stk_cuda_direction *direction)
{
    switch (kind) {
    case STK_OP_CONV_FORWARD:
    case STK_OP_LINEAR_FORWARD:
        *direction = STK_CUDA_FORWARD;
        return true;
    case STK_OP_CONV_BACKWARD_DATA:
    case STK_OP_LINEAR_BACKWARD_DATA:
        *direction = STK_CUDA_BACKWARD_DATA;
        return true;
    case STK_OP_CONV_BACKWARD_WEIGHTS:
    case STK_OP_LINEAR_BACKWARD_WEIGHTS:
        *direction = STK_CUDA_BACKWARD_WEIGHTS;
        return true;
    default:
        return false;
    }
}

static int make_one(struct made *made, const struct stk_program *program,
                    const struct stk_cuda_math *math, const struct stk_op *op, uint32_t count,
                    stoker_error *error)
{
    const struct stk_layer *const layer = &program->plan->model->layers[op->layer];
    enum stk_cuda_direction direction;
    if (!direction_of(op->kind, &direction))
        return STOKER_OK;
    if (layer->kind == STK_CONV2D)
        return stk_cuda_conv_create(&made->conv, math, layer, direction, op->relu, count, error);
    return stk_cuda_linear_create(&made->linear, math, layer, direction, op->relu, count, error);
}

static void drop_set(struct set *set, const struct stk_plan *plan)
{
    for (uint32_t i = 0; set->made != NULL && i < plan->op_count; i++) {
        stk_cuda_conv_destroy(&set->made[i].conv);
        stk_cuda_linear_destroy(&set->made[i].linear);
    }
    stk_free(set->made);
    *set = (struct set){ 0 };
}

static int make_set(struct set *set, const struct stk_program *program,
                    const struct stk_cuda_math *math, uint32_t count, stoker_error *error)
{
    const struct stk_plan *const plan = program->plan;
    set->made = stk_calloc(plan->op_count, sizeof(*set->made));
    if (set->made == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPTIONS, &nowhere,
                             "a plan for cuda");
    for (uint32_t i = 0; i < plan->op_count; i++) {
        const int rc = make_one(&set->made[i], program, math, &plan->ops[i], count, error);
        if (rc != STOKER_OK) {
            drop_set(set, plan);
            return rc;
        }
    }
    set->count = count;
    return STOKER_OK;
}

/* The set for so many samples; a smaller batch keeps to the workspace that there is. */
static int find_set(struct stk_program *program, uint32_t count, struct set **out,
                    stoker_error *error)
{
    *out = count == program->full.count ? &program->full : &program->part;
    if ((*out)->count == count)
        return STOKER_OK;
    if (program->part.count > 0)
        stk_cuda_recordings_drop(program->backend, &program->recordings, program->part.count);
    drop_set(&program->part, program->plan);
    return make_set(&program->part, program, &program->part_math, count, error);
}

/* ---- scratch --------------------------------------------------------------------------------------- */

static uint64_t label_bytes(const struct stk_plan *plan)
{
    const struct stk_layer *const loss = &plan->model->layers[plan->model->layer_count - 1];
    return loss->kind == STK_MSE ? stk_shape_elements(loss->in) * sizeof(float) : sizeof(int64_t);
}

static uint64_t workspace_of(const struct stk_program *program, uint32_t i)
{
    const struct made *const made = &program->full.made[i];
    if (made->conv != NULL)
        return stk_cuda_conv_workspace_bytes(made->conv);
    if (made->linear != NULL)
        return stk_cuda_linear_workspace_bytes(made->linear);
    return stk_cuda_operation_workspace(program->plan, &program->plan->ops[i],
                                        program->plan->options.batch);
}

static uint64_t tickets_of(const struct stk_plan *plan, const struct stk_op *op)
{
    enum stk_cuda_direction direction;
    if (direction_of(op->kind, &direction))
        return stk_cuda_tickets(plan->model->layers[op->layer].out.c);
    return stk_cuda_operation_tickets(plan, op);
}

static void lay_out(struct stk_program *program)
{
    const struct stk_plan *const plan = program->plan;
    const uint64_t batch = plan->options.batch;
    struct layout *const layout = &program->layout;
    uint64_t tickets = 0;
    for (uint32_t i = 0; i < plan->op_count; i++) {
        const uint64_t words = tickets_of(plan, &plan->ops[i]);
        const uint64_t bytes = workspace_of(program, i);
        tickets = words > tickets ? words : tickets;
        program->drops = program->drops || plan->ops[i].kind == STK_OP_DROPOUT_FORWARD ||
                         plan->ops[i].kind == STK_OP_DROPOUT_BACKWARD;
        layout->workspace_bytes = bytes > layout->workspace_bytes ? bytes : layout->workspace_bytes;
    }
    layout->labels = stk_cuda_aligned(batch * plan->sample_bytes);
    layout->tickets = layout->labels + stk_cuda_aligned(batch * label_bytes(plan));
    layout->workspace = layout->tickets + stk_cuda_aligned(tickets * sizeof(uint32_t));
    layout->end = layout->workspace + stk_cuda_aligned(layout->workspace_bytes);
}

/* Kernels count elements in 32 bits. */
static int check_sizes(const struct stk_plan *plan, stoker_error *error)
{
    const uint64_t batch = plan->options.batch;
    for (uint32_t i = 0; i < plan->model->layer_count; i++) {
        const struct stk_layer *const layer = &plan->model->layers[i];
        if (stk_shape_elements(layer->out) > INT32_MAX / batch)
            return stk_error_set(error, STOKER_ELIMIT, STOKER_STAGE_OPTIONS, &nowhere,
                                 "back end cuda: layer %s: a batch of %u has 2^31 numbers and more",
                                 layer->name, plan->options.batch);
    }
    return STOKER_OK;
}

/* ---- load ------------------------------------------------------------------------------------------ */

/* Everything but the scratch's memory. The device is current. */
static int make(struct stk_program **out, struct stk_backend *backend, const struct stk_plan *plan,
                stoker_error *error)
{
    int rc = stk_operands_check_plan(plan, error);
    if (rc == STOKER_OK)
        rc = check_sizes(plan, error);
    if (rc != STOKER_OK)
        return rc;
    struct stk_program *program = stk_calloc(1, sizeof(*program));
    if (program == NULL) {
        (void)stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPTIONS, &nowhere,
                            "a plan for cuda");
        return STOKER_ENOMEM;
    }
    program->backend = backend;
    program->plan = plan;
    rc = make_set(&program->full, program, &backend->math, plan->options.batch, error);
    if (rc != STOKER_OK) {
        stk_free(program);
        return rc;
    }
    lay_out(program);
    program->part_math = backend->math;
    program->part_math.rules.workspace_bytes_max = program->layout.workspace_bytes;
    *out = program;
    return STOKER_OK;
}

/* Taken by load, and after a trim by what runs next. The device is current. */
static int take_scratch(struct stk_program *program, stoker_error *error)
{
    if (program->scratch == NULL)
        program->scratch = stk_cuda_take(program->backend, program->layout.end, error);
    return program->scratch == NULL ? STOKER_EDEVICE : STOKER_OK;
}

uint64_t stk_cuda_program_trim(struct stk_program *program)
{
    struct stk_backend *const backend = program->backend;
    const uint64_t bytes = program->scratch == NULL ? 0 : program->layout.end;
    int before;
    if (stk_cuda_enter(backend, &before, NULL) != STOKER_OK)
        return 0;
    stk_cuda_drain(backend);
    stk_cuda_recordings_drop(backend, &program->recordings, 0);
    stk_cuda_give(backend, program->scratch);
    program->scratch = NULL;
    stk_cuda_leave(backend, before);
    return bytes;
}

void stk_cuda_program_unload(struct stk_program *program)
{
    if (program == NULL)
        return;
    struct stk_backend *const backend = program->backend;
    int before;
    const bool entered = stk_cuda_enter(backend, &before, NULL) == STOKER_OK;
    stk_cuda_drain(backend);
    stk_cuda_recordings_drop(backend, &program->recordings, 0);
    drop_set(&program->part, program->plan);
    drop_set(&program->full, program->plan);
    stk_cuda_give(backend, program->scratch);
    if (entered)
        stk_cuda_leave(backend, before);
    stk_free(program);
}

int stk_cuda_workspace_bytes(struct stk_backend *backend, const struct stk_plan *plan,
                             uint64_t *out, stoker_error *error)
{
    struct stk_program *program = NULL;
    int before;
    int rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = make(&program, backend, plan, error);
    stk_cuda_leave(backend, before);
    if (rc == STOKER_OK)
        *out = program->layout.end;
    stk_cuda_program_unload(program);
    return rc;
}

int stk_cuda_program_load(struct stk_program **out, struct stk_backend *backend,
                          const struct stk_plan *plan, stoker_error *error)
{
    struct stk_program *program = NULL;
    int before;
    int rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = make(&program, backend, plan, error);
    if (rc == STOKER_OK)
        rc = take_scratch(program, error);
    stk_cuda_leave(backend, before);
    if (rc == STOKER_OK)
        *out = program;
    else
        stk_cuda_program_unload(program);
    return rc;
}

/* ---- run ------------------------------------------------------------------------------------------- */

/* A parameter as convolutions and linear layers read it: rounded, where T is narrow. */
static const void *weight_of(const struct stk_plan *plan, const struct stk_arenas *arenas,
                             int32_t index)
{
    if (index < 0)
        return NULL;
    const uint64_t offset = plan->model->parameters[index].offset;
    if (!stk_is_narrow(plan->storage))
        return arenas->parameters + offset;
    return (const uint8_t *)arenas->stored + offset * stoker_dtype_bytes(plan->storage);
}

static int run_conv_or_linear(struct stk_program *program, const struct made *made,
                              const struct stk_operands *o, const struct stk_arenas *arenas,
                              const struct stk_cuda_scratch *scratch, stoker_error *error)
{
    const struct stk_cuda_operands operands = {
        .x = o->x,
        .weight = weight_of(program->plan, arenas, o->layer->weight),
        .bias = weight_of(program->plan, arenas, o->layer->bias),
        .y = o->y,
        .dy = o->dy,
        .dx = o->dx,
        .weight_grad = o->weight_grad,
        .bias_grad = o->bias_grad,
        .workspace = scratch->workspace,
        .tickets = scratch->tickets
    };
    if (made->conv != NULL)
        return stk_cuda_conv_run(made->conv, &operands, program->backend->stream, error);
    return stk_cuda_linear_run(made->linear, &operands, program->backend->stream, error);
}

/* pass: samples and labels in scratch. */
static int queue_operations(struct stk_program *program, const struct set *set,
                            const struct stk_arenas *arenas, const struct stk_pass *pass,
                            const struct stk_cuda_pass *beside, stoker_error *error)
{
    const struct stk_plan *const plan = program->plan;
    const struct stk_cuda_scratch scratch = {
        .workspace = program->scratch + program->layout.workspace,
        .tickets = (void *)(program->scratch + program->layout.tickets)
    };
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < plan->op_count && rc == STOKER_OK; i++) {
        const struct made *const made = &set->made[i];
        struct stk_operands operands;
        stk_operands_find(&operands, plan, &plan->ops[i], arenas, pass, 0, pass->count);
        if (made->conv != NULL || made->linear != NULL)
            rc = run_conv_or_linear(program, made, &operands, arenas, &scratch, error);
        else
            rc = stk_cuda_operation(program->backend, &operands, &scratch, beside, error);
    }
    return rc;
}

/* All there is to be before a pass of so many samples is queued; nothing of it may come in a recording. */
static int make_ready(struct stk_program *program, uint32_t count, struct set **out,
                      stoker_error *error)
{
    const int rc = take_scratch(program, error);
    return rc == STOKER_OK ? find_set(program, count, out, error) : rc;
}

static enum cudaMemcpyKind kind_of(bool on_device)
{
    return on_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
}

/* The batch into scratch, as far as there is one; *in_scratch is the pass that finds it there. */
static int queue_batch(struct stk_program *program, const struct stk_pass *pass,
                       struct stk_pass *in_scratch, stoker_error *error)
{
    const struct stk_plan *const plan = program->plan;
    uint8_t *const labels = program->scratch + program->layout.labels;
    int rc = STOKER_OK;
    *in_scratch = *pass;
    in_scratch->samples = (const float *)(void *)program->scratch;
    if (pass->samples != NULL)
        rc = stk_cuda_copy(program->backend, program->scratch, pass->samples,
                           pass->count * plan->sample_bytes, kind_of(pass->on_device), error);
    if (rc != STOKER_OK || pass->labels == NULL)
        return rc;
    in_scratch->labels = labels;
    return stk_cuda_copy(program->backend, labels, pass->labels, pass->count * label_bytes(plan),
                         kind_of(pass->on_device && !pass->host_labels), error);
}

static int check_pass(const struct stk_program *program, const struct stk_pass *pass,
                      stoker_error *error)
{
    assert(pass->count >= 1);
    assert(pass->count <= program->plan->options.batch);
    return pass->on_device && !pass->host_labels
               ? STOKER_OK
               : stk_operands_check_labels(program->plan, pass, error);
}

/* Batch and operations; what the loss finds is added to *metrics, on the device. */
static int queue_whole(struct stk_program *program, const struct stk_arenas *arenas,
                       const struct stk_pass *pass, struct stk_train_metrics *metrics,
                       stoker_error *error)
{
    const struct stk_cuda_pass beside = { .metrics = metrics,
                                          .gradient_factor = pass->gradient_scale,
                                          .step = pass->step };
    struct stk_pass in_scratch;
    struct set *set = NULL;
    int rc = make_ready(program, pass->count, &set, error);
    if (rc == STOKER_OK)
        rc = queue_batch(program, pass, &in_scratch, error);
    if (rc == STOKER_OK)
        rc = queue_operations(program, set, arenas, &in_scratch, &beside, error);
    return rc;
}

static int run_and_wait(struct stk_program *program, const struct stk_arenas *arenas,
                        const struct stk_pass *pass, struct stk_train_metrics *found,
                        stoker_error *error)
{
    struct stk_backend *const backend = program->backend;
    struct stk_train_metrics *const metrics = &backend->block->run;
    int rc = stk_cuda_clear(backend, metrics, sizeof(*metrics), error);
    if (rc == STOKER_OK)
        rc = queue_whole(program, arenas, pass, metrics, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_copy(backend, found, metrics, sizeof(*found), cudaMemcpyDeviceToHost, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_check(backend, backend->runtime.cudaStreamSynchronize(backend->stream),
                            "cudaStreamSynchronize", error);
    return rc;
}

int stk_cuda_program_run(struct stk_program *program, const struct stk_arenas *arenas,
                         const struct stk_pass *pass, struct stk_loss *loss, stoker_error *error)
{
    struct stk_train_metrics found = { 0 };
    int before;
    int rc = check_pass(program, pass, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_enter(program->backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = run_and_wait(program, arenas, pass, &found, error);
    stk_cuda_leave(program->backend, before);
    if (rc == STOKER_OK && found.bad_labels > 0)
        rc = stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                           "%llu labels of a batch on the device are no classes",
                           (unsigned long long)found.bad_labels);
    if (rc == STOKER_OK)
        *loss = (struct stk_loss){ .loss_sum = found.loss_sum,
                                   .correct = found.correct,
                                   .count = found.count };
    return rc;
}

/* What the losses find goes where run() clears first. */
static int queue_zeros(struct stk_program *program, const struct stk_arenas *arenas, uint32_t count,
                       stoker_error *error)
{
    const struct stk_cuda_pass beside = { .metrics = &program->backend->block->run,
                                          .gradient_factor = 1 };
    struct set *set = NULL;
    int rc = make_ready(program, count, &set, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_clear(program->backend, program->scratch, program->layout.tickets, error);
    if (rc != STOKER_OK)
        return rc;
    const struct stk_pass pass = { .samples = (const float *)(void *)program->scratch,
                                   .labels = program->scratch + program->layout.labels,
                                   .on_device = true,
                                   .count = count,
                                   .gradient_scale = 1 };
    return queue_operations(program, set, arenas, &pass, &beside, error);
}

int stk_cuda_program_warm(struct stk_program *program, const struct stk_arenas *arenas,
                          uint32_t count, stoker_error *error)
{
    int before;
    int rc = stk_cuda_enter(program->backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = queue_zeros(program, arenas, count, error);
    stk_cuda_leave(program->backend, before);
    return rc;
}

int stk_cuda_program_queue(struct stk_program *program, const struct stk_arenas *arenas,
                           const struct stk_pass *pass, stoker_error *error)
{
    int before;
    int rc = check_pass(program, pass, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_enter(program->backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = queue_whole(program, arenas, pass, &program->backend->block->forward, error);
    stk_cuda_leave(program->backend, before);
    return rc;
}

/* A step whose batch is in scratch. */
struct queued_step {
    struct stk_program *program;
    const struct set *set;
    const struct stk_arenas *arenas;
    const struct stk_pass *pass;
    const struct stk_group_pass *group;
};

/* A stk_cuda_queue. */
static int queue_step(void *context, stoker_error *error)
{
    const struct queued_step *const step = context;
    struct stk_backend *const backend = step->program->backend;
    const struct stk_group_pass *const group = step->group;
    const struct stk_cuda_pass beside = { .metrics = &backend->block->training,
                                          .state = &backend->block->state,
                                          .gradient_factor = 1 };
    int rc = STOKER_OK;
    if (group->first)
        rc = stk_cuda_clear(backend, step->arenas->gradients, group->update->floats * sizeof(float),
                            error);
    if (rc == STOKER_OK)
        rc = queue_operations(step->program, step->set, step->arenas, step->pass, &beside, error);
    if (rc == STOKER_OK && group->last)
        rc = stk_cuda_training_update(backend, group->update, group->samples, error);
    return rc;
}

static struct stk_cuda_key key_of(const struct stk_program *program,
                                  const struct stk_arenas *arenas, const struct stk_pass *pass,
                                  const struct stk_group_pass *group)
{
    return (struct stk_cuda_key){ .activations = arenas->activations,
                                  .count = pass->count,
                                  .first = group->first,
                                  .last = group->last,
                                  .samples = group->last ? group->samples : 0,
                                  .first_sample = program->drops ? pass->first_sample : 0,
                                  .seed = program->drops ? pass->seed : 0 };
}

static int queue_pass(struct stk_program *program, const struct stk_arenas *arenas,
                      const struct stk_pass *pass, const struct stk_group_pass *group,
                      stoker_error *error)
{
    struct stk_pass in_scratch;
    struct set *set = NULL;
    const struct stk_cuda_key key = key_of(program, arenas, pass, group);
    int rc = make_ready(program, pass->count, &set, error);
    if (rc == STOKER_OK)
        rc = queue_batch(program, pass, &in_scratch, error);
    if (rc != STOKER_OK)
        return rc;
    struct queued_step step = { program, set, arenas, &in_scratch, group };
    if (program->backend->uncaptured) {
        program->backend->captured.queued++;
        return queue_step(&step, error);
    }
    return stk_cuda_recordings_run(program->backend, &program->recordings, &key, queue_step, &step,
                                   error);
}

int stk_cuda_program_step(struct stk_program *program, const struct stk_arenas *arenas,
                          const struct stk_pass *pass, const struct stk_group_pass *group,
                          stoker_error *error)
{
    int before;
    int rc = check_pass(program, pass, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_enter(program->backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = queue_pass(program, arenas, pass, group, error);
    stk_cuda_leave(program->backend, before);
    return rc;
}
