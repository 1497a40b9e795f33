/* set.c - see set.h.
 *
 *   1  a BatchNorm whose result nobody would write: all that work it out by themselves are made; if one
 *      has no engine, the BatchNorm writes its result after all
 *   2  the others are made; what has no engine with sums is made without */
#include "trainer/backend/cuda/program/set.h"

#include "loader/base/error.h"
#include "loader/base/memory.h"
#include "trainer/backend/cuda/program/conv.h"
#include "trainer/backend/cuda/program/fusion.h"
#include "trainer/backend/cuda/program/linear.h"
#include "trainer/backend/cuda/program/norm.h"
#include "trainer/plan/precision.h"

/* What one operation has of its own; none of them = a kernel of ours. */
struct stk_cuda_made {
    struct stk_cuda_conv *conv;
    struct stk_cuda_linear *linear;
    struct stk_cuda_norm *norm;
};

/* ---- making --------------------------------------------------------------------------------------- */

/* What operations are made with. */
struct making {
    struct stk_cuda_set *set;
    const struct stk_cuda_math *math;
    const struct stk_plan *plan;
    uint32_t count;
    stoker_error *error;
};

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

static void drop_one(struct stk_cuda_made *made)
{
    stk_cuda_conv_destroy(&made->conv);
    stk_cuda_linear_destroy(&made->linear);
    stk_cuda_norm_destroy(&made->norm);
}

static int make_conv(const struct making *m, uint32_t i, enum stk_cuda_direction direction)
{
    struct stk_cuda_fusion *const fusion = &m->set->fusions[i];
    const struct stk_op *const op = &m->plan->ops[i];
    struct stk_cuda_conv **const conv = &m->set->made[i].conv;
    const struct stk_layer *const layer = &m->plan->model->layers[op->layer];
    struct stk_cuda_conv_fused fused = { .relu = op->relu,
                                         .statistics = fusion->statistics,
                                         .applied = fusion->applies != STK_NO_OP };
    int rc = stk_cuda_conv_create(conv, m->math, layer, direction, fused, m->count, m->error);
    if (rc != STOKER_ENOTSUP || !fused.statistics || fused.applied)
        return rc;
    fusion->statistics = fused.statistics = false;
    return stk_cuda_conv_create(conv, m->math, layer, direction, fused, m->count, m->error);
}

static int make_norm(const struct making *m, uint32_t i)
{
    struct stk_cuda_fusion *const fusion = &m->set->fusions[i];
    const struct stk_op *const op = &m->plan->ops[i];
    if (!fusion->graph)
        return STOKER_OK;
    const int rc =
        stk_cuda_norm_create(&m->set->made[i].norm, m->math, &m->plan->model->layers[op->layer],
                             op->relu, m->count, m->error);
    fusion->graph = rc == STOKER_OK;
    return rc == STOKER_ENOTSUP ? STOKER_OK : rc;
}

static int make_one(const struct making *m, uint32_t i)
{
    const struct stk_op *const op = &m->plan->ops[i];
    const struct stk_layer *const layer = &m->plan->model->layers[op->layer];
    enum stk_cuda_direction direction;
    if (!direction_of(op->kind, &direction))
        return make_norm(m, i);
    if (layer->kind == STK_CONV2D)
        return make_conv(m, i, direction);
    return stk_cuda_linear_create(&m->set->made[i].linear, m->math, layer, direction, op->relu,
                                  m->count, m->error);
}

/* All that apply one BatchNorm, or none of them. */
static int make_appliers(const struct making *m, uint32_t norm)
{
    struct stk_cuda_set *const set = m->set;
    int rc = STOKER_OK;
    for (uint32_t i = norm + 1; i < set->operations && rc == STOKER_OK; i++)
        if (set->fusions[i].applies == (int32_t)norm)
            rc = make_one(m, i);
    if (rc != STOKER_ENOTSUP)
        return rc;
    for (uint32_t i = norm + 1; i < set->operations; i++)
        if (set->fusions[i].applies == (int32_t)norm)
            drop_one(&set->made[i]);
    stk_cuda_fusion_withdraw(set->fusions, m->plan, norm);
    return STOKER_OK;
}

