/* adaptive.c - Adagrad, RMSprop, Adadelta: each weight has its own rate, from the size of its
 * gradients so far. */
#include <stddef.h>

#include "trainer/update/loops.h"

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
