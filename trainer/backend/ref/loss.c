/* loss.c - the two losses, each with its gradient. */
#include "trainer/backend/ref/operations.h"

#include <math.h>

static uint64_t index_of_largest(const float *x, uint64_t count)
{
    uint64_t best = 0;
    for (uint64_t i = 1; i < count; i++)
        if (x[i] > x[best])
            best = i;
    return best;
}

/* log of the sum of exp(x), without overflow. */
static double log_sum_exp(const float *x, uint64_t count)
{
    const double largest = (double)x[index_of_largest(x, count)];
    double sum = exp((double)x[0] - largest);
    for (uint64_t i = 1; i < count; i++)
        sum += exp((double)x[i] - largest);
    return largest + log(sum);
}

/* PyTorch's label smoothing e: the target distribution is 1 - e at the label, plus e spread over
 * all classes. */
static void cross_entropy(const struct stk_operands *o, uint32_t n, struct stk_loss *loss)
{
    const uint64_t classes = stk_shape_elements(o->layer->in);
    const float *x = o->x + n * classes;
    const uint64_t label = (uint64_t)((const int64_t *)o->labels)[n];
    const double smoothing = (double)o->layer->rate;
    const double base = log_sum_exp(x, classes);
    loss->correct += index_of_largest(x, classes) == label;
    for (uint64_t i = 0; i < classes; i++) {
        const double log_p = (double)x[i] - base;
        const double wanted = smoothing / (double)classes + (i == label ? 1 - smoothing : 0);
        if (wanted > 0)
            loss->loss_sum -= wanted * log_p;
        if (o->dx != NULL) /* may be x, which was read before */
            o->dx[n * classes + i] =
                (float)((exp(log_p) - wanted) * (double)o->pass->gradient_scale);
    }
}

void stk_ref_softmax_cross_entropy(const struct stk_operands *o, struct stk_loss *loss)
{
    if (o->labels == NULL)
        return;
    for (uint32_t n = 0; n < o->count; n++)
        cross_entropy(o, n, loss);
    loss->count += o->count;
}

static void squared_error(const struct stk_operands *o, uint32_t n, struct stk_loss *loss)
{
    const uint64_t outputs = stk_shape_elements(o->layer->in);
    const float *wanted = (const float *)o->labels + n * outputs;
    double sum = 0;
    for (uint64_t i = 0; i < outputs; i++) {
        const double off = (double)o->x[n * outputs + i] - (double)wanted[i];
        sum += off * off;
        if (o->dx != NULL)
            o->dx[n * outputs + i] =
                (float)(2 * off / (double)outputs * (double)o->pass->gradient_scale);
    }
    loss->loss_sum += sum / (double)outputs;
}

void stk_ref_mse(const struct stk_operands *o, struct stk_loss *loss)
{
    if (o->labels == NULL)
        return;
    for (uint32_t n = 0; n < o->count; n++)
        squared_error(o, n, loss);
    loss->count += o->count;
}