static int make_all(const struct making *m)
{
    const struct stk_cuda_set *const set = m->set;
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < set->operations && rc == STOKER_OK; i++)
        if (set->fusions[i].unwritten && m->plan->ops[i].kind != STK_OP_BATCH_NORM_BACKWARD)
            rc = make_appliers(m, i);
    for (uint32_t i = 0; i < set->operations && rc == STOKER_OK; i++)
        if (set->made[i].conv == NULL)
            rc = make_one(m, i);
    return rc;
}

int stk_cuda_set_make(struct stk_cuda_set *set, const struct stk_cuda_math *math,
                      const struct stk_plan *plan, uint32_t count, stoker_error *error)
{
    struct stk_cuda_set made = { .count = count, .operations = plan->op_count };
    const struct making making = { &made, math, plan, count, error };
    int rc = STOKER_ENOMEM;
    made.made = stk_calloc(plan->op_count, sizeof(*made.made));
    made.fusions = stk_calloc(plan->op_count, sizeof(*made.fusions));
    if (made.made == NULL || made.fusions == NULL) {
        (void)stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPTIONS,
                            &(struct stk_place)STK_NOWHERE, "a plan for cuda");
    } else {
        stk_cuda_fusion_find(made.fusions, plan, math->fusion);
        rc = make_all(&making);
    }
    if (rc == STOKER_OK)
        *set = made;
    else
        stk_cuda_set_drop(&made);
    return rc;
}

void stk_cuda_set_drop(struct stk_cuda_set *set)
{
    for (uint32_t i = 0; set->made != NULL && i < set->operations; i++)
        drop_one(&set->made[i]);
    stk_free(set->made);
    stk_free(set->fusions);
    *set = (struct stk_cuda_set){ 0 };
}

/* ---- what it takes, and what came of it ------------------------------------------------------------ */

static uint64_t workspace_of(const struct stk_cuda_set *set, const struct stk_plan *plan,
                             uint32_t i)
{
    const struct stk_cuda_made *const made = &set->made[i];
    if (made->conv != NULL)
        return stk_cuda_conv_workspace_bytes(made->conv);
    if (made->linear != NULL)
        return stk_cuda_linear_workspace_bytes(made->linear);
    /* Where a graph does it: a smaller batch may have to do without. */
    const uint64_t own = stk_cuda_operation_workspace(plan, &plan->ops[i], set->count);
    const uint64_t graph = made->norm != NULL ? stk_cuda_norm_workspace_bytes(made->norm) : 0;
    return own > graph ? own : graph;
}

uint64_t stk_cuda_set_workspace_bytes(const struct stk_cuda_set *set, const struct stk_plan *plan)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < set->operations; i++) {
        const uint64_t bytes = workspace_of(set, plan, i);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static uint64_t tickets_of(const struct stk_plan *plan, const struct stk_op *op)
{
    enum stk_cuda_direction direction;
    if (direction_of(op->kind, &direction))
        return stk_cuda_tickets(plan->model->layers[op->layer].out.c);
    return stk_cuda_operation_tickets(plan, op);
}

uint64_t stk_cuda_set_tickets(const struct stk_plan *plan)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < plan->op_count; i++) {
        const uint64_t words = tickets_of(plan, &plan->ops[i]);
        most = words > most ? words : most;
    }
    return most;
}

/* Sums for a BatchNorm come with the convolution before it. */
static bool has_sums(const struct stk_cuda_set *set, uint32_t i)
{
    return i > 0 && set->fusions[i - 1].statistics;
}

static bool is_fused(const struct stk_cuda_set *set, const struct stk_plan *plan, uint32_t norm)
{
    if (has_sums(set, norm) || set->fusions[norm].unwritten)
        return true;
    for (uint32_t i = norm; i < set->operations; i++)
        if (set->fusions[i].graph && plan->ops[i].layer == plan->ops[norm].layer)
            return true;
    return false;
}

