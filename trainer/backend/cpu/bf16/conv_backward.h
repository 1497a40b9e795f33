/* conv_backward.h - the gradient of a stem's weights, which conv_backward.c leaves to conv_stem.c. */
#ifndef STK_TRAINER_BACKEND_CPU_BF16_CONV_BACKWARD_H
#define STK_TRAINER_BACKEND_CPU_BF16_CONV_BACKWARD_H

#include "trainer/backend/cpu/bf16/kernels.h"

/* True if a kernel row has fewer elements than a vector. */
static inline bool stk_bf16_is_stem(const struct stk_bf16_conv *size)
{
    return size->run < 32;
}

uint64_t stk_bf16_stem_scratch_bytes(const struct stk_bf16_conv *size);
void stk_bf16_stem_weights(const struct stk_bf16_conv *size, const uint16_t *x, const uint16_t *dy,
                           float *weight_grad, float *bias_grad, void *scratch);

#endif
