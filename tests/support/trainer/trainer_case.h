/* trainer_case.h - one layer as a plan by hand: forward, then its gradients, each operand in a
 * buffer of its own that the test fills and reads.
 *
 *   x ──forward──▶ y, aux        dy ──backward──▶ dx, gradients of weight and bias
 */
#ifndef STK_TEST_TRAINER_CASE_H
#define STK_TEST_TRAINER_CASE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/rng.h"
#include "trainer/backend/backend.h"
#include "trainer/backend/ref/rounding.h"
#include "trainer/plan/precision.h"

enum {
    STK_CASE_X,
    STK_CASE_X2,
    STK_CASE_Y,
    STK_CASE_DY,
    STK_CASE_DX,
    STK_CASE_AUX,
    STK_CASE_BUFFERS
};
enum { STK_CASE_OPS_MAX = 4 };

/* What a test asks for. Sizes 0 = 1, as in the public options. */
struct stk_case_layer {
    const char *name;
    enum stk_layer_kind kind;
    struct stk_shape in;
    uint32_t outputs; /* channels or features */
    uint32_t kernel[2], stride[2], padding[2], groups;
    float rate;
    bool relu, biased, in_place;
    stoker_dtype storage; /* T; 0 = float32 */
};

struct stk_case {
    struct stk_case_layer asked;
    uint32_t batch;
    struct stk_layer layers[2];
    struct stk_parameter parameters[2], statistics[2];
    stoker_model model;
    struct stk_op ops[STK_CASE_OPS_MAX];
    struct stk_buffer buffers[STK_CASE_BUFFERS];
    struct stk_plan plan;
};

static inline uint32_t stk_case_or_one(uint32_t value)
{
    return value == 0 ? 1 : value;
}

static inline struct stk_shape stk_case_output(const struct stk_layer *layer,
                                               const struct stk_case_layer *asked)
{
    struct stk_shape out = layer->in;
    if (layer->kind == STK_LINEAR)
        return (struct stk_shape){ .rank = 1, .h = 1, .w = 1, .c = asked->outputs };
    if (layer->kind == STK_CONV2D || layer->kind == STK_MAX_POOL || layer->kind == STK_AVG_POOL) {
        out.h = (out.h + 2 * layer->padding[0] - layer->kernel[0]) / layer->stride[0] + 1;
        out.w = (out.w + 2 * layer->padding[1] - layer->kernel[1]) / layer->stride[1] + 1;
    }
    if (layer->kind == STK_CONV2D)
        out.c = asked->outputs;
    return out;
}

static inline void stk_case_parameters(struct stk_case *c)
{
    struct stk_layer *layer = &c->layers[1];
    const struct stk_case_layer *asked = &c->asked;
    uint64_t weights = 0;
    if (layer->kind == STK_CONV2D)
        weights = (uint64_t)layer->out.c * layer->kernel[0] * layer->kernel[1] * layer->in.c /
                  layer->groups;
    else if (layer->kind == STK_LINEAR)
        weights = stk_shape_elements(layer->in) * layer->out.c;
    else if (layer->kind == STK_BATCH_NORM)
        weights = layer->in.c;
    layer->weight = weights > 0 ? 0 : -1;
    layer->bias = weights > 0 && asked->biased ? 1 : -1;
    c->parameters[0].elements = weights;
    c->parameters[1].offset = (weights + 15) / 16 * 16;
    c->parameters[1].elements = layer->bias < 0 ? 0 : layer->out.c;
    layer->running_mean = layer->kind == STK_BATCH_NORM ? 0 : -1;
    layer->running_var = layer->kind == STK_BATCH_NORM ? 1 : -1;
    c->statistics[1].offset = (layer->in.c + 15) / 16 * 16;
    c->model.parameter_floats = c->parameters[1].offset + (layer->out.c + 15) / 16 * 16;
    c->model.statistic_floats = 2 * c->statistics[1].offset;
}

