/* set.c - see set.h. */
#include "trainer/backend/cuda/program/set.h"

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "trainer/backend/cuda/program/conv.h"
#include "trainer/backend/cuda/program/linear.h"
#include "trainer/backend/cuda/ranks/ranks.h"
#include "trainer/plan/precision.h"

/* The object of one operation; none = it is one of our own kernels. */
struct stk_cuda_made {
    struct stk_cuda_conv *conv;
    struct stk_cuda_linear *linear;
};

/* ---- making ---------------------------------------------------------------------------------- */

/* Arguments of make_one(). */
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
}

static int make_one(const struct making *m, uint32_t i)
{
    const struct stk_op *const op = &m->plan->ops[i];
    const struct stk_layer *const layer = &m->plan->model->layers[op->layer];
    struct stk_cuda_made *const made = &m->set->made[i];
    enum stk_cuda_direction direction;
    if (!direction_of(op->kind, &direction))
        return STOKER_OK;
    if (layer->kind == STK_CONV2D)
        return stk_cuda_conv_create(&made->conv, m->math, layer, direction, op->relu, m->count,
                                    m->error);
    return stk_cuda_linear_create(&made->linear, m->math, layer, direction, op->relu, m->count,
                                  m->error);
}

int stk_cuda_set_make(struct stk_cuda_set *set, const struct stk_cuda_math *math,
                      const struct stk_plan *plan, uint32_t count, stoker_error *error)
{
    struct stk_cuda_set made = { .count = count, .operations = plan->op_count };
    const struct making making = { &made, math, plan, count, error };
    int rc = STOKER_OK;
    made.made = stk_calloc(plan->op_count, sizeof(*made.made));
    if (made.made == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "a plan for cuda");
    for (uint32_t i = 0; i < plan->op_count && rc == STOKER_OK; i++)
        rc = make_one(&making, i);
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
    *set = (struct stk_cuda_set){ 0 };
}

/* ---- what it takes --------------------------------------------------------------------------- */

static uint64_t workspace_of(const struct stk_cuda_set *set, const struct stk_plan *plan,
                             uint32_t i)
{
    const struct stk_cuda_made *const made = &set->made[i];
    if (made->conv != NULL)
        return stk_cuda_conv_workspace_bytes(made->conv);
    if (made->linear != NULL)
        return stk_cuda_linear_workspace_bytes(made->linear);
    return stk_cuda_operation_workspace(plan, &plan->ops[i], set->count);
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

/* ---- queueing -------------------------------------------------------------------------------- */

/* A parameter as convolutions and linear layers read it: rounded if T has 16 bits. */
static const void *weight_of(const struct stk_plan *plan, const struct stk_arenas *arenas,
                             int32_t index)
{
    if (index < 0)
        return NULL;
    const uint64_t offset = plan->model->parameters[index].offset;
    if (!stk_is_narrow(plan->storage))
        return arenas->parameters + offset;
    return (const uint8_t *)arenas->half_weights + offset * stoker_dtype_bytes(plan->storage);
}

/* Arguments of queue_one(). */
struct queueing {
    const struct stk_cuda_set *set;
    struct stk_backend *backend;
    const struct stk_plan *plan;
    const struct stk_arenas *arenas;
    const struct stk_pass *pass;
    const struct stk_cuda_scratch *scratch;
    const struct stk_cuda_pass *extra;
    stoker_error *error;
};

static int run_made(const struct queueing *q, uint32_t i, const struct stk_operands *o)
{
    const struct stk_cuda_made *const made = &q->set->made[i];
    const struct stk_cuda_operands operands = { .x = o->x,
                                                .weight =
                                                    weight_of(q->plan, q->arenas, o->layer->weight),
                                                .bias =
                                                    weight_of(q->plan, q->arenas, o->layer->bias),
                                                .y = o->y,
                                                .dy = o->dy,
                                                .dx = o->dx,
                                                .weight_grad = o->weight_grad,
                                                .bias_grad = o->bias_grad,
                                                .write = q->extra->write,
                                                .workspace = q->scratch->workspace,
                                                .tickets = q->scratch->tickets };
    if (made->conv != NULL)
        return stk_cuda_conv_run(made->conv, &operands, q->error);
    return stk_cuda_linear_run(made->linear, &operands, q->error);
}

static int queue_one(const struct queueing *q, uint32_t i)
{
    struct stk_operands o;
    stk_operands_find(&o, q->plan, &q->plan->ops[i], q->arenas, q->pass, 0, q->pass->count);
    if (q->pass->count == 0)
        return stk_cuda_operation_without_samples(q->backend, &o, q->error);
    const struct stk_cuda_made *const made = &q->set->made[i];
    if (made->conv != NULL || made->linear != NULL)
        return run_made(q, i, &o);
    return stk_cuda_operation(q->backend, &o, q->scratch, q->extra, q->error);
}

/* Queues the sums of the slices that are complete after operation i. */
static int sum_slices(const struct queueing *q, const struct stk_slices *slices, uint32_t *next,
                      uint32_t i)
{
    int rc = STOKER_OK;
    for (; *next < slices->count && slices->slices[*next].op <= i && rc == STOKER_OK; (*next)++) {
        const struct stk_slice *const slice = &slices->slices[*next];
        rc = stk_cuda_ranks_sum(q->backend, q->arenas->gradients + slice->first, slice->count,
                                STOKER_DTYPE_FLOAT32, q->error);
    }
    return rc;
}

int stk_cuda_set_queue(const struct stk_cuda_set *set, struct stk_backend *backend,
                       const struct stk_plan *plan, const struct stk_arenas *arenas,
                       const struct stk_pass *pass, const struct stk_cuda_scratch *scratch,
                       const struct stk_cuda_pass *extra, const struct stk_slices *slices,
                       stoker_error *error)
{
    const struct queueing q = { set, backend, plan, arenas, pass, scratch, extra, error };
    uint32_t next = 0;
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < set->operations && rc == STOKER_OK; i++) {
        rc = queue_one(&q, i);
        if (rc == STOKER_OK && slices != NULL)
            rc = sum_slices(&q, slices, &next, i);
    }
    return rc;
}
