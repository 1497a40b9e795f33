/* loops.h - one optimizer step on an array, once for any processor and once for AVX2.
 *
 * The AVX2 copy has no fused multiply-add and the compiler may not form one (-ffp-contract=off),
 * so both copies, and the ends of a split array, give the same bits. */
#ifndef STK_TRAINER_UPDATE_LOOPS_H
#define STK_TRAINER_UPDATE_LOOPS_H

#include "loader/base/cpu/cpu_features.h"
#include <math.h>
#include <stdint.h>

/* What stays the same over the whole array. */
struct stk_factors {
    float gradient;    /* gradients are multiplied by it */
    float decay;       /* L2: decay x weight is added to them */
    float rate;        /* learning rate, with bias correction */
    float keep1, add1; /* first average:  keep1 x old + add1 x gradient */
    float keep2, add2; /* second average: of squares */
    float root2;       /* Adam: sqrt(1 - beta2^step) */
    float epsilon;
    float shrink; /* weights are multiplied by it first: AdamW, ASGD */
    float momentum;
};

/* Weights, gradients, state; they do not overlap. Unused arrays are NULL. */
#define STK_LOOP_PARAMETERS                                                                        \
    const struct stk_factors *factors, float *restrict w, const float *restrict g,                 \
        float *restrict s0, float *restrict s1, float *restrict s2, uint64_t count
#define STK_LOOP_ARGUMENTS factors, w, g, s0, s1, s2, count

typedef void stk_update_loop(STK_LOOP_PARAMETERS);

#define STK_LOOP_BODY static inline __attribute__((always_inline)) void

#if defined(__x86_64__)
/* Define `name` from the body `name_body`. */
#define STK_LOOP(name)                                                                             \
    __attribute__((target("avx2"))) static void name##_avx2(STK_LOOP_PARAMETERS)                   \
    {                                                                                              \
        name##_body(STK_LOOP_ARGUMENTS);                                                           \
    }                                                                                              \
    static void name##_plain(STK_LOOP_PARAMETERS)                                                  \
    {                                                                                              \
        name##_body(STK_LOOP_ARGUMENTS);                                                           \
    }                                                                                              \
    void name(STK_LOOP_PARAMETERS)                                                                 \
    {                                                                                              \
        if (stk_cpu_has(STK_CPU_AVX2))                                                             \
            name##_avx2(STK_LOOP_ARGUMENTS);                                                       \
        else                                                                                       \
            name##_plain(STK_LOOP_ARGUMENTS);                                                      \
    }
#else
#define STK_LOOP(name)                                                                             \
    void name(STK_LOOP_PARAMETERS)                                                                 \
    {                                                                                              \
        name##_body(STK_LOOP_ARGUMENTS);                                                           \
    }
#endif

stk_update_loop stk_loop_sgd, stk_loop_sgd_momentum, stk_loop_sgd_nesterov, stk_loop_asgd;
stk_update_loop stk_loop_adam, stk_loop_adamax;
stk_update_loop stk_loop_adagrad, stk_loop_adadelta;
stk_update_loop stk_loop_rmsprop, stk_loop_rmsprop_momentum, stk_loop_rmsprop_centered,
    stk_loop_rmsprop_centered_momentum;
stk_update_loop stk_loop_average; /* w: the moving average; g: the weights */

#endif