static inline struct stk_op *stk_case_op(struct stk_case *c, enum stk_op_kind kind)
{
    struct stk_op *op = &c->ops[c->plan.op_count++];
    *op = (struct stk_op){ .kind = kind,
                           .layer = 1,
                           .x = STK_NO_BUFFER,
                           .x2 = STK_NO_BUFFER,
                           .y = STK_NO_BUFFER,
                           .dy = STK_NO_BUFFER,
                           .dx = STK_NO_BUFFER,
                           .aux = STK_NO_BUFFER };
    return op;
}

static inline void stk_case_forward(struct stk_case *c, enum stk_op_kind kind, bool aux)
{
    struct stk_op *op = stk_case_op(c, kind);
    op->x = STK_CASE_X;
    op->y = c->asked.in_place ? STK_CASE_X : STK_CASE_Y;
    op->relu = c->asked.relu;
    op->aux = aux ? STK_CASE_AUX : STK_NO_BUFFER;
}

static inline void stk_case_backward(struct stk_case *c, enum stk_op_kind kind, bool aux)
{
    struct stk_op *op = stk_case_op(c, kind);
    op->dy = STK_CASE_DY;
    op->dx = c->asked.in_place ? STK_CASE_DY : STK_CASE_DX;
    op->aux = aux ? STK_CASE_AUX : STK_NO_BUFFER;
}

/* Forward, data, weights of the two kinds of layer that have all three. */
static inline void stk_case_weighted(struct stk_case *c, enum stk_op_kind forward)
{
    stk_case_forward(c, forward, false);
    stk_case_backward(c, (enum stk_op_kind)(forward + 1), false);
    struct stk_op *op = stk_case_op(c, (enum stk_op_kind)(forward + 2));
    op->x = STK_CASE_X;
    op->dy = STK_CASE_DY;
}

static inline void stk_case_operations(struct stk_case *c)
{
    switch (c->asked.kind) {
    case STK_CONV2D:
        stk_case_weighted(c, STK_OP_CONV_FORWARD);
        break;
    case STK_LINEAR:
        stk_case_weighted(c, STK_OP_LINEAR_FORWARD);
        break;
    case STK_MAX_POOL:
        stk_case_forward(c, STK_OP_MAX_POOL_FORWARD, true);
        stk_case_backward(c, STK_OP_MAX_POOL_BACKWARD, true);
        c->ops[1].relu = c->asked.relu;
        c->ops[1].y = c->asked.relu ? c->ops[0].y : STK_NO_BUFFER;
        break;
    case STK_AVG_POOL:
        stk_case_forward(c, STK_OP_AVG_POOL_FORWARD, false);
        stk_case_backward(c, STK_OP_AVG_POOL_BACKWARD, false);
        break;
    case STK_RELU:
        stk_case_forward(c, STK_OP_RELU_FORWARD, false);
        stk_case_backward(c, STK_OP_RELU_BACKWARD, false);
        c->ops[1].y = c->ops[0].y;
        break;
    case STK_BATCH_NORM:
        stk_case_forward(c, STK_OP_BATCH_NORM_FORWARD, true);
        stk_case_backward(c, STK_OP_BATCH_NORM_BACKWARD, true);
        c->ops[1].x = STK_CASE_X;
        c->ops[1].relu = c->asked.relu;
        break;
    case STK_DROPOUT:
        stk_case_forward(c, STK_OP_DROPOUT_FORWARD, false);
        stk_case_backward(c, STK_OP_DROPOUT_BACKWARD, false);
        break;
    case STK_ADD:
        stk_case_forward(c, STK_OP_ADD_FORWARD, false);
        c->ops[0].x2 = STK_CASE_X2;
        stk_case_backward(c, STK_OP_ACCUMULATE, false);
        c->ops[1].dx = STK_CASE_DX;
        break;
    default:
        stk_case_backward(c, c->asked.kind == STK_MSE ? STK_OP_MSE : STK_OP_SOFTMAX_CROSS_ENTROPY,
                          false);
        c->ops[0].x = STK_CASE_X;
        c->ops[0].dy = STK_NO_BUFFER;
        c->ops[0].dx = c->asked.in_place ? STK_CASE_X : STK_CASE_DX;
        break;
    }
}

