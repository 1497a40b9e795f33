/* operations.c - steps of the cpu back end on bfloat16 loops. */
#include "trainer/backend/cpu/operations.h"

#include "kernels/float16.h"
#include "loader/base/cpu_features.h"
#include "loader/base/environment.h"
#include "trainer/backend/cpu/bf16/kernels.h"

#include <string.h>

#ifdef STK_HAVE_BF16
bool stk_cpu_has_bf16(void)
{
    const char *const wish = stk_environment("STOKER_BF16");
    if (wish != NULL && strcmp(wish, "off") == 0)
        return false;
    return stk_cpu_has(STK_CPU_AVX2 | STK_CPU_FMA | STK_CPU_AVX512F | STK_CPU_AVX512BW |
                       STK_CPU_AVX512DQ | STK_CPU_AVX512VL | STK_CPU_AVX512_BF16);
}

/* Operands in bfloat16 are cast to float pointers: see operands.h. */
static const uint16_t *narrow(const float *operand)
{
    return (const uint16_t *)(const void *)operand;
}

static uint16_t *narrow_result(float *operand)
{
    return (uint16_t *)(void *)operand;
}

static struct stk_bf16_conv sizes_of(const struct stk_layer *layer)
{
    return (struct stk_bf16_conv){ .h = layer->in.h + 2 * layer->padding[0],
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

static uint64_t bordered_elements(const struct stk_layer *layer)
{
    const struct stk_bf16_conv size = sizes_of(layer);
    return (uint64_t)size.h * size.w * size.c;
}

/* Scratch of the operations that read x starts with a copy of a padded layer's sample with its border. */
static uint64_t bordered_bytes(const struct stk_layer *layer)
{
    return is_padded(layer) ? stk_round_to_line(bordered_elements(layer) * sizeof(uint16_t)) : 0;
}

/* Where row h of a sample starts in its bordered copy. */
static uint64_t inside(const struct stk_layer *layer, uint32_t h)
{
    const uint64_t width = (uint64_t)layer->in.w + 2 * layer->padding[1];
    return ((h + layer->padding[0]) * width + layer->padding[1]) * layer->in.c;
}

/* Sample n itself, or a copy with a border of zeros. */
static const uint16_t *with_border(const struct stk_cpu_task *task, uint32_t n)
{
    const struct stk_layer *layer = task->o.layer;
    const uint16_t *x = narrow(task->o.x) + n * stk_shape_elements(layer->in);
    if (!is_padded(layer))
        return x;
    uint16_t *copy = task->scratch;
    const uint64_t row = (uint64_t)layer->in.w * layer->in.c;
    memset(copy, 0, bordered_elements(layer) * sizeof(*copy));
    for (uint32_t h = 0; h < layer->in.h; h++)
        memcpy(copy + inside(layer, h), x + h * row, row * sizeof(*copy));
    return copy;
}

static void pack_weights(const struct stk_cpu_task *task)
{
    const struct stk_bf16_conv size = sizes_of(task->o.layer);
    stk_bf16_conv_pack(&size, narrow(task->o.weight), task->shared, task->thread, task->threads);
}

static void conv_forward(const struct stk_cpu_task *task)
{
    const struct stk_operands *o = &task->o;
    const struct stk_bf16_conv size = sizes_of(o->layer);
    for (uint32_t n = 0; n < o->count; n++)
        stk_bf16_conv_forward(&size, with_border(task, n), task->shared, narrow(o->bias),
                              o->op->relu,
                              narrow_result(o->y) + n * stk_shape_elements(o->layer->out));
}

static void shuffle_weights(const struct stk_cpu_task *task)
{
    const struct stk_bf16_conv size = sizes_of(task->o.layer);
    stk_bf16_conv_shuffle(&size, narrow(task->o.weight), task->shared, task->thread, task->threads);
}

static void conv_data(const struct stk_cpu_task *task)
{
    const struct stk_operands *o = &task->o;
    const struct stk_layer *layer = o->layer;
    const struct stk_bf16_conv size = sizes_of(layer);
    const uint64_t row = (uint64_t)layer->in.w * layer->in.c;
    for (uint32_t n = 0; n < o->count; n++) {
        const uint16_t *dy = narrow(o->dy) + n * stk_shape_elements(layer->out);
        uint16_t *dx = narrow_result(o->dx) + n * stk_shape_elements(layer->in);
        const float *sums = stk_bf16_conv_backward_data(&size, dy, task->shared, task->scratch);
        if (!is_padded(layer))
            stk_bf16_from_floats(dx, sums, stk_shape_elements(layer->in));
        for (uint32_t h = 0; is_padded(layer) && h < layer->in.h; h++)
            stk_bf16_from_floats(dx + h * row, sums + inside(layer, h), row);
    }
}

static void conv_weights(const struct stk_cpu_task *task)
{
    const struct stk_operands *o = &task->o;
    const struct stk_bf16_conv size = sizes_of(o->layer);
    void *scratch = (uint8_t *)task->scratch + bordered_bytes(o->layer);
    for (uint32_t n = 0; n < o->count; n++)
        stk_bf16_conv_backward_weights(&size, with_border(task, n),
                                       narrow(o->dy) + n * stk_shape_elements(o->layer->out),
                                       o->weight_grad, o->bias_grad, scratch);
}

static void linear_forward(const struct stk_cpu_task *task)
{
    const struct stk_operands *o = &task->o;
    stk_bf16_linear_forward(&(struct stk_bf16_linear){ .x = narrow(o->x),
                                                       .w = narrow(o->weight),
                                                       .bias = narrow(o->bias),
                                                       .y = narrow_result(o->y),
                                                       .sums = task->scratch,
                                                       .count = o->count,
                                                       .in = stk_shape_elements(o->layer->in),
                                                       .out = stk_shape_elements(o->layer->out),
                                                       .relu = o->op->relu });
}

/* Scratch of the gradients: rows of dy, filled up to an even length; then sums. */
static uint64_t even(uint64_t count)
{
    return (count + 1) / 2 * 2;
}

static void linear_data(const struct stk_cpu_task *task)
{
    const struct stk_operands *o = &task->o;
    const uint64_t out = stk_shape_elements(o->layer->out);
    const uint16_t *dy = narrow(o->dy);
    uint16_t *rows = task->scratch;
    const uint64_t rows_bytes = stk_round_to_line(o->count * even(out) * sizeof(*rows));
    for (uint32_t n = 0; n < o->count; n++) {
        rows[n * even(out) + even(out) - 1] = 0;
        memcpy(rows + n * even(out), dy + n * out, out * sizeof(*rows));
    }
    stk_bf16_outer(
        &(struct stk_bf16_outer){ .a = rows,
                                  .b = narrow(o->weight),
                                  .c = narrow_result(o->dx),
                                  .sums = (float *)(void *)((uint8_t *)task->scratch + rows_bytes),
                                  .rows = o->count,
                                  .depth = out,
                                  .columns = stk_shape_elements(o->layer->in) });
}

static void add_bias_gradients(const struct stk_operands *o, struct stk_share share)
{
    const uint64_t out = stk_shape_elements(o->layer->out);
    for (uint64_t to = share.begin; o->bias_grad != NULL && to < share.end; to++) {
        float sum = 0;
        for (uint32_t n = 0; n < o->count; n++)
            sum += float_of_bfloat16(narrow(o->dy)[n * out + to]);
        o->bias_grad[to] += sum;
    }
}

static void linear_weights(const struct stk_cpu_task *task)
{
    const struct stk_operands *o = &task->o;
    const uint64_t in = stk_shape_elements(o->layer->in);
    const uint64_t out = stk_shape_elements(o->layer->out);
    const uint64_t depth = even(o->count);
    const struct stk_share share = stk_share_of(out, task->thread, task->threads);
    if (share.begin == share.end)
        return;
    uint16_t *rows = task->scratch; /* dy of each output: transposed */
    for (uint64_t to = share.begin; to < share.end; to++)
        for (uint64_t n = 0; n < depth; n++)
            rows[(to - share.begin) * depth + n] = n < o->count ? narrow(o->dy)[n * out + to] : 0;
    stk_bf16_outer(&(struct stk_bf16_outer){ .a = rows,
                                             .b = narrow(o->x),
                                             .sums = o->weight_grad + share.begin * in,
                                             .rows = share.end - share.begin,
                                             .depth = o->count,
                                             .columns = in });
    add_bias_gradients(o, share);
}

static void max_pool_forward(const struct stk_cpu_task *task)
{
    stk_bf16_max_pool_forward(&task->o);
}

static void max_pool_backward(const struct stk_cpu_task *task)
{
    stk_bf16_max_pool_backward(&task->o);
}

static void drop(const struct stk_cpu_task *task, uint16_t *to, const uint16_t *from)
{
    const struct stk_operands *o = &task->o;
    for (uint32_t n = 0; n < o->count; n++) {
        const struct stk_dropout dropout =
            stk_dropout_of(o->pass->seed, o->pass->step, o->number,
                           o->pass->first_sample + o->first + n, o->layer->rate);
        stk_bf16_drop(&dropout, to + n * o->elements, from + n * o->elements, o->elements);
    }
}

static void dropout_forward(const struct stk_cpu_task *task)
{
    drop(task, narrow_result(task->o.y), narrow(task->o.x));
}

static void dropout_backward(const struct stk_cpu_task *task)
{
    drop(task, narrow_result(task->o.dx), narrow(task->o.dy));
}

static uint64_t elements_of(const struct stk_cpu_task *task)
{
    return task->o.elements * task->o.count;
}

static void relu_forward(const struct stk_cpu_task *task)
{
    stk_bf16_relu_forward(narrow_result(task->o.y), narrow(task->o.x), elements_of(task));
}

static void relu_backward(const struct stk_cpu_task *task)
{
    stk_bf16_relu_backward(narrow_result(task->o.dx), narrow(task->o.y), narrow(task->o.dy),
                           elements_of(task));
}

static void add_forward(const struct stk_cpu_task *task)
{
    stk_bf16_add(narrow_result(task->o.y), narrow(task->o.x), narrow(task->o.x2),
                 elements_of(task));
}

static void accumulate(const struct stk_cpu_task *task)
{
    stk_bf16_add(narrow_result(task->o.dx), narrow(task->o.dx), narrow(task->o.dy),
                 elements_of(task));
}

static void copy(const struct stk_cpu_task *task)
{
    memcpy(task->o.dx, task->o.dy, elements_of(task) * sizeof(uint16_t));
}

static void cast(const struct stk_cpu_task *task)
{
    stk_bf16_from_floats(narrow_result(task->o.y), task->o.x, elements_of(task));
}

/* The lists of the gradients have 32-bit offsets. */
static bool conv_fits(const struct stk_layer *layer)
{
    const uint64_t filter = layer->kernel[0] * ((uint64_t)layer->kernel[1] * layer->in.c + 31);
    return layer->groups == 1 && bordered_elements(layer) <= UINT32_MAX &&
           filter * layer->out.c <= UINT32_MAX;
}

static void choose_conv(struct stk_cpu_step *step, const struct stk_layer *layer,
                        enum stk_op_kind kind)
{
    const struct stk_bf16_conv size = sizes_of(layer);
    if (kind == STK_OP_CONV_FORWARD) {
        step->run = conv_forward;
        step->prepare = pack_weights;
        step->shared_bytes = stk_bf16_conv_packed_bytes(&size);
        step->scratch_bytes = bordered_bytes(layer);
    } else if (kind == STK_OP_CONV_BACKWARD_DATA) {
        step->run = conv_data;
        step->prepare = shuffle_weights;
        step->shared_bytes = stk_bf16_conv_shuffled_bytes(&size);
        step->scratch_bytes = stk_bf16_conv_data_scratch_bytes(&size);
    } else {
        step->run = conv_weights;
        step->scratch_bytes = bordered_bytes(layer) + stk_bf16_conv_weights_scratch_bytes(&size);
    }
}

static void choose_linear(struct stk_cpu_step *step, const struct stk_layer *layer,
                          enum stk_op_kind kind, uint32_t batch, uint32_t threads)
{
    const uint64_t out = stk_shape_elements(layer->out);
    const uint64_t shard = (batch + threads - 1) / threads;
    if (kind == STK_OP_LINEAR_FORWARD) {
        step->run = linear_forward;
        step->scratch_bytes = shard * out * sizeof(float);
    } else if (kind == STK_OP_LINEAR_BACKWARD_DATA) {
        step->run = linear_data;
        step->scratch_bytes =
            stk_round_to_line(shard * even(out) * sizeof(uint16_t)) + shard * 32 * sizeof(float);
    } else {
        step->run = linear_weights;
        step->scratch_bytes = (out + threads - 1) / threads * even(batch) * sizeof(uint16_t);
    }
}

bool stk_cpu_choose_bf16(struct stk_cpu_step *step, const struct stk_layer *layer,
                         enum stk_op_kind kind, uint32_t batch, uint32_t threads)
{
    static stk_cpu_op *const ops[STK_OP_KINDS] = {
        [STK_OP_MAX_POOL_FORWARD] = max_pool_forward,
        [STK_OP_MAX_POOL_BACKWARD] = max_pool_backward,
        [STK_OP_RELU_FORWARD] = relu_forward,
        [STK_OP_RELU_BACKWARD] = relu_backward,
        [STK_OP_ADD_FORWARD] = add_forward,
        [STK_OP_ACCUMULATE] = accumulate,
        [STK_OP_COPY] = copy,
        [STK_OP_CAST] = cast,
        [STK_OP_DROPOUT_FORWARD] = dropout_forward,
        [STK_OP_DROPOUT_BACKWARD] = dropout_backward,
    };
    const bool pools = kind == STK_OP_MAX_POOL_FORWARD || kind == STK_OP_MAX_POOL_BACKWARD;
    if (kind <= STK_OP_CONV_BACKWARD_WEIGHTS) {
        if (conv_fits(layer))
            choose_conv(step, layer, kind);
        return conv_fits(layer);
    }
    if (kind <= STK_OP_LINEAR_BACKWARD_WEIGHTS) {
        choose_linear(step, layer, kind, batch, threads);
        return true;
    }
    if (ops[kind] == NULL || (pools && !stk_bf16_pools(layer)))
        return false;
    step->run = ops[kind];
    return true;
}
#else
bool stk_cpu_has_bf16(void)
{
    return false;
}

bool stk_cpu_choose_bf16(struct stk_cpu_step *step, const struct stk_layer *layer,
                         enum stk_op_kind kind, uint32_t batch, uint32_t threads)
{
    (void)step;
    (void)layer;
    (void)kind;
    (void)batch;
    (void)threads;
    return false;
}
#endif
