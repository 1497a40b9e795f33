/* kernels.h - loops on bfloat16 for CPUs with AVX512_BF16.
 *
 * Values, gradients of values and weights are bfloat16 (uint16_t); sums and gradients of weights are floats. Built
 * without special flags: each function names its instruction set. Call them only if stk_cpu_has_bf16(). */
#ifndef STK_TRAINER_BACKEND_CPU_BF16_KERNELS_H
#define STK_TRAINER_BACKEND_CPU_BF16_KERNELS_H

#include "kernels/train/dropout.h"
#include "trainer/backend/common/operands.h"
#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#define STK_HAVE_BF16 1
#endif

/* A convolution without padding or groups; for a padded one, pass a copy of its input with a border of zeros. */
struct stk_bf16_conv {
    uint32_t h, w, c; /* input, border included */
    uint32_t out_h, out_w, filters;
    uint32_t kernel_h, kernel_w;
    uint32_t stride_h, stride_w;
    /* Kernel width x channels: contiguous elements of x and of a filter per kernel row. */
    uint32_t run;
};

/* Weights packed into panels of 16 x (1..4) filters: [panel][kernel h][pair of the run][filter of the panel][2]. */
uint64_t stk_bf16_conv_packed_bytes(const struct stk_bf16_conv *size);
/* Pack this thread's share of panels. */
void stk_bf16_conv_pack(const struct stk_bf16_conv *size, const uint16_t *weights, uint16_t *packed,
                        uint32_t thread, uint32_t threads);
/* One sample. bias may be NULL. */
void stk_bf16_conv_forward(const struct stk_bf16_conv *size, const uint16_t *x,
                           const uint16_t *packed, const uint16_t *bias, bool relu, uint16_t *y);

/* The gradients of one sample. Both skip zeros of dy: six of seven are zero before a 2 x 2 maximum, ReLU and dropout. */

/* Weights for the gradient of x: [filter][kernel h][run, rounded up to 32], each 32 shuffled for lanes.h's interleaving. */
uint64_t stk_bf16_conv_shuffled_bytes(const struct stk_bf16_conv *size);
/* Shuffle this thread's share of filters. */
void stk_bf16_conv_shuffle(const struct stk_bf16_conv *size, const uint16_t *weights,
                           uint16_t *shuffled, uint32_t thread, uint32_t threads);
uint64_t stk_bf16_conv_data_scratch_bytes(const struct stk_bf16_conv *size);
/* dx: floats, h x w x c, in scratch. */
const float *stk_bf16_conv_backward_data(const struct stk_bf16_conv *size, const uint16_t *dy,
                                         const uint16_t *shuffled, void *scratch);
uint64_t stk_bf16_conv_weights_scratch_bytes(const struct stk_bf16_conv *size);
/* Added to weight_grad and, if not NULL, to bias_grad. */
void stk_bf16_conv_backward_weights(const struct stk_bf16_conv *size, const uint16_t *x,
                                    const uint16_t *dy, float *weight_grad, float *bias_grad,
                                    void *scratch);

/* y[n][to] = sum of x[n][from] w[to][from], + bias, ReLU. sums: floats, [count][out]. */
struct stk_bf16_linear {
    const uint16_t *x, *w, *bias; /* bias may be NULL */
    uint16_t *y;
    float *sums;
    uint64_t count, in, out;
    bool relu;
};
void stk_bf16_linear_forward(const struct stk_bf16_linear *l);

/* c[row][0..columns) = sum over `depth` of a[row][i] * b[i][0..columns), or, if c is NULL, added to sums:
 * with a = dy, b = w the gradient of x, with a = dy transposed, b = x that of the weights. */
struct stk_bf16_outer {
    const uint16_t *a; /* [rows][depth], each row filled up with a zero if depth is odd */
    const uint16_t *b; /* [depth][columns] */
    uint16_t *c;       /* [rows][columns], or NULL */
    float *sums;       /* c is NULL: [rows][columns]; else scratch, 32 floats for each row */
    uint64_t rows, depth, columns;
};
void stk_bf16_outer(const struct stk_bf16_outer *o);

/* True for windows that do not overlap, of at most 256 elements. */
bool stk_bf16_pools(const struct stk_layer *layer);
void stk_bf16_max_pool_forward(const struct stk_operands *o);
void stk_bf16_max_pool_backward(const struct stk_operands *o);

/* Any count; output and input may be the same. */
void stk_bf16_relu_forward(uint16_t *y, const uint16_t *x, uint64_t count);
void stk_bf16_relu_backward(uint16_t *dx, const uint16_t *y, const uint16_t *dy, uint64_t count);
void stk_bf16_add(uint16_t *sum, const uint16_t *a, const uint16_t *b, uint64_t count);
/* Rounded to nearest, ties to even; subnormal numbers become 0. */
void stk_bf16_from_floats(uint16_t *to, const float *from, uint64_t count);

/* to = from x the factor of each element; to may be from. */
void stk_bf16_drop(const struct stk_dropout *dropout, uint16_t *to, const uint16_t *from,
                   uint64_t count);

#endif
