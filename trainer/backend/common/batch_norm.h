/* batch_norm.h - the formula by which the back ends normalize an element, and sums over all ranks.
 *
 * The formula is written once: recomputation must give the same bits as the first time, since the
 * sign of the result decides which gradients pass ReLU. */
#ifndef STK_TRAINER_BACKEND_COMMON_BATCH_NORM_H
#define STK_TRAINER_BACKEND_COMMON_BATCH_NORM_H

#include <stdbool.h>
#include <stdint.h>

#include "trainer/backend/backend.h"

/* Samples that the statistics are taken of: those of all ranks, or this pass's own. */
static inline uint64_t stk_batch_norm_samples(const struct stk_pass *pass, uint32_t own)
{
    return pass->sums != NULL ? pass->samples_of_all : own;
}

/* Sums over all ranks, if the statistics are theirs. */
static inline void stk_batch_norm_add(const struct stk_pass *pass, double *values, uint32_t count)
{
    if (pass->sums != NULL)
        pass->sums->add(pass->sums->context, values, count);
}

/* `count` channels of one pixel: y = (x - mean) * inverse * gamma + beta, then max(., 0) if relu.
 * y may be x. */
static inline void stk_batch_norm_row(float *y, const float *x, const float *mean,
                                      const float *inverse, const float *gamma, const float *beta,
                                      uint32_t count, bool relu)
{
    for (uint32_t c = 0; c < count; c++) {
        const float centerd = x[c] - mean[c];
        const float scaled = centerd * (inverse[c] * gamma[c]);
        const float value = scaled + beta[c];
        y[c] = relu && value < 0 ? 0 : value;
    }
}

#endif
