/* adam.c - Adam, AdamW, Adamax: Kingma, Ba, "Adam: a method for stochastic optimization", ICLR
 * 2015; Loshchilov, Hutter, "Decoupled weight decay regularization", ICLR 2019. */
#include "trainer/update/loops.h"

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
