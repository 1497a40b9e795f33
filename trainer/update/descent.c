/* descent.c - SGD and averaged SGD. */
#include "trainer/update/loops.h"

/* torch.optim.SGD:  w -= lr (g + decay w) */
STK_LOOP_BODY stk_loop_sgd_body(STK_LOOP_PARAMETERS)
{
    (void)s0, (void)s1, (void)s2;
    const struct stk_factors f = *factors;
    for (uint64_t i = 0; i < count; i++)
        w[i] -= f.rate * (g[i] * f.gradient + f.decay * w[i]);
}
STK_LOOP(stk_loop_sgd)

/* b = momentum b + (1 - dampening) g';  w -= lr b. The first b is g': keep1 0, add1 1. */
STK_LOOP_BODY stk_loop_sgd_momentum_body(STK_LOOP_PARAMETERS)
{
    (void)s1, (void)s2;
    const struct stk_factors f = *factors;
    for (uint64_t i = 0; i < count; i++) {
        const float gradient = g[i] * f.gradient + f.decay * w[i];
        s0[i] = f.keep1 * s0[i] + f.add1 * gradient;
        w[i] -= f.rate * s0[i];
    }
}
STK_LOOP(stk_loop_sgd_momentum)

/* Nesterov, as PyTorch has it:  w -= lr (g' + momentum b) */
STK_LOOP_BODY stk_loop_sgd_nesterov_body(STK_LOOP_PARAMETERS)
{
    (void)s1, (void)s2;
    const struct stk_factors f = *factors;
    for (uint64_t i = 0; i < count; i++) {
        const float gradient = g[i] * f.gradient + f.decay * w[i];
        s0[i] = f.keep1 * s0[i] + f.add1 * gradient;
        w[i] -= f.rate * (gradient + f.momentum * s0[i]);
    }
}
STK_LOOP(stk_loop_sgd_nesterov)

/* torch.optim.ASGD (Polyak, Juditsky 1992):  w = (1 - lambd eta) w - eta g';  average += mu (w - average).
 * add1 is mu. */
STK_LOOP_BODY stk_loop_asgd_body(STK_LOOP_PARAMETERS)
{
    (void)s1, (void)s2;
    const struct stk_factors f = *factors;
    for (uint64_t i = 0; i < count; i++) {
        const float gradient = g[i] * f.gradient + f.decay * w[i];
        w[i] = w[i] * f.shrink - f.rate * gradient;
        s0[i] += (w[i] - s0[i]) * f.add1;
    }
}
STK_LOOP(stk_loop_asgd)

/* average = decay average + (1 - decay) w, written so that an average of equals stays exact. */
STK_LOOP_BODY stk_loop_average_body(STK_LOOP_PARAMETERS)
{
    (void)s0, (void)s1, (void)s2;
    const float add = factors->add1;
    for (uint64_t i = 0; i < count; i++)
        w[i] += (g[i] - w[i]) * add;
}
STK_LOOP(stk_loop_average)
