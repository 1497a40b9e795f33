/* program.c - see program.h.
 *
 *   count of samples ──▶ set: each convolution and linear layer of the plan, prepared for that count
 *                        full: plan.batch         prepared with the program part: a smaller batch
 *                                                 prepared on its first use; only the latest is
 *                                                 kept
 *
 *   workspace_bytes ──▶ prepared program in the back end's list ──▶ load
 *
 *   scratch, one allocation:   samples │ labels │ tickets │ workspace of the largest operation
 *
 * A batch is first copied to scratch, so that the operations find their input at the same address
 * each time. A batch in the GPU's memory is read where it is, if it lies in one of the few buffers
 * that came first: a loader has two to four, and each gets a graph of its own. */
#include <assert.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "trainer/backend/cuda/graph/capture.h"
#include "trainer/backend/cuda/program/program.h"
#include "trainer/backend/cuda/program/set.h"
#include "trainer/backend/cuda/program/training.h"
#include "trainer/backend/cuda/ranks/ranks.h"
#include "trainer/plan/slices.h"

/* Offsets into scratch, in bytes. */
struct layout {
    uint64_t labels, tickets, workspace, end;
    uint64_t workspace_bytes;
};

/* Buffers whose batches are read in place. */
enum { SOURCES_MAX = 4 };

struct stk_program {
    struct stk_backend *backend;
    const struct stk_plan *plan;     /* NULL = prepared, not loaded */
    const stoker_model *model;       /* the plan's */
    struct stk_plan_options options; /* the plan's */
    enum stk_op_kind first_kind;     /* kind of the first operation */
    struct stk_cuda_set full, part;
    /* The back end's, with the workspace that there is as its limit; borrowed by `part`. */
    struct stk_cuda_math part_math;
    struct layout layout;
    uint8_t *scratch;
    bool drops;            /* contains dropout */
    bool writes_gradients; /* its operations write the gradient of every parameter */
    struct stk_cuda_graphs graphs;
    const void *sources[SOURCES_MAX]; /* samples of batches read in place */
    uint32_t source_count;
    struct stk_slices slices; /* what ranks sum of the gradients; none: this GPU alone */
};

/* ---- operations made for a count ------------------------------------------------------------- */

/* The set for `count` samples; that of a smaller batch uses no more workspace than there is. */
static int find_set(struct stk_program *program, uint32_t count, struct stk_cuda_set **out,
                    stoker_error *error)
{
    *out = count == program->full.count ? &program->full : &program->part;
    if ((*out)->count == count)
        return STOKER_OK;
    if (program->part.count > 0)
        stk_cuda_graphs_drop(program->backend, &program->graphs, program->part.count);
    stk_cuda_set_drop(&program->part);
    return stk_cuda_set_make(&program->part, &program->part_math, program->plan, count, error);
}

/* ---- scratch --------------------------------------------------------------------------------- */

static uint64_t label_bytes(const struct stk_plan *plan)
{
    const struct stk_layer *const loss = &plan->model->layers[plan->model->layer_count - 1];
    return loss->kind == STK_MSE ? stk_shape_elements(loss->in) * sizeof(float) : sizeof(int64_t);
}

static void lay_out(struct stk_program *program)
{
    const struct stk_plan *const plan = program->plan;
    const uint64_t batch = plan->options.batch;
    struct layout *const layout = &program->layout;
    const uint64_t tickets = stk_cuda_set_tickets(plan);
    for (uint32_t i = 0; i < plan->op_count; i++)
        program->drops = program->drops || plan->ops[i].kind == STK_OP_DROPOUT_FORWARD ||
                         plan->ops[i].kind == STK_OP_DROPOUT_BACKWARD;
    layout->workspace_bytes = stk_cuda_set_workspace_bytes(&program->full, plan);
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
            return stk_refuse_option(
                error, STOKER_ELIMIT,
                "back end cuda: layer %s: a batch of %u has 2^31 or more elements", layer->name,
                plan->options.batch);
    }
    return STOKER_OK;
}

