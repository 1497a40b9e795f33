/* batch_norm.c - BatchNorm over all pixels of all samples, channel by channel.
 *
 *   aux   mean of each channel, then 1 / sqrt(variance + epsilon) of each
 *
 * With pass->sums they are those of all ranks: each sum goes round before it is used. */
#include "trainer/backend/ref/operations.h"

#include <math.h>

#include "trainer/backend/common/batch_norm.h"
#include "trainer/backend/ref/rounding.h"

static uint64_t pixels_of(const struct stk_operands *o)
{
    return o->count * stk_plane(o->layer->in);
}

/* The pixels that statistics are taken of. */
static double pixels_together(const struct stk_operands *o)
{
    return (double)stk_batch_norm_samples(o->pass, o->count) * (double)stk_plane(o->layer->in);
}

static double mean_of(const struct stk_operands *o, uint32_t c)
{
    const uint32_t channels = o->layer->in.c;
    double sum = 0;
    for (uint64_t i = 0; i < pixels_of(o); i++)
        sum += (double)o->x[i * channels + c];
    stk_batch_norm_add(o->pass, &sum, 1);
    return sum / pixels_together(o);
}

static double variance_of(const struct stk_operands *o, uint32_t c, double mean)
{
    const uint32_t channels = o->layer->in.c;
    double sum = 0;
    for (uint64_t i = 0; i < pixels_of(o); i++) {
        const double centerd = (double)o->x[i * channels + c] - mean;
        sum += centerd * centerd;
    }
    stk_batch_norm_add(o->pass, &sum, 1);
    return sum / pixels_together(o);
}

/* Update the running statistics of channel c, with the unbiased variance. */
static void move_running(const struct stk_operands *o, uint32_t c, double mean, double variance)
{
    const double momentum = (double)o->layer->momentum;
    const double pixels = pixels_together(o);
    const double unbiased = pixels > 1 ? variance * pixels / (pixels - 1) : variance;
    if (o->batch_mean != NULL) {
        o->batch_mean[c] = mean;
        o->batch_var[c] = unbiased;
        return;
    }
    o->running_mean[c] = (float)((1 - momentum) * (double)o->running_mean[c] + momentum * mean);
    o->running_var[c] = (float)((1 - momentum) * (double)o->running_var[c] + momentum * unbiased);
}

void stk_ref_batch_norm_apply(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    const uint32_t channels = o->layer->in.c;
    const float *mean = o->aux;
    for (uint64_t i = 0; i < pixels_of(o); i++)
        stk_batch_norm_row(o->y + i * channels, o->x + i * channels, mean, mean + channels,
                           o->weight, o->bias, channels, o->op->relu);
}

void stk_ref_batch_norm_forward(const struct stk_operands *o, struct stk_loss *loss)
{
    const uint32_t channels = o->layer->in.c;
    float *aux = o->aux;
    for (uint32_t c = 0; c < channels; c++) {
        const double mean = mean_of(o, c);
        const double variance = variance_of(o, c, mean);
        aux[c] = (float)mean;
        aux[channels + c] = (float)(1 / sqrt(variance + (double)o->layer->epsilon));
        if (!o->op->again && o->running_mean != NULL)
            move_running(o, c, mean, variance);
    }
    stk_ref_batch_norm_apply(o, loss);
}

void stk_ref_batch_norm_infer(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    const uint32_t channels = o->layer->in.c;
    for (uint64_t i = 0; i < pixels_of(o) * channels; i++) {
        const uint32_t c = (uint32_t)(i % channels);
        const float inverse =
            (float)(1 / sqrt((double)o->running_var[c] + (double)o->layer->epsilon));
        stk_batch_norm_row(o->y + i, o->x + i, &o->running_mean[c], &inverse, &o->weight[c],
                           &o->bias[c], 1, o->op->relu);
    }
}

/* The gradient that reaches element `at` of channel c: 0 where ReLU cut it off. */
static double passed(const struct stk_operands *o, uint64_t at, uint32_t c)
{
    if (!o->op->relu)
        return (double)o->dy[at];
    const float *mean = o->aux;
    float y;
    if (o->y != NULL)
        y = o->y[at];
    else
        stk_batch_norm_row(&y, o->x + at, mean + c, mean + o->layer->in.c + c, o->weight + c,
                           o->bias + c, 1, true);
    /* A value that rounds to 0 counts as cut off. */
    return stk_rounded(y, o->storage) > 0 ? (double)o->dy[at] : 0;
}

static void channel_backward(const struct stk_operands *o, uint32_t c)
{
    const uint32_t channels = o->layer->in.c;
    const uint64_t pixels = pixels_of(o);
    const double mean = (double)((const float *)o->aux)[c];
    const double inverse = (double)((const float *)o->aux)[channels + c];
    double gamma_grad = 0;
    double beta_grad = 0;
    for (uint64_t i = 0; i < pixels; i++) {
        const uint64_t at = i * channels + c;
        const double dy = passed(o, at, c);
        gamma_grad += dy * ((double)o->x[at] - mean) * inverse;
        beta_grad += dy;
    }
    o->weight_grad[c] += (float)gamma_grad;
    o->bias_grad[c] += (float)beta_grad;
    if (o->dx == NULL)
        return;
    double sums[2] = { gamma_grad, beta_grad };
    stk_batch_norm_add(o->pass, sums, 2);
    for (uint64_t i = 0; i < pixels; i++) {
        const uint64_t at = i * channels + c;
        const double hat = ((double)o->x[at] - mean) * inverse;
        const double centerd = passed(o, at, c) - (sums[1] + hat * sums[0]) / pixels_together(o);
        o->dx[at] = (float)((double)o->weight[c] * inverse * centerd);
    }
}

void stk_ref_batch_norm_backward(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    for (uint32_t c = 0; c < o->layer->in.c; c++)
        channel_backward(o, c);
}
