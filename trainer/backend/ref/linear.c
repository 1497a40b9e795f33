/* linear.c - y = x W' + b, and its gradients. W is [out][in]. */
#include "trainer/backend/ref/operations.h"

void stk_ref_linear_forward(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    const uint64_t in = stk_shape_elements(o->layer->in);
    const uint64_t out = stk_shape_elements(o->layer->out);
    for (uint32_t n = 0; n < o->count; n++)
        for (uint64_t to = 0; to < out; to++) {
            double sum = o->bias != NULL ? (double)o->bias[to] : 0;
            for (uint64_t from = 0; from < in; from++)
                sum += (double)o->x[n * in + from] * (double)o->weight[to * in + from];
            o->y[n * out + to] = (float)(o->op->relu && sum < 0 ? 0 : sum);
        }
}

void stk_ref_linear_backward_data(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    const uint64_t in = stk_shape_elements(o->layer->in);
    const uint64_t out = stk_shape_elements(o->layer->out);
    for (uint32_t n = 0; n < o->count; n++)
        for (uint64_t from = 0; from < in; from++) {
            double sum = 0;
            for (uint64_t to = 0; to < out; to++)
                sum += (double)o->dy[n * out + to] * (double)o->weight[to * in + from];
            o->dx[n * in + from] = (float)sum;
        }
}

static double weight_gradient(const struct stk_operands *o, uint64_t to, uint64_t from)
{
    const uint64_t in = stk_shape_elements(o->layer->in);
    const uint64_t out = stk_shape_elements(o->layer->out);
    double sum = 0;
    for (uint32_t n = 0; n < o->count; n++)
        sum += (double)o->dy[n * out + to] * (double)o->x[n * in + from];
    return sum;
}

static double bias_gradient(const struct stk_operands *o, uint64_t to)
{
    const uint64_t out = stk_shape_elements(o->layer->out);
    double sum = 0;
    for (uint32_t n = 0; n < o->count; n++)
        sum += (double)o->dy[n * out + to];
    return sum;
}

void stk_ref_linear_backward_weights(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    const uint64_t in = stk_shape_elements(o->layer->in);
    const uint64_t out = stk_shape_elements(o->layer->out);
    for (uint64_t to = 0; to < out; to++) {
        for (uint64_t from = 0; from < in; from++)
            o->weight_grad[to * in + from] += (float)weight_gradient(o, to, from);
        if (o->bias_grad != NULL)
            o->bias_grad[to] += (float)bias_gradient(o, to);
    }
}
