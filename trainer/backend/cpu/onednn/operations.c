/* operations.c - steps of the cpu back end on oneDNN. */
#include "trainer/backend/cpu/operations.h"

#include <stoker/error.h>

#include "loader/base/environment.h"

#include "trainer/backend/cpu/onednn/onednn.h"

/* NaN stays NaN. oneDNN's own ReLU would make it 0, and an overflow would go unnoticed. */
static float rectified(const struct stk_operands *o, float y)
{
    return o->op->relu && y < 0 ? 0 : y;
}

static void run_onednn(const struct stk_cpu_task *task)
{
    const struct stk_operands *o = &task->o;
    const int rc = stk_onednn_conv_run(task->step->conv, o, task->thread, task->scratch);
    if (*task->rc == STOKER_OK)
        *task->rc = rc;
    if (o->op->kind != STK_OP_CONV_FORWARD || !o->op->relu)
        return;
    const uint64_t count = o->count * stk_shape_elements(o->layer->out);
    for (uint64_t i = 0; i < count; i++)
        o->y[i] = rectified(o, o->y[i]);
}

static void linear_forward_onednn(const struct stk_cpu_task *task)
{
    const struct stk_operands *o = &task->o;
    const uint64_t in = stk_shape_elements(o->layer->in);
    const uint64_t out = stk_shape_elements(o->layer->out);
    stk_onednn_multiply(&(struct stk_onednn_product){ .m = o->count,
                                                      .n = (int64_t)out,
                                                      .k = (int64_t)in,
                                                      .a = o->x,
                                                      .b = o->weight,
                                                      .b_transposed = true,
                                                      .c = o->y,
                                                      .a_row = (int64_t)in,
                                                      .b_row = (int64_t)in,
                                                      .c_row = (int64_t)out });
    for (uint64_t i = 0; i < o->count * out; i++)
        o->y[i] = rectified(o, o->y[i] + (o->bias != NULL ? o->bias[i % out] : 0));
}

static void linear_data_onednn(const struct stk_cpu_task *task)
{
    const struct stk_operands *o = &task->o;
    const int64_t in = (int64_t)stk_shape_elements(o->layer->in);
    const int64_t out = (int64_t)stk_shape_elements(o->layer->out);
    stk_onednn_multiply(&(struct stk_onednn_product){ .m = o->count,
                                                      .n = in,
                                                      .k = out,
                                                      .a = o->dy,
                                                      .b = o->weight,
                                                      .c = o->dx,
                                                      .a_row = out,
                                                      .b_row = in,
                                                      .c_row = in });
}

static void linear_weights_onednn(const struct stk_cpu_task *task)
{
    const struct stk_operands *o = &task->o;
    const uint64_t in = stk_shape_elements(o->layer->in);
    const uint64_t out = stk_shape_elements(o->layer->out);
    const struct stk_share share = stk_share_of(out, task->thread, task->threads);
    if (share.begin == share.end)
        return;
    stk_onednn_multiply(&(struct stk_onednn_product){ .m = (int64_t)(share.end - share.begin),
                                                      .n = (int64_t)in,
                                                      .k = o->count,
                                                      .a = o->dy + share.begin,
                                                      .a_transposed = true,
                                                      .b = o->x,
                                                      .c = o->weight_grad + share.begin * in,
                                                      .a_row = (int64_t)out,
                                                      .b_row = (int64_t)in,
                                                      .c_row = (int64_t)in,
                                                      .beta = 1 });
    stk_cpu_add_bias_gradients(o, share);
}

int stk_cpu_choose_onednn(struct stk_cpu_step *step, const struct stk_plan *plan,
                          const struct stk_op *op, uint32_t threads)
{
    const struct stk_layer *layer = &plan->model->layers[op->layer];
    if (stk_environment_refuses_code() != NULL)
        return STOKER_OK;
    if (op->kind == STK_OP_LINEAR_FORWARD)
        step->run = linear_forward_onednn;
    else if (op->kind == STK_OP_LINEAR_BACKWARD_DATA)
        step->run = linear_data_onednn;
    else if (op->kind == STK_OP_LINEAR_BACKWARD_WEIGHTS)
        step->run = linear_weights_onednn;
    if (op->kind > STK_OP_CONV_BACKWARD_WEIGHTS)
        return STOKER_OK;
    const uint32_t shard = (plan->options.batch + threads - 1) / threads;
    const int rc = stk_onednn_conv_create(&step->conv, layer, op->kind, shard, threads);
    if (rc == STOKER_ENOTSUP)
        return STOKER_OK;
    if (rc != STOKER_OK)
        return rc;
    step->run = run_onednn;
    step->mode = STK_CPU_SHARD;
    step->scratch_bytes = stk_onednn_conv_scratch_bytes(step->conv);
    return STOKER_OK;
}
