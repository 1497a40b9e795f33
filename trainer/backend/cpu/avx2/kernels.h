/* kernels.h - loops for CPUs with AVX2 and FMA that are faster than a library's.
 *
 * Built without special flags: each function names its instruction set. Call them only if stk_avx2_runs_here(). */
#ifndef STK_TRAINER_BACKEND_CPU_AVX2_KERNELS_H
#define STK_TRAINER_BACKEND_CPU_AVX2_KERNELS_H

#include "kernels/train/dropout.h"
#include "loader/base/cpu_features.h"
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

/* A convolution without padding or groups; for a padded one, pass a copy of its input with a border of zeros. */
struct stk_conv_sizes {
    uint32_t h, w, c; /* input, border included */
    uint32_t out_h, out_w, filters;
    uint32_t kernel_h, kernel_w;
    uint32_t stride_h, stride_w;
    /* Kernel width x channels: contiguous floats of x and of a filter per kernel row. */
    uint32_t run;
};

/* Weights packed into panels of 8 x (1..3) filters: [panel][kernel h][run][filters of the panel]. */
uint64_t stk_avx2_conv_packed_floats(const struct stk_conv_sizes *size);
/* Pack this thread's share of panels. */
void stk_avx2_conv_pack(const struct stk_conv_sizes *size, const float *weights, float *packed,
                        uint32_t thread, uint32_t threads);
/* One sample. bias may be NULL. */
void stk_avx2_conv_forward(const struct stk_conv_sizes *size, const float *x, const float *packed,
                           const float *bias, bool relu, float *y);

/* The gradients of one sample. Both skip zeros of dy: six of seven are zero before a 2 x 2 maximum, ReLU and dropout.
 * scratch: stk_avx2_conv_scratch_bytes(). */
uint64_t stk_avx2_conv_scratch_bytes(const struct stk_conv_sizes *size);
void stk_avx2_conv_backward_data(const struct stk_conv_sizes *size, const float *dy,
                                 const float *weights, float *dx, void *scratch);
/* Added to weight_grad and, if not NULL, to bias_grad. */
void stk_avx2_conv_backward_weights(const struct stk_conv_sizes *size, const float *x,
                                    const float *dy, float *weight_grad, float *bias_grad,
                                    void *scratch);

/* y[n][to] = sum of x[n][from] w[to][from], + bias, ReLU */
void stk_avx2_linear_forward(const float *x, const float *w, const float *bias, bool relu, float *y,
                             uint32_t count, uint64_t in, uint64_t out);
/* c[row][0..columns) (+)= sum over `depth` of a[row * a_row + i * a_step] * b[i * columns + ...]:
 * with a = dy, b = w the gradient of x, with a = dy transposed, b = x that of the weights. */
struct stk_outer {
    const float *a, *b;
    float *c;
    uint64_t a_row, a_step, rows, depth, columns;
    bool add;
};
void stk_avx2_outer(const struct stk_outer *o);

/* True for windows that do not overlap, of at most 256 elements, and a multiple of 8 channels. */
bool stk_avx2_pools(const struct stk_layer *layer);
void stk_avx2_max_pool_forward(const struct stk_operands *o);
void stk_avx2_max_pool_backward(const struct stk_operands *o);

/* Any count; output and input may be the same. */
void stk_avx2_relu_forward(float *y, const float *x, uint64_t count);
void stk_avx2_relu_backward(float *dx, const float *y, const float *dy, uint64_t count);
void stk_avx2_add(float *sum, const float *a, const float *b, uint64_t count);

/* to = from x the factor of each element; to may be from. */
void stk_avx2_drop(const struct stk_dropout *dropout, float *to, const float *from, uint64_t count);

#endif
