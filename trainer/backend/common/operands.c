/* operands.c - see operands.h. */
#include "trainer/backend/common/operands.h"

#include <assert.h>
#include <inttypes.h>

#include "loader/base/error.h"

static void *buffer_at(const struct stk_plan *plan, const struct stk_arenas *arenas, int32_t index,
                       uint32_t first)
{
    if (index == STK_NO_BUFFER)
        return NULL;
    assert(index >= 0);
    assert((uint32_t)index < plan->buffer_count);
    const struct stk_buffer *buffer = &plan->buffers[index];
    return (uint8_t *)arenas->activations + buffer->offset + buffer->bytes_per_sample * first;
}

uint64_t stk_operands_elements(const struct stk_plan *plan, int32_t index)
{
    if (index == STK_SAMPLES)
        return stk_shape_elements(plan->model->layers[0].out);
    if (index == STK_NO_BUFFER)
        return 0;
    const struct stk_buffer *buffer = &plan->buffers[index];
    return buffer->bytes_per_sample / stoker_dtype_bytes(buffer->dtype);
}

static const float *input_at(const struct stk_plan *plan, const struct stk_arenas *arenas,
                             const struct stk_pass *pass, int32_t index, uint32_t first)
{
    if (index == STK_SAMPLES)
        return (const void *)((const uint8_t *)pass->samples + plan->sample_bytes * first);
    return buffer_at(plan, arenas, index, first);
}

static const void *labels_at(const struct stk_layer *layer, const struct stk_pass *pass,
                             uint32_t first)
{
    if (pass->labels == NULL)
        return NULL;
    if (layer->kind == STK_MSE)
        return (const float *)pass->labels + stk_shape_elements(layer->in) * first;
    return (const int64_t *)pass->labels + first;
}

static float *parameter_at(const struct stk_parameter *parameters, float *arena, int32_t index)
{
    return index < 0 || arena == NULL ? NULL : arena + parameters[index].offset;
}

static double *statistic_at(const struct stk_parameter *statistics, double *arena, int32_t index)
{
    return index < 0 || arena == NULL ? NULL : arena + statistics[index].offset;
}

void stk_operands_find(struct stk_operands *out, const struct stk_plan *plan,
                       const struct stk_op *op, const struct stk_arenas *arenas,
                       const struct stk_pass *pass, uint32_t first, uint32_t count)
{
    const stoker_model *model = plan->model;
    const struct stk_layer *layer = &model->layers[op->layer];
    *out = (struct stk_operands){
        .op = op,
        .layer = layer,
        .pass = pass,
        .first = first,
        .count = count,
        .elements = stk_operands_elements(plan, op->y != STK_NO_BUFFER ? op->y : op->dx),
        .storage = plan->storage,
        .number = op->layer + model->layers_before,
        .x = input_at(plan, arenas, pass, op->x, first),
        .x2 = input_at(plan, arenas, pass, op->x2, first),
        .y = buffer_at(plan, arenas, op->y, first),
        .dy = buffer_at(plan, arenas, op->dy, first),
        .dx = buffer_at(plan, arenas, op->dx, first),
        .aux = buffer_at(plan, arenas, op->aux, first),
        .labels = labels_at(layer, pass, first),
        .weight = parameter_at(model->parameters, arenas->parameters, layer->weight),
        .bias = parameter_at(model->parameters, arenas->parameters, layer->bias),
        .weight_grad = parameter_at(model->parameters, arenas->gradients, layer->weight),
        .bias_grad = parameter_at(model->parameters, arenas->gradients, layer->bias),
        .running_mean = parameter_at(model->statistics, arenas->statistics, layer->running_mean),
        .running_var = parameter_at(model->statistics, arenas->statistics, layer->running_var),
        .batch_mean = statistic_at(model->statistics, pass->batch_statistics, layer->running_mean),
        .batch_var = statistic_at(model->statistics, pass->batch_statistics, layer->running_var),
    };
}

int stk_operands_check_plan(const struct stk_plan *plan, stoker_error *error)
{
    for (uint32_t i = 0; i < plan->op_count; i++) {
        const struct stk_layer *layer = &plan->model->layers[plan->ops[i].layer];
        if (plan->ops[i].kind == STK_OP_MAX_POOL_FORWARD &&
            (uint64_t)layer->kernel[0] * layer->kernel[1] > UINT16_MAX + UINT64_C(1))
            return stk_refuse_option(error, STOKER_ELIMIT,
                                     "layer %s: a pooling window of more than 65536 elements",
                                     layer->name);
    }
    return STOKER_OK;
}

int stk_operands_check_labels(const struct stk_plan *plan, const struct stk_pass *pass,
                              stoker_error *error)
{
    const struct stk_layer *loss = NULL;
    for (uint32_t i = 0; i < plan->op_count; i++)
        if (plan->ops[i].kind == STK_OP_SOFTMAX_CROSS_ENTROPY)
            loss = &plan->model->layers[plan->ops[i].layer];
    if (loss == NULL || pass->labels == NULL)
        return STOKER_OK;
    const int64_t *labels = pass->labels;
    const uint64_t classes = stk_shape_elements(loss->in);
    for (uint32_t i = 0; i < pass->count; i++) /* a negative label becomes very large */
        if ((uint64_t)labels[i] >= classes)
            return stk_refuse_option(error, STOKER_EINVAL,
                                     "label %" PRId64 " of sample %" PRIu32
                                     " in the batch is out of range (%" PRIu64 " classes)",
                                     labels[i], i, classes);
    return STOKER_OK;
}
