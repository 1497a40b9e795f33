/* optimizers.c - the loops of each optimizer, as PyTorch computes them.
 *
 * Adam: Kingma, Ba, ICLR 2015; AdamW: Loshchilov, Hutter, "Decoupled weight decay regularization",
 * ICLR 2019. */
#include <stddef.h>

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

/* torch.optim.ASGD (Polyak, Juditsky 1992): w = (1 - lambd eta) w - eta g'; average += mu (w -
 * average). add1 is mu. */
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

/* torch.optim.Adam, and AdamW: there decay is 0 and shrink is 1 - lr x weight_decay.
 *   m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
 *   w -= lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + epsilon) */
STK_LOOP_BODY stk_loop_adam_body(STK_LOOP_PARAMETERS)
{
    (void)s2;
    const struct stk_factors f = *factors;
    for (uint64_t i = 0; i < count; i++) {
        const float weight = w[i] * f.shrink;
        const float gradient = g[i] * f.gradient + f.decay * weight;
        s0[i] = f.keep1 * s0[i] + f.add1 * gradient;
        s1[i] = f.keep2 * s1[i] + f.add2 * gradient * gradient;
        w[i] = weight - f.rate * s0[i] / (sqrtf(s1[i]) / f.root2 + f.epsilon);
    }
}
STK_LOOP(stk_loop_adam)

/* torch.optim.Adamax:  u = max(b2 u, |g| + epsilon);  w -= lr / (1 - b1^t) m / u */
STK_LOOP_BODY stk_loop_adamax_body(STK_LOOP_PARAMETERS)
{
    (void)s2;
    const struct stk_factors f = *factors;
    for (uint64_t i = 0; i < count; i++) {
        const float gradient = g[i] * f.gradient + f.decay * w[i];
        s0[i] = f.keep1 * s0[i] + f.add1 * gradient;
        const float faded = f.keep2 * s1[i];
        const float now = fabsf(gradient) + f.epsilon;
        s1[i] = faded > now ? faded : now;
        w[i] -= f.rate * s0[i] / s1[i];
    }
}
STK_LOOP(stk_loop_adamax)

/* torch.optim.Adagrad (Duchi, Hazan, Singer, JMLR 12, 2011):
 *   sum += g^2;  w -= lr / (1 + (t - 1) lr_decay) g / (sqrt(sum) + epsilon) */
STK_LOOP_BODY stk_loop_adagrad_body(STK_LOOP_PARAMETERS)
{
    (void)s1, (void)s2;
    const struct stk_factors f = *factors;
    for (uint64_t i = 0; i < count; i++) {
        const float gradient = g[i] * f.gradient + f.decay * w[i];
        s0[i] += gradient * gradient;
        w[i] -= f.rate * gradient / (sqrtf(s0[i]) + f.epsilon);
    }
}
STK_LOOP(stk_loop_adagrad)

/* torch.optim.Adadelta (Zeiler 2012):
 *   v = rho v + (1 - rho) g^2;  d = sqrt(u + epsilon) / sqrt(v + epsilon) g
 *   u = rho u + (1 - rho) d^2;  w -= lr d */
STK_LOOP_BODY stk_loop_adadelta_body(STK_LOOP_PARAMETERS)
{
    (void)s2;
    const struct stk_factors f = *factors;
    for (uint64_t i = 0; i < count; i++) {
        const float gradient = g[i] * f.gradient + f.decay * w[i];
        s0[i] = f.keep1 * s0[i] + f.add1 * gradient * gradient;
        const float delta = sqrtf(s1[i] + f.epsilon) / sqrtf(s0[i] + f.epsilon) * gradient;
        s1[i] = f.keep1 * s1[i] + f.add1 * delta * delta;
        w[i] -= f.rate * delta;
    }
}
STK_LOOP(stk_loop_adadelta)

/* torch.optim.RMSprop (Hinton 2012; centered: Graves 2013):
 *   v = alpha v + (1 - alpha) g^2;  centered: a = alpha a + (1 - alpha) g, v - a^2 counts
 *   d = g / (sqrt(v) + epsilon);    momentum: b = momentum b + d counts */
STK_LOOP_BODY rmsprop(const struct stk_factors *factors, float *restrict w, const float *restrict g,
                      float *restrict squares, float *restrict means, float *restrict velocity,
                      uint64_t count)
{
    const struct stk_factors f = *factors;
    for (uint64_t i = 0; i < count; i++) {
        const float gradient = g[i] * f.gradient + f.decay * w[i];
        squares[i] = f.keep1 * squares[i] + f.add1 * gradient * gradient;
        float spread = squares[i];
        if (means != NULL) {
            means[i] = f.keep1 * means[i] + f.add1 * gradient;
            spread -= means[i] * means[i];
        }
        float delta = gradient / (sqrtf(spread) + f.epsilon);
        if (velocity != NULL) {
            velocity[i] = f.momentum * velocity[i] + delta;
            delta = velocity[i];
        }
        w[i] -= f.rate * delta;
    }
}

STK_LOOP_BODY stk_loop_rmsprop_body(STK_LOOP_PARAMETERS)
{
    (void)s1, (void)s2;
    rmsprop(factors, w, g, s0, NULL, NULL, count);
}
STK_LOOP(stk_loop_rmsprop)

STK_LOOP_BODY stk_loop_rmsprop_momentum_body(STK_LOOP_PARAMETERS)
{
    (void)s2;
    rmsprop(factors, w, g, s0, NULL, s1, count);
}
STK_LOOP(stk_loop_rmsprop_momentum)

STK_LOOP_BODY stk_loop_rmsprop_centered_body(STK_LOOP_PARAMETERS)
{
    (void)s2;
    rmsprop(factors, w, g, s0, s1, NULL, count);
}
STK_LOOP(stk_loop_rmsprop_centered)

STK_LOOP_BODY stk_loop_rmsprop_centered_momentum_body(STK_LOOP_PARAMETERS)
{
    rmsprop(factors, w, g, s0, s1, s2, count);
}
STK_LOOP(stk_loop_rmsprop_centered_momentum)