static inline void stk_case_lay_out(struct stk_case *c)
{
    const struct stk_layer *layer = &c->layers[1];
    const uint64_t element = stoker_dtype_bytes(c->plan.storage);
    const uint64_t in = stk_shape_elements(layer->in) * element;
    const uint64_t out = stk_shape_elements(layer->out) * element;
    const bool wide = (uint64_t)layer->kernel[0] * layer->kernel[1] > 256;
    const uint64_t aux = layer->kind == STK_MAX_POOL ? out / element * (wide ? 2 : 1) : 0;
    const uint64_t sizes[STK_CASE_BUFFERS] = { in, in, out, out, in, aux };
    for (int i = 0; i < STK_CASE_BUFFERS; i++) {
        struct stk_buffer *buffer = &c->buffers[i];
        const uint64_t bytes = layer->kind == STK_BATCH_NORM && i == STK_CASE_AUX
                                   ? 2 * layer->in.c * sizeof(float)
                                   : sizes[i] * c->batch;
        *buffer = (struct stk_buffer){ .dtype = c->plan.storage,
                                       .bytes_per_sample = sizes[i],
                                       .bytes = (bytes + 63) / 64 * 64,
                                       .offset = c->plan.activation_bytes };
        c->plan.activation_bytes += buffer->bytes;
    }
}

/* A case points into itself: it must not move. */
static inline void stk_case_make(struct stk_case *c, const struct stk_case_layer *asked,
                                 uint32_t batch)
{
    *c = (struct stk_case){ .asked = *asked, .batch = batch };
    struct stk_layer *layer = &c->layers[1];
    c->layers[0] = (struct stk_layer){ .kind = STK_INPUT, .out = asked->in };
    *layer = (struct stk_layer){ .kind = asked->kind,
                                 .in = asked->in,
                                 .groups = stk_case_or_one(asked->groups),
                                 .rate = asked->rate,
                                 .epsilon = 1e-5F,
                                 .momentum = 0.1F };
    for (int axis = 0; axis < 2; axis++) {
        layer->kernel[axis] = stk_case_or_one(asked->kernel[axis]);
        layer->stride[axis] = stk_case_or_one(asked->stride[axis]);
        layer->padding[axis] = asked->padding[axis];
    }
    snprintf(layer->name, sizeof(layer->name), "%s", asked->name);
    layer->out = stk_case_output(layer, asked);
    stk_case_parameters(c);
    c->model.layers = c->layers;
    c->model.layer_count = 2;
    c->model.parameters = c->parameters;
    c->model.statistics = c->statistics;
    c->plan.model = &c->model;
    c->plan.options = (struct stk_plan_options){ .batch = batch, .train = true };
    c->plan.options.storage = asked->storage;
    c->plan.storage = asked->storage == STOKER_DTYPE_NONE ? STOKER_DTYPE_FLOAT32 : asked->storage;
    c->plan.ops = c->ops;
    c->plan.buffers = c->buffers;
    c->plan.buffer_count = STK_CASE_BUFFERS;
    stk_case_operations(c);
    stk_case_lay_out(c);
}

/* Numbers of a fixed sequence: either sign, size 0.5 to 1, no two neighbors of a window alike. */
static inline float stk_case_number(uint64_t seed, uint64_t index)
{
    const uint64_t draw = stk_mix64(seed * 1000003 + index);
    const float size = 0.5F + (float)(draw >> 44) / (float)(1 << 21);
    return draw & 1 ? size : -size;
}

/* A plan loaded into a back end, with arenas of its own. */
struct stk_bench {
    const struct stk_backend_ops *ops;
    struct stk_backend *backend;
    const struct stk_plan *plan;
    struct stk_program *program;
    struct stk_arenas arenas;
};