uint32_t stk_cuda_set_fused(const struct stk_cuda_set *set, const struct stk_plan *plan)
{
    uint32_t fused = 0;
    for (uint32_t i = 0; i < set->operations; i++)
        fused += plan->ops[i].kind == STK_OP_BATCH_NORM_FORWARD && is_fused(set, plan, i);
    return fused;
}

/* ---- queueing -------------------------------------------------------------------------------------- */

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

static struct stk_cuda_norm_values norm_values(const struct stk_operands *norm)
{
    const float *const mean = norm->aux;
    return (struct stk_cuda_norm_values){
        .mean = mean, .inverse = mean + norm->layer->in.c, .gamma = norm->weight, .beta = norm->bias
    };
}

/* All that is queued on one stream in one go. */
struct queueing {
    const struct stk_cuda_set *set;
    struct stk_backend *backend;
    const struct stk_plan *plan;
    const struct stk_arenas *arenas;
    const struct stk_pass *pass;
    const struct stk_cuda_scratch *scratch;
    const struct stk_cuda_pass *beside;
    stoker_error *error;
};

static void find(struct stk_operands *out, const struct queueing *q, uint32_t i)
{
    stk_operands_find(out, q->plan, &q->plan->ops[i], q->arenas, q->pass, 0, q->pass->count);
}

static int run_made(const struct queueing *q, uint32_t i, const struct stk_operands *o)
{
    const struct stk_cuda_made *const made = &q->set->made[i];
    const int32_t applies = q->set->fusions[i].applies;
    void *const stream = q->backend->stream;
    struct stk_cuda_operands operands = { .x = o->x,
                                          .weight = weight_of(q->plan, q->arenas, o->layer->weight),
                                          .bias = weight_of(q->plan, q->arenas, o->layer->bias),
                                          .y = o->y,
                                          .dy = o->dy,
                                          .dx = o->dx,
                                          .weight_grad = o->weight_grad,
                                          .bias_grad = o->bias_grad,
                                          .workspace = q->scratch->workspace,
                                          .tickets = q->scratch->tickets };
    if (applies != STK_NO_OP) {
        struct stk_operands norm;
        find(&norm, q, (uint32_t)applies);
        operands.x = norm.x;
        operands.applied = norm_values(&norm);
    }
    if (made->conv != NULL)
        return stk_cuda_conv_run(made->conv, &operands, stream, q->error);
    if (made->linear != NULL)
        return stk_cuda_linear_run(made->linear, &operands, stream, q->error);
    operands.applied = norm_values(o);
    return stk_cuda_norm_run(made->norm, &operands, stream, q->error);
}

static int queue_one(const struct queueing *q, uint32_t i)
{
    const struct stk_cuda_made *const made = &q->set->made[i];
    const bool unwritten = q->set->fusions[i].unwritten;
    struct stk_operands o;
    if (unwritten && q->plan->ops[i].kind == STK_OP_BATCH_NORM_APPLY)
        return STOKER_OK;
    find(&o, q, i);
    if (unwritten)
        o.y = NULL;
    if (made->conv != NULL || made->linear != NULL || made->norm != NULL)
        return run_made(q, i, &o);
    struct stk_cuda_scratch scratch = *q->scratch;
    if (has_sums(q->set, i))
        scratch.sums = stk_cuda_conv_sums(q->set->made[i - 1].conv, scratch.workspace);
    return stk_cuda_operation(q->backend, &o, &scratch, q->beside, q->error);
}

int stk_cuda_set_queue(const struct stk_cuda_set *set, struct stk_backend *backend,
                       const struct stk_plan *plan, const struct stk_arenas *arenas,
                       const struct stk_pass *pass, const struct stk_cuda_scratch *scratch,
                       const struct stk_cuda_pass *beside, stoker_error *error)
{
    const struct queueing q = { set, backend, plan, arenas, pass, scratch, beside, error };
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < set->operations && rc == STOKER_OK; i++)
        rc = queue_one(&q, i);
    return rc;
}
