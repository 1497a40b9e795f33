/* fuse.c - see fuse.h. */
#include "trainer/backend/cuda/program/fuse.h"

#include <assert.h>

#include "kernels/train/arguments.h"
#include "trainer/backend/common/operands.h"

/* Products of a head: libraries are faster beyond. */
enum { HEAD_PRODUCTS_MAX = 1 << 23 };

static const struct stk_layer *layer_of(const struct stk_plan *plan, uint32_t i)
{
    return &plan->model->layers[plan->ops[i].layer];
}

static bool is_weights(enum stk_op_kind kind)
{
    return kind == STK_OP_CONV_BACKWARD_WEIGHTS || kind == STK_OP_LINEAR_BACKWARD_WEIGHTS;
}

/* ---- bias ---------------------------------------------------------------------------------------- */

/* Windows side by side that cover the image, so that each input has one output. */
static bool tiles(const struct stk_layer *pool)
{
    return pool->stride[0] == pool->kernel[0] && pool->stride[1] == pool->kernel[1] &&
           pool->padding[0] == 0 && pool->padding[1] == 0 &&
           pool->out.h * pool->kernel[0] == pool->in.h &&
           pool->out.w * pool->kernel[1] == pool->in.w && !stk_pool_is_wide(pool);
}

/* True if operation i writes what the next one sums up for its bias, and its kernel can do that. */
static bool sums_bias(const struct stk_plan *plan, uint32_t i)
{
    const struct stk_op *const op = &plan->ops[i];
    if (i + 1 == plan->op_count || !is_weights(plan->ops[i + 1].kind) ||
        plan->ops[i + 1].dy != op->dx || layer_of(plan, i + 1)->bias < 0)
        return false;
    return op->kind == STK_OP_RELU_BACKWARD ||
           (op->kind == STK_OP_MAX_POOL_BACKWARD && tiles(layer_of(plan, i)));
}

/* ---- head ---------------------------------------------------------------------------------------- */

static bool is_small(const struct stk_layer *layer, uint32_t batch)
{
    const uint64_t depth = stk_shape_elements(layer->in);
    const uint64_t classes = stk_shape_elements(layer->out);
    return classes <= STK_TRAIN_HEAD_CLASSES && depth <= STK_TRAIN_HEAD_DEPTH &&
           classes * depth * batch <= HEAD_PRODUCTS_MAX;
}

static bool is_head(const struct stk_plan *plan, uint32_t i)
{
    const struct stk_op *const ops = &plan->ops[i];
    return i + STK_CUDA_HEAD_WEIGHTS < plan->op_count && ops[0].kind == STK_OP_LINEAR_FORWARD &&
           !ops[0].relu && ops[STK_CUDA_HEAD_LOSS].kind == STK_OP_SOFTMAX_CROSS_ENTROPY &&
           ops[STK_CUDA_HEAD_LOSS].x == ops[0].y && ops[STK_CUDA_HEAD_LOSS].dx != STK_NO_BUFFER &&
           ops[STK_CUDA_HEAD_WEIGHTS].kind == STK_OP_LINEAR_BACKWARD_WEIGHTS &&
           ops[STK_CUDA_HEAD_WEIGHTS].layer == ops[0].layer &&
           is_small(layer_of(plan, i), plan->options.batch);
}

static bool overlap(const struct stk_plan *plan, int32_t a, int32_t b)
{
    if (a < 0 || b < 0)
        return false;
    const struct stk_buffer *const x = &plan->buffers[a];
    const struct stk_buffer *const y = &plan->buffers[b];
    return x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
}

/* The gradient of the input may be written early if it does not lie where the layer's input or its result is still read. */
static bool takes_data(const struct stk_plan *plan, uint32_t i)
{
    const struct stk_op *const ops = &plan->ops[i];
    if (i + STK_CUDA_HEAD_DATA >= plan->op_count)
        return false;
    const struct stk_op *const data = &ops[STK_CUDA_HEAD_DATA];
    return data->kind == STK_OP_LINEAR_BACKWARD_DATA && data->layer == ops[0].layer &&
           !overlap(plan, data->dx, ops[0].x) && !overlap(plan, data->dx, ops[0].y) &&
           !overlap(plan, data->dx, ops[STK_CUDA_HEAD_LOSS].dx);
}

static void fuse_head(struct stk_cuda_fused *fused, const struct stk_plan *plan, uint32_t i)
{
    assert(plan->ops[i + STK_CUDA_HEAD_WEIGHTS].dy == plan->ops[i + STK_CUDA_HEAD_LOSS].dx);
    fused[i].head = true;
    fused[i].head_data = takes_data(plan, i);
    fused[i + STK_CUDA_HEAD_LOSS].skipped = true;
    fused[i + STK_CUDA_HEAD_WEIGHTS].bias_known = true;
    if (fused[i].head_data)
        fused[i + STK_CUDA_HEAD_DATA].skipped = true;
}

void stk_cuda_fuse(struct stk_cuda_fused *fused, const struct stk_plan *plan)
{
    for (uint32_t i = 0; i < plan->op_count; i++) {
        if (is_head(plan, i))
            fuse_head(fused, plan, i);
        if (!sums_bias(plan, i))
            continue;
        fused[i].sums_bias = true;
        fused[i + 1].bias_known = true;
    }
}