static inline void stk_bench_open(struct stk_bench *bench, const struct stk_backend_ops *ops,
                                  const struct stk_backend_options *options,
                                  const struct stk_plan *plan)
{
    stoker_error error = { 0 };
    *bench = (struct stk_bench){ .ops = ops, .plan = plan };
    cr_assert_eq(ops->create(&bench->backend, options, &error), STOKER_OK, "%s", error.message);
    cr_assert_eq(ops->load(&bench->program, bench->backend, plan, &error), STOKER_OK, "%s",
                 error.message);
    const stoker_model *model = plan->model;
    bench->arenas = (struct stk_arenas){
        .parameters = ops->allocate(bench->backend, model->parameter_floats * sizeof(float) + 64),
        .gradients = ops->allocate(bench->backend, model->parameter_floats * sizeof(float) + 64),
        .statistics = ops->allocate(bench->backend, model->statistic_floats * sizeof(float) + 64),
        .activations = ops->allocate(bench->backend, plan->activation_bytes + 64)
    };
    cr_assert_not_null(bench->arenas.activations);
    if (stk_is_narrow(plan->storage))
        bench->arenas.half_weights =
            ops->allocate(bench->backend, model->parameter_floats * sizeof(uint16_t) + 64);
}

static inline void stk_bench_close(struct stk_bench *bench)
{
    bench->ops->unload(bench->program);
    bench->ops->release(bench->backend, bench->arenas.parameters);
    bench->ops->release(bench->backend, bench->arenas.gradients);
    bench->ops->release(bench->backend, bench->arenas.statistics);
    bench->ops->release(bench->backend, bench->arenas.activations);
    bench->ops->release(bench->backend, bench->arenas.half_weights);
    bench->ops->destroy(bench->backend);
}

static inline float *stk_bench_buffer(const struct stk_bench *bench, int buffer)
{
    return (float *)(void *)((uint8_t *)bench->arenas.activations +
                             bench->plan->buffers[buffer].offset);
}

static inline uint64_t stk_bench_elements(const struct stk_bench *bench, int buffer)
{
    const struct stk_buffer *found = &bench->plan->buffers[buffer];
    return found->bytes / stoker_dtype_bytes(found->dtype);
}

/* Element i of a buffer in float32, or in a 16-bit T: rounded. */
static inline void stk_bench_put(const struct stk_bench *bench, int buffer, uint64_t i, float value)
{
    const stoker_dtype dtype = bench->plan->buffers[buffer].dtype;
    if (stk_is_narrow(dtype))
        stk_narrow((uint16_t *)(void *)stk_bench_buffer(bench, buffer) + i, &value, 1, dtype);
    else
        stk_bench_buffer(bench, buffer)[i] = value;
}

/* Round the parameters, which were written, for a plan in 16 bits. */
static inline void stk_bench_round_weights(const struct stk_bench *bench)
{
    if (bench->arenas.half_weights != NULL)
        cr_assert_eq(
            bench->ops->narrow(bench->backend, bench->arenas.half_weights, bench->arenas.parameters,
                               bench->plan->model->parameter_floats, bench->plan->storage, NULL),
            STOKER_OK);
}

/* Fill parameters, statistics and the buffers x, x2, y, dy, dx with the sequence. */
static inline void stk_bench_fill(const struct stk_bench *bench, uint64_t seed)
{
    const stoker_model *model = bench->plan->model;
    for (uint64_t i = 0; i < model->parameter_floats; i++)
        bench->arenas.parameters[i] = stk_case_number(seed + 1, i);
    for (uint64_t i = 0; i < model->statistic_floats; i++)
        bench->arenas.statistics[i] = 0.5F + stk_case_number(seed + 2, i) / 4;
    memset(bench->arenas.gradients, 0, model->parameter_floats * sizeof(float));
    for (int buffer = STK_CASE_X; buffer < STK_CASE_AUX; buffer++)
        for (uint64_t i = 0; i < stk_bench_elements(bench, buffer); i++)
            stk_bench_put(bench, buffer, i, stk_case_number(seed + 3 + (uint64_t)buffer, i));
    stk_bench_round_weights(bench);
}

#endif
