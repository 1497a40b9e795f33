/* norm.c - BatchNorm of a graph, by plain loops: with statistics given, and backward. */
#include "support/standin_cudnn/operations.h"

static double value(const struct standin_cudnn_work *work, stk_cudnn_ref ref, int64_t i)
{
    const struct standin_cudnn_array a = standin_cudnn_array_of(work, ref);
    return (double)standin_cudnn_load(&a, i);
}

static void put(const struct standin_cudnn_work *work, stk_cudnn_ref ref, int64_t i, double number)
{
    const struct standin_cudnn_array a = standin_cudnn_array_of(work, ref);
    standin_cudnn_store(&a, i, number);
}

void standin_cudnn_norm(const struct standin_cudnn_work *work, const struct stk_cudnn_norm *n)
{
    const struct stk_cudnn_tensor *const x = &work->tensor[n->x - 1];
    for (int64_t i = 0; i < (int64_t)standin_cudnn_elements(x); i++) {
        const int64_t c = i % x->c;
        const double hat =
            (value(work, n->x, i) - value(work, n->mean, c)) * value(work, n->inverse, c);
        put(work, n->y, i, hat * value(work, n->gamma, c) + value(work, n->beta, c));
    }
}

/* Ioffe and Szegedy, 2015, section 3: sums of a channel first, then dx. */
static void channel(const struct standin_cudnn_work *work, const struct stk_cudnn_norm_backward *n,
                    int64_t c)
{
    const struct stk_cudnn_tensor *const x = &work->tensor[n->x - 1];
    const int64_t elements = (int64_t)standin_cudnn_elements(x);
    const double mean = value(work, n->mean, c);
    const double inverse = value(work, n->inverse, c);
    double gamma_sum = 0;
    double beta_sum = 0;
    for (int64_t i = c; i < elements; i += x->c) {
        const double dy = value(work, n->dy, i);
        gamma_sum += dy * (value(work, n->x, i) - mean) * inverse;
        beta_sum += dy;
    }
    put(work, n->gamma_grad, c, gamma_sum);
    put(work, n->beta_grad, c, beta_sum);
    const double pixels = (double)(elements / x->c);
    for (int64_t i = c; i < elements; i += x->c) {
        const double hat = (value(work, n->x, i) - mean) * inverse;
        put(work, n->dx, i,
            value(work, n->gamma, c) * inverse *
                (value(work, n->dy, i) - (beta_sum + hat * gamma_sum) / pixels));
    }
}

void standin_cudnn_norm_backward(const struct standin_cudnn_work *work,
                                 const struct stk_cudnn_norm_backward *n)
{
    for (int64_t c = 0; c < work->tensor[n->x - 1].c; c++)
        channel(work, n, c);
}
