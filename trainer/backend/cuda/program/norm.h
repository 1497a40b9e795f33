/* norm.h - the backward pass of one BatchNorm (+ ReLU) as a graph of cuDNN: what ReLU let through is made
 * again from x. The graph writes the gradients of gamma and beta to workspace; kernels add them. */
#ifndef STK_TRAINER_BACKEND_CUDA_PROGRAM_NORM_H
#define STK_TRAINER_BACKEND_CUDA_PROGRAM_NORM_H

#include "trainer/backend/cuda/program/math.h"

struct stk_cuda_norm;

/* Choose an engine and make it ready; all of them are compiled here. layer: STK_BATCH_NORM, borrowed; relu: it
 * is followed by one; count >= 1 samples. On success *out is the caller's. Errors as stk_cuda_conv_create(). */
int stk_cuda_norm_create(struct stk_cuda_norm **out, const struct stk_cuda_math *math,
                         const struct stk_layer *layer, bool relu, uint32_t count,
                         stoker_error *error);
void stk_cuda_norm_destroy(struct stk_cuda_norm **norm); /* NULL-safe */

uint64_t stk_cuda_norm_workspace_bytes(const struct stk_cuda_norm *norm);

/* Enqueue: x, dy, applied (its own statistics and parameters) -> dx, which may not be dy, and the gradients
 * of gamma (weight_grad) and beta (bias_grad), added to. */
int stk_cuda_norm_run(struct stk_cuda_norm *norm, const struct stk_cuda_operands *operands,
                      void *stream, stoker_error *error);

#endif