/* Half a plan may have the operations of no parameter, or of some. */
static bool writes_gradients(const struct stk_plan *plan)
{
    uint32_t written = 0; /* each by one operation */
    for (uint32_t i = 0; i < plan->op_count; i++) {
        const struct stk_layer *const layer = &plan->model->layers[plan->ops[i].layer];
        if (stk_op_writes_gradients(plan->ops[i].kind))
            written += (layer->weight >= 0 ? 1U : 0U) + (layer->bias >= 0 ? 1U : 0U);
    }
    return written == plan->model->parameter_count;
}

/* ---- load ------------------------------------------------------------------------------------ */

/* All but the scratch memory. The device must be current. */
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
        (void)stk_refuse_option(error, STOKER_ENOMEM, "a plan for cuda");
        return STOKER_ENOMEM;
    }
    program->backend = backend;
    program->plan = plan;
    program->model = plan->model;
    program->first_kind = plan->op_count > 0 ? plan->ops[0].kind : STK_OP_KINDS;
    program->writes_gradients = writes_gradients(plan);
    memcpy(&program->options, &plan->options, sizeof(plan->options));
    rc = stk_cuda_set_make(&program->full, &backend->math, plan, plan->options.batch, error);
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

/* Allocated by load, and after a trim by the next run. The device must be current. */
static int take_scratch(struct stk_program *program, stoker_error *error)
{
    if (program->scratch == NULL)
        program->scratch = stk_cuda_alloc(program->backend, program->layout.end, error);
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
    stk_cuda_graphs_drop(backend, &program->graphs, 0);
    program->source_count = 0;
    stk_cuda_free(backend, program->scratch);
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
    stk_cuda_graphs_drop(backend, &program->graphs, 0);
    stk_cuda_set_drop(&program->part);
    stk_cuda_set_drop(&program->full);
    stk_cuda_free(backend, program->scratch);
    stk_slices_free(&program->slices);
    if (entered)
        stk_cuda_leave(backend, before);
    stk_free(program);
}

/* A plan is a function of its model and options; its halves differ in their first operation. What a
 * search has prepared serves only that. */
static bool is_for(const struct stk_program *program, const struct stk_plan *plan)
{
    return program != NULL && (program->part_math.tries || !program->backend->math.tries) &&
           program->model == plan->model && program->full.operations == plan->op_count &&
           plan->op_count > 0 && program->first_kind == plan->ops[0].kind &&
           stk_plan_options_equal(&program->options, &plan->options);
}

/* Take the prepared program of a plan from the list, or make one. */
static int prepare(struct stk_program **out, struct stk_backend *backend,
                   const struct stk_plan *plan, stoker_error *error)
{
    int before;
    for (int i = 0; i < STK_CUDA_PREPARED; i++) {
        struct stk_program *const prepared = backend->prepared[i];
        if (!is_for(prepared, plan))
            continue;
        backend->prepared[i] = NULL;
        prepared->plan = plan;
        *out = prepared;
        return STOKER_OK;
    }
    int rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = make(out, backend, plan, error);
    stk_cuda_leave(backend, before);
    return rc;
}

/* Put a program in the list, for load: choosing engines takes long. The plan may be freed before
 * that. */
static void put_prepared(struct stk_backend *backend, struct stk_program *program)
{
    struct stk_program **const place =
        &backend->prepared[backend->prepared_count++ % STK_CUDA_PREPARED];
    stk_cuda_program_unload(*place);
    program->plan = NULL;
    *place = program;
}

int stk_cuda_workspace_bytes(struct stk_backend *backend, const struct stk_plan *plan,
                             uint64_t *out, stoker_error *error)
{
    struct stk_program *program = NULL;
    const int rc = prepare(&program, backend, plan, error);
    if (rc != STOKER_OK)
        return rc;
    *out = program->layout.end;
    put_prepared(backend, program);
    return STOKER_OK;
}

