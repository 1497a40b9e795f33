/* fusion.c - see fusion.h. */
#include "trainer/backend/cuda/program/fusion.h"

#include "trainer/plan/precision.h"

static const struct stk_layer *layer_of(const struct stk_plan *plan, uint32_t op)
{
    return &plan->model->layers[plan->ops[op].layer];
}

/* What a graph with BatchNorm around it can have: no bias, which BatchNorm makes useless, and no groups. */
static bool is_plain(const struct stk_plan *plan, uint32_t op)
{
    const struct stk_layer *const layer = layer_of(plan, op);
    return layer->kind == STK_CONV2D && layer->bias < 0 && layer->groups == 1 &&
           !plan->ops[op].relu;
}

static bool makes_sums(const struct stk_plan *plan, uint32_t op)
{
    if (plan->ops[op].kind != STK_OP_CONV_FORWARD || op + 1 == plan->op_count)
        return false;
    const struct stk_op *const next = &plan->ops[op + 1];
    return is_plain(plan, op) && next->kind == STK_OP_BATCH_NORM_FORWARD &&
           next->x == plan->ops[op].y;
}

/* y is written by forward operations, and read by the others. */
static bool is_forward(const struct stk_op *op)
{
    return op->kind != STK_OP_RELU_BACKWARD && op->kind != STK_OP_BATCH_NORM_BACKWARD;
}

static bool reads(const struct stk_op *op, int32_t buffer)
{
    return op->x == buffer || op->x2 == buffer || op->dy == buffer ||
           (op->y == buffer && !is_forward(op)) ||
           (op->kind == STK_OP_ACCUMULATE && op->dx == buffer);
}

static bool writes(const struct stk_op *op, int32_t buffer)
{
    return (op->y == buffer && is_forward(op)) || op->dx == buffer;
}

/* Whether an operation can work out y of a BatchNorm as it reads it. */
static bool may_apply(const struct stk_cuda_fusion *fusions, const struct stk_plan *plan,
                      uint32_t op)
{
    switch (plan->ops[op].kind) {
    case STK_OP_CONV_FORWARD:
        return fusions[op].statistics;
    case STK_OP_CONV_BACKWARD_WEIGHTS:
        return is_plain(plan, op);
    default:
        return false;
    }
}

/* BatchNorm's own backward operation makes y again where it is not given. */
static bool makes_again(const struct stk_plan *plan, uint32_t op, uint32_t norm)
{
    return plan->ops[op].kind == STK_OP_BATCH_NORM_BACKWARD &&
           plan->ops[op].layer == plan->ops[norm].layer && plan->ops[op].y == plan->ops[norm].y;
}

/* Readers of what a BatchNorm writes, one by one: the next after `op`, or op_count. */
static uint32_t next_reader(const struct stk_plan *plan, uint32_t norm, uint32_t op)
{
    const int32_t y = plan->ops[norm].y;
    for (op++; op < plan->op_count; op++) {
        if (reads(&plan->ops[op], y))
            return op;
        if (writes(&plan->ops[op], y))
            break;
    }
    return plan->op_count;
}

/* Whether a buffer still has at `op` what it had at `from`. */
static bool still_holds(const struct stk_plan *plan, int32_t buffer, uint32_t from, uint32_t op)
{
    if (buffer < 0 || plan->buffers[buffer].last_op < op)
        return false;
    for (uint32_t i = from + 1; i < op; i++)
        if (writes(&plan->ops[i], buffer))
            return false;
    return true;
}

static bool may_stay_unwritten(const struct stk_cuda_fusion *fusions, const struct stk_plan *plan,
                               uint32_t norm)
{
    const struct stk_op *const n = &plan->ops[norm];
    const bool made = n->kind == STK_OP_BATCH_NORM_FORWARD || n->kind == STK_OP_BATCH_NORM_APPLY;
    if (!made || !n->relu || n->x == n->y)
        return false;
    for (uint32_t op = norm; (op = next_reader(plan, norm, op)) < plan->op_count;) {
        if (makes_again(plan, op, norm))
            continue;
        if (!may_apply(fusions, plan, op) || !still_holds(plan, n->x, norm, op) ||
            !still_holds(plan, n->aux, norm, op))
            return false;
    }
    return true;
}

static void mark_readers(struct stk_cuda_fusion *fusions, const struct stk_plan *plan,
                         uint32_t norm, bool unwritten)
{
    fusions[norm].unwritten = unwritten;
    for (uint32_t op = norm; (op = next_reader(plan, norm, op)) < plan->op_count;) {
        if (makes_again(plan, op, norm))
            fusions[op].unwritten = unwritten;
        else
            fusions[op].applies = unwritten ? (int32_t)norm : STK_NO_OP;
    }
}

/* cuDNN does not say that it may write over dy. */
static bool may_be_graph(const struct stk_op *op)
{
    return op->kind == STK_OP_BATCH_NORM_BACKWARD && op->dx != op->dy;
}

/* The half of a plan does not tell who else reads a value: a whole one has the loss. */
static bool is_whole(const struct stk_plan *plan)
{
    for (uint32_t i = 0; i < plan->op_count; i++)
        if (plan->ops[i].kind == STK_OP_SOFTMAX_CROSS_ENTROPY || plan->ops[i].kind == STK_OP_MSE)
            return true;
    return false;
}

void stk_cuda_fusion_find(struct stk_cuda_fusion *fusions, const struct stk_plan *plan,
                          enum stk_fusion how)
{
    const bool narrow = how != STK_FUSION_NONE && stk_is_narrow(plan->storage);
    for (uint32_t i = 0; i < plan->op_count; i++)
        fusions[i] = (struct stk_cuda_fusion){ .statistics = narrow && makes_sums(plan, i),
                                               .applies = STK_NO_OP,
                                               .graph = how == STK_FUSION_ALL &&
                                                        may_be_graph(&plan->ops[i]) };
    for (uint32_t i = 0; i < plan->op_count && narrow && is_whole(plan); i++)
        if (may_stay_unwritten(fusions, plan, i))
            mark_readers(fusions, plan, i, true);
}

void stk_cuda_fusion_withdraw(struct stk_cuda_fusion *fusions, const struct stk_plan *plan,
                              uint32_t norm)
{
    mark_readers(fusions, plan, norm, false);
}
