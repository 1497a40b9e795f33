/* kernels.h - loops for CPUs with AVX2 and FMA that are faster than a library's.
 *
 * Built without special flags: each function names its instruction set. Call them only if
 * stk_avx2_runs_here(). */
#ifndef STK_TRAINER_BACKEND_CPU_AVX2_KERNELS_H
#define STK_TRAINER_BACKEND_CPU_AVX2_KERNELS_H

#include "kernels/train/dropout.h"
#include "loader/base/cpu/cpu_features.h"
#include "trainer/backend/common/operands.h"
#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#define STK_HAVE_AVX2 1
static inline bool stk_avx2_runs_here(void)
{
    return stk_cpu_has(STK_CPU_AVX2 | STK_CPU_FMA);
}
#else
static inline bool stk_avx2_runs_here(void)
{
    return false;
}
#endif

/* A convolution without padding or groups; for a padded one, pass a copy of its input with a border
 * of zeros. */
struct stk_conv_sizes {
    uint32_t h, w, c; /* input, border included */
    uint32_t out_h, out_w, filters;
    uint32_t kernel_h, kernel_w;
    uint32_t stride_h, stride_w;
    /* Kernel width x channels: contiguous floats of x and of a filter per kernel row. */
    uint32_t run;
};

/* The gradients of one sample. Both skip zeros of dy: six of seven are zero before a 2 x 2 maximum,
 * ReLU and dropout. scratch: stk_avx2_conv_scratch_bytes(). */
uint64_t stk_avx2_conv_scratch_bytes(const struct stk_conv_sizes *size);
void stk_avx2_conv_backward_data(const struct stk_conv_sizes *size, const float *dy,
                                 const float *weights, float *dx, void *scratch);
/* Added to weight_grad and, if not NULL, to bias_grad. */
void stk_avx2_conv_backward_weights(const struct stk_conv_sizes *size, const float *x,
                                    const float *dy, float *weight_grad, float *bias_grad,
                                    void *scratch);

/* True for windows that do not overlap, of at most 256 elements, and a multiple of 8 channels. */
bool stk_avx2_pools(const struct stk_layer *layer);
void stk_avx2_max_pool_forward(const struct stk_operands *o);
void stk_avx2_max_pool_backward(const struct stk_operands *o);

/* to = from x the factor of each element; to may be from. */
void stk_avx2_drop(const struct stk_dropout *dropout, float *to, const float *from, uint64_t count);

#endif