int stk_cuda_program_load(struct stk_program **out, struct stk_backend *backend,
                          const struct stk_plan *plan, stoker_error *error)
{
    struct stk_program *program = NULL;
    int before;
    int rc = prepare(&program, backend, plan, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_enter(backend, &before, error);
    if (rc == STOKER_OK) {
        rc = take_scratch(program, error);
        stk_cuda_leave(backend, before);
    }
    if (rc == STOKER_OK)
        *out = program;
    else
        stk_cuda_program_unload(program);
    return rc;
}

/* ---- run ------------------------------------------------------------------------------------- */

/* Samples and labels of the pass must be in scratch. */
static int queue_operations(struct stk_program *program, const struct stk_cuda_set *set,
                            const struct stk_arenas *arenas, const struct stk_pass *pass,
                            const struct stk_cuda_pass *extra, const struct stk_slices *slices,
                            stoker_error *error)
{
    const struct stk_plan *const plan = program->plan;
    const struct stk_cuda_scratch scratch = {
        .workspace = program->scratch + program->layout.workspace,
        .tickets = (void *)(program->scratch + program->layout.tickets)
    };
    return stk_cuda_set_queue(set, program->backend, plan, arenas, pass, &scratch, extra, slices,
                              error);
}

/* What a pass of `count` samples needs, and what must not happen while a step is captured. Of no
 * samples only the number of operations counts. */
static int make_ready(struct stk_program *program, uint32_t count, struct stk_cuda_set **out,
                      stoker_error *error)
{
    const int rc = take_scratch(program, error);
    *out = &program->full;
    return rc == STOKER_OK && count > 0 ? find_set(program, count, out, error) : rc;
}

static enum cudaMemcpyKind kind_of(bool on_device)
{
    return on_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
}

/* Queue the copy of the batch to scratch; *in_scratch is the pass on that copy. */
static int queue_batch(struct stk_program *program, const struct stk_pass *pass,
                       struct stk_pass *in_scratch, stoker_error *error)
{
    const struct stk_plan *const plan = program->plan;
    uint8_t *const labels = program->scratch + program->layout.labels;
    int rc = STOKER_OK;
    *in_scratch = *pass;
    in_scratch->samples = (const float *)(void *)program->scratch;
    if (pass->count == 0)
        return STOKER_OK;
    const bool pageable = !pass->page_locked && (!pass->on_device || pass->host_labels);
    if (pageable && program->backend->sums != NULL)
        rc = stk_cuda_await(program->backend, NULL, error);
    if (rc == STOKER_OK && pass->samples != NULL)
        rc = stk_cuda_copy(program->backend, program->scratch, pass->samples,
                           pass->count * plan->sample_bytes, kind_of(pass->on_device), error);
    if (rc == STOKER_OK && pass->labels != NULL) {
        in_scratch->labels = labels;
        rc = stk_cuda_copy(program->backend, labels, pass->labels, pass->count * label_bytes(plan),
                           kind_of(pass->on_device && !pass->host_labels), error);
    }
    const int borrow_rc = pageable ? stk_cuda_mark_copies(program->backend, error) : STOKER_OK;
    return rc == STOKER_OK ? borrow_rc : rc;
}

/* Return once the host may reuse its batch, whether queueing succeeded or not. */
static int end_pass(const struct stk_program *program, int rc, int before, stoker_error *error)
{
    const int back_rc = stk_cuda_wait_copies(program->backend, rc == STOKER_OK ? error : NULL);
    stk_cuda_leave(program->backend, before);
    return rc == STOKER_OK ? back_rc : rc;
}

/* Check the pass and make the device current; *before is for stk_cuda_leave(). */
static int enter_pass(const struct stk_program *program, const struct stk_pass *pass, int *before,
                      stoker_error *error)
{
    assert(pass->count >= 1 || program->backend->ranks != NULL);
    assert(pass->count <= program->plan->options.batch);
    const int rc = pass->on_device && !pass->host_labels
                       ? STOKER_OK
                       : stk_operands_check_labels(program->plan, pass, error);
    return rc == STOKER_OK ? stk_cuda_enter(program->backend, before, error) : rc;
}

/* Queue batch and operations; the loss is added to *metrics, on the device. */
static int queue_whole(struct stk_program *program, const struct stk_arenas *arenas,
                       const struct stk_pass *pass, struct stk_train_metrics *metrics,
                       stoker_error *error)
{
    const struct stk_cuda_pass extra = { .metrics = metrics,
                                         .gradient_factor = pass->gradient_scale,
                                         .step = pass->step };
    struct stk_pass in_scratch;
    struct stk_cuda_set *set = NULL;
    int rc = make_ready(program, pass->count, &set, error);
    if (rc == STOKER_OK)
        rc = queue_batch(program, pass, &in_scratch, error);
    if (rc == STOKER_OK)
        rc = queue_operations(program, set, arenas, &in_scratch, &extra, NULL, error);
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
        rc = stk_cuda_copy_pageable(backend, found, metrics, sizeof(*found), cudaMemcpyDeviceToHost,
                                    error);
    return stk_cuda_end_read(backend, rc, error);
}

int stk_cuda_program_run(struct stk_program *program, const struct stk_arenas *arenas,
                         const struct stk_pass *pass, struct stk_loss *loss, stoker_error *error)
{
    struct stk_train_metrics found = { 0 };
    int before;
    int rc = enter_pass(program, pass, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = end_pass(program, run_and_wait(program, arenas, pass, &found, error), before, error);
    if (rc == STOKER_OK && found.bad_labels > 0)
        rc = stk_refuse_option(error, STOKER_EINVAL,
                               "%llu labels of a batch on the device are out of range",
                               (unsigned long long)found.bad_labels);
    if (rc == STOKER_OK)
        *loss = (struct stk_loss){ .loss_sum = found.loss_sum,
                                   .correct = found.correct,
                                   .count = found.count };
    return rc;
}

/* Their metrics go to block->run, which run() clears first. */
static int queue_zeros(struct stk_program *program, const struct stk_arenas *arenas, uint32_t count,
                       stoker_error *error)
{
    const struct stk_cuda_pass extra = { .metrics = &program->backend->block->run,
                                         .gradient_factor = 1 };
    struct stk_cuda_set *set = NULL;
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
    return queue_operations(program, set, arenas, &pass, &extra, NULL, error);
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

int stk_cuda_program_queue_forward(struct stk_program *program, const struct stk_arenas *arenas,
                                   const struct stk_pass *pass, stoker_error *error)
{
    int before;
    int rc = enter_pass(program, pass, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = queue_whole(program, arenas, pass, &program->backend->block->forward, error);
    return end_pass(program, rc, before, error);
}

/* Context of queue_step(); the batch is in scratch, or read where it is. */
struct queued_step {
    struct stk_program *program;
    const struct stk_cuda_set *set;
    const struct stk_arenas *arenas;
    const struct stk_pass *pass;
    const struct stk_group_pass *group;
};

/* The pass of a rank among others: what it finds of its own batch, statistics included, becomes
 * that of all. */
static int queue_together(const struct queued_step *step, struct stk_cuda_pass *extra,
                          stoker_error *error)
{
    struct stk_program *const program = step->program;
    struct stk_backend *const backend = program->backend;
    struct stk_arenas arenas = *step->arenas;
    extra->together = true;
    int rc = stk_cuda_ranks_begin_pass(backend, arenas.statistics, step->pass->count, error);
    if (!backend->ranks->sync_batch_norm)
        arenas.statistics = backend->ranks->found;
    if (rc == STOKER_OK)
        rc = queue_operations(program, step->set, &arenas, step->pass, extra,
                              step->group->last ? &program->slices : NULL, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_ranks_end_pass(backend, step->arenas->statistics, error);
    return rc == STOKER_OK ? stk_cuda_ranks_wait(backend, error) : rc;
}

/* A stk_cuda_queue. */
static int queue_step(void *context, stoker_error *error)
{
    const struct queued_step *const step = context;
    struct stk_backend *const backend = step->program->backend;
    const struct stk_group_pass *const group = step->group;
    struct stk_cuda_pass extra = { .metrics = &backend->block->training,
                                   .state = &backend->block->state,
                                   .gradient_factor = 1,
                                   .write = group->first && step->pass->count > 0 &&
                                            step->program->writes_gradients };
    int rc = STOKER_OK;
    if (group->first && !extra.write)
        rc = stk_cuda_clear(backend, step->arenas->gradients, group->update->floats * sizeof(float),
                            error);
    if (rc == STOKER_OK)
        rc = backend->ranks != NULL ? queue_together(step, &extra, error)
                                    : queue_operations(step->program, step->set, step->arenas,
                                                       step->pass, &extra, NULL, error);
    if (rc == STOKER_OK && group->last)
        rc = stk_cuda_training_update(backend, group->update, group->samples, error);
    return rc;
}

/* True for one of the first SOURCES_MAX addresses. */
static bool is_source(struct stk_program *program, const void *samples)
{
    for (uint32_t i = 0; i < program->source_count; i++)
        if (program->sources[i] == samples)
            return true;
    if (program->source_count == SOURCES_MAX)
        return false;
    program->sources[program->source_count++] = samples;
    return true;
}

/* Ranks capture the same steps at the same time, and their buffers differ; a group of several
 * passes would take as many graphs for each buffer. */
static bool reads_in_place(struct stk_program *program, const struct stk_pass *pass,
                           const struct stk_group_pass *group)
{
    enum { ALIGNMENT = 16 }; /* that of vectors, and of libraries' operands */
    const bool aligned =
        (uintptr_t)pass->samples % ALIGNMENT == 0 && (uintptr_t)pass->labels % sizeof(int64_t) == 0;
    return pass->on_device && !pass->host_labels && pass->samples != NULL && aligned &&
           group->first && group->last && program->backend->ranks == NULL &&
           is_source(program, pass->samples);
}

static struct stk_cuda_graph_key key_of(const struct stk_program *program,
                                        const struct stk_arenas *arenas,
                                        const struct stk_pass *pass,
                                        const struct stk_group_pass *group, bool in_place)
{
    return (struct stk_cuda_graph_key){ .activations = arenas->activations,
                                        .count = pass->count,
                                        .first = group->first,
                                        .last = group->last,
                                        .samples = group->last ? group->samples : 0,
                                        .first_sample = program->drops ? pass->first_sample : 0,
                                        .seed = program->drops ? pass->seed : 0,
                                        .shares = pass->shares,
                                        .read = in_place ? pass->samples : NULL,
                                        .labeled = in_place ? pass->labels : NULL };
}

static int queue_pass(struct stk_program *program, const struct stk_arenas *arenas,
                      const struct stk_pass *pass, const struct stk_group_pass *group,
                      stoker_error *error)
{
    struct stk_pass placed = *pass;
    struct stk_cuda_set *set = NULL;
    const bool in_place = reads_in_place(program, pass, group);
    const struct stk_cuda_graph_key key = key_of(program, arenas, pass, group, in_place);
    if (pass->forgets)
        stk_cuda_graphs_drop(program->backend, &program->graphs, 0);
    int rc = make_ready(program, pass->count, &set, error);
    if (rc == STOKER_OK && !in_place)
        rc = queue_batch(program, pass, &placed, error);
    if (program->backend->ranks != NULL)
        program->backend->ranks->dropped = false; /* the ranks have met */
    if (rc != STOKER_OK)
        return rc;
    struct queued_step step = { program, set, arenas, &placed, group };
    if (program->backend->uncaptured) {
        program->backend->captured.queued++;
        return queue_step(&step, error);
    }
    return stk_cuda_graphs_run(program->backend, &program->graphs, &key, queue_step, &step, error);
}

/* About 4 MB a sum: fewer cannot fill the links between GPUs. */
enum { SLICE_FLOATS_MIN = 1 << 18, SLICE_FLOATS_MAX = 1 << 20 };

int stk_cuda_program_prepare_step(struct stk_program *program, uint32_t count, bool *forgets,
                                  stoker_error *error)
{
    struct stk_backend *const backend = program->backend;
    struct stk_cuda_set *set = NULL;
    int before;
    int rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    if (program->slices.slices == NULL)
        rc = stk_slices_make(&program->slices, program->plan, SLICE_FLOATS_MIN, SLICE_FLOATS_MAX,
                             error);
    if (rc == STOKER_OK)
        rc = make_ready(program, count, &set, error);
    *forgets = backend->ranks->dropped;
    stk_cuda_leave(backend, before);
    return rc;
}

int stk_cuda_program_queue_step(struct stk_program *program, const struct stk_arenas *arenas,
                                const struct stk_pass *pass, const struct stk_group_pass *group,
                                stoker_error *error)
{
    int before;
    int rc = enter_pass(program, pass, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = queue_pass(program, arenas, pass, group, error);
    return end_pass(program, rc, before, error);
}
