/* initialize.c - the initial weights of a network.
 *
 * PyTorch's defaults: Conv2d and Linear draw weight and bias from +-1/sqrt(fan in)
 * (kaiming_uniform_ with a = sqrt(5)); BatchNorm starts as 1 and 0. Element e of parameter p
 * is draw (p, e) of a counter-based generator, and depends on nothing else.
 */
#include <math.h>
#include <string.h>

#include "loader/base/rng.h"
#include "trainer/model/model.h"

/* Separates these draws from others with the same seed. */
static const uint64_t weights_domain = 0x696E697469616C73U;

static void fill(float *to, uint64_t count, float value)
{
    for (uint64_t i = 0; i < count; i++)
        to[i] = value;
}

/* An odd multiple of 2^-24 in (-1, 1): symmetric, never 0, exact in a float. */
static float centered(uint32_t word)
{
    return (float)((int32_t)(word >> 8) * 2 - 0xFFFFFF) * 0x1p-24F;
}

static void fill_uniform(float *to, uint64_t count, float bound, uint64_t key, uint64_t stream)
{
    for (uint64_t i = 0; i < count; i += 4) {
        const struct stk_random random = stk_philox(key, stream, i / 4);
        for (uint64_t j = 0; j < 4 && i + j < count; j++)
            to[i + j] = bound * centered(random.word[j]);
    }
}

static uint64_t fan_in(const struct stk_layer *layer)
{
    if (layer->kind == STK_LINEAR)
        return layer->in.c;
    return (uint64_t)layer->in.c / layer->groups * layer->kernel[0] * layer->kernel[1];
}

void stk_model_initialize(const stoker_model *model, uint64_t seed, float *parameters,
                          float *statistics)
{
    const uint64_t key = stk_mix64(seed ^ weights_domain);
    if (model->parameter_floats > 0)
        memset(parameters, 0, model->parameter_floats * sizeof(*parameters));
    for (uint32_t i = 0; i < model->parameter_count; i++) {
        const struct stk_parameter *parameter = &model->parameters[i];
        const struct stk_layer *layer = &model->layers[parameter->layer];
        float *to = parameters + parameter->offset;
        if (layer->kind == STK_BATCH_NORM)
            fill(to, parameter->elements, parameter->role == STK_WEIGHT ? 1.0F : 0.0F);
        else
            fill_uniform(to, parameter->elements, (float)(1.0 / sqrt((double)fan_in(layer))), key,
                         i);
    }

    if (model->statistic_floats > 0)
        memset(statistics, 0, model->statistic_floats * sizeof(*statistics));
    for (uint32_t i = 0; i < model->statistic_count; i++) {
        const struct stk_parameter *statistic = &model->statistics[i];
        if ((int32_t)i == model->layers[statistic->layer].running_var)
            fill(statistics + statistic->offset, statistic->elements, 1.0F);
    }
}
