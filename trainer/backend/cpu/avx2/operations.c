/* operations.c - steps of the cpu back end on AVX2 loops. */
#include "trainer/backend/cpu/operations.h"

#include "trainer/backend/cpu/avx2/kernels.h"

#ifdef STK_HAVE_AVX2
#include <string.h>

static struct stk_conv_sizes sizes_of(const struct stk_layer *layer)
{
    return (struct stk_conv_sizes){ .h = layer->in.h + 2 * layer->padding[0],
                                    .w = layer->in.w + 2 * layer->padding[1],
                                    .c = layer->in.c,
                                    .out_h = layer->out.h,
                                    .out_w = layer->out.w,
                                    .filters = layer->out.c,
                                    .kernel_h = layer->kernel[0],
                                    .kernel_w = layer->kernel[1],
                                    .stride_h = layer->stride[0],
                                    .stride_w = layer->stride[1],
                                    .run = layer->kernel[1] * layer->in.c };
}

static bool is_padded(const struct stk_layer *layer)
{
    return layer->padding[0] + layer->padding[1] > 0;
}

static uint64_t bordered_floats(const struct stk_layer *layer)
{
    const struct stk_conv_sizes size = sizes_of(layer);
    return (uint64_t)size.h * size.w * size.c;
}

/* Scratch of a padded layer starts with a copy of a sample with its border. */
static uint64_t bordered_bytes(const struct stk_layer *layer)
{
    return is_padded(layer) ? stk_round_to_line(bordered_floats(layer) * sizeof(float)) : 0;
}

/* Row h of a sample in its bordered copy. */
static float *inside(const struct stk_layer *layer, float *bordered, uint32_t h)
{
    const uint64_t width = (uint64_t)layer->in.w + 2 * layer->padding[1];
    return bordered + ((h + layer->padding[0]) * width + layer->padding[1]) * layer->in.c;
}

/* The sample itself, or a copy with a border of zeros. */
static const float *with_border(const struct stk_cpu_task *task, const float *x)
{
    const struct stk_layer *layer = task->o.layer;
    if (!is_padded(layer))
        return x;
    float *copy = task->scratch;
    const uint64_t row = (uint64_t)layer->in.w * layer->in.c;
    memset(copy, 0, bordered_floats(layer) * sizeof(float));
    for (uint32_t h = 0; h < layer->in.h; h++)
        memcpy(inside(layer, copy, h), x + h * row, row * sizeof(float));
    return copy;
}

static void conv_data_avx2(const struct stk_cpu_task *task)
{
    const struct stk_operands *o = &task->o;
    const struct stk_layer *layer = o->layer;
    const struct stk_conv_sizes size = sizes_of(layer);
    const uint64_t row = (uint64_t)layer->in.w * layer->in.c;
    float *bordered = task->scratch;
    void *scratch = (uint8_t *)task->scratch + bordered_bytes(layer);
    for (uint32_t n = 0; n < o->count; n++) {
        const float *dy = o->dy + n * stk_shape_elements(layer->out);
        float *dx = o->dx + n * stk_shape_elements(layer->in);
        stk_avx2_conv_backward_data(&size, dy, o->weight, is_padded(layer) ? bordered : dx,
                                    scratch);
        for (uint32_t h = 0; is_padded(layer) && h < layer->in.h; h++)
            memcpy(dx + h * row, inside(layer, bordered, h), row * sizeof(float));
    }
}

static void conv_weights_avx2(const struct stk_cpu_task *task)
{
    const struct stk_operands *o = &task->o;
    const struct stk_conv_sizes size = sizes_of(o->layer);
    void *scratch = (uint8_t *)task->scratch + bordered_bytes(o->layer);
    for (uint32_t n = 0; n < o->count; n++)
        stk_avx2_conv_backward_weights(
            &size, with_border(task, o->x + n * stk_shape_elements(o->layer->in)),
            o->dy + n * stk_shape_elements(o->layer->out), o->weight_grad, o->bias_grad, scratch);
}

static void max_pool_forward_avx2(const struct stk_cpu_task *task)
{
    stk_avx2_max_pool_forward(&task->o);
}

static void max_pool_backward_avx2(const struct stk_cpu_task *task)
{
    stk_avx2_max_pool_backward(&task->o);
}

static void drop_avx2(const struct stk_cpu_task *task, float *to, const float *from)
{
    const struct stk_operands *o = &task->o;
    for (uint32_t n = 0; n < o->count; n++) {
        const struct stk_dropout dropout =
            stk_dropout_of(o->pass->seed, o->pass->step, o->number,
                           o->pass->first_sample + o->first + n, o->layer->rate);
        stk_avx2_drop(&dropout, to + n * o->elements, from + n * o->elements, o->elements);
    }
}

static void dropout_forward_avx2(const struct stk_cpu_task *task)
{
    drop_avx2(task, task->o.y, task->o.x);
}

static void dropout_backward_avx2(const struct stk_cpu_task *task)
{
    drop_avx2(task, task->o.dx, task->o.dy);
}

/* The lists of the gradients have 32-bit offsets. */
static bool conv_fits_avx2(const struct stk_layer *layer)
{
    const uint64_t filter = (uint64_t)layer->kernel[0] * layer->kernel[1] * layer->in.c;
    return layer->groups == 1 && bordered_floats(layer) <= UINT32_MAX &&
           filter * layer->out.c <= UINT32_MAX;
}

bool stk_cpu_choose_avx2(struct stk_cpu_step *step, const struct stk_layer *layer,
                         enum stk_op_kind kind)
{
    static stk_cpu_op *const ops[STK_OP_KINDS] = {
        [STK_OP_CONV_BACKWARD_DATA] = conv_data_avx2,
        [STK_OP_CONV_BACKWARD_WEIGHTS] = conv_weights_avx2,
        [STK_OP_MAX_POOL_FORWARD] = max_pool_forward_avx2,
        [STK_OP_MAX_POOL_BACKWARD] = max_pool_backward_avx2,
        [STK_OP_DROPOUT_FORWARD] = dropout_forward_avx2,
        [STK_OP_DROPOUT_BACKWARD] = dropout_backward_avx2,
    };
    const bool conv = kind <= STK_OP_CONV_BACKWARD_WEIGHTS;
    const bool pools = kind == STK_OP_MAX_POOL_FORWARD || kind == STK_OP_MAX_POOL_BACKWARD;
    if (!stk_avx2_runs_here() || ops[kind] == NULL || (conv && !conv_fits_avx2(layer)) ||
        (pools && !stk_avx2_pools(layer)))
        return false;
    step->run = ops[kind];
    if (conv) {
        const struct stk_conv_sizes size = sizes_of(layer);
        step->scratch_bytes = bordered_bytes(layer) + stk_avx2_conv_scratch_bytes(&size);
    }
    return true;
}
#else
bool stk_cpu_choose_avx2(struct stk_cpu_step *step, const struct stk_layer *layer,
                         enum stk_op_kind kind)
{
    (void)step;
    (void)layer;
    (void)kind;
    return false;
}
#endif
