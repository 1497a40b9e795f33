/* linear.h - one linear layer in one direction on a GPU: cuBLASLt, and the kernel of the bias.
 *
 *   FORWARD           y = x W' + b, then max(., 0) if relu: one call, bias and ReLU in its epilogue
 *   BACKWARD_DATA     dx = dy W
 *   BACKWARD_WEIGHTS  dW = dy' x, or += : one call that writes or adds to float32; db: an own
 *                     kernel, since cuBLASLt's epilogue could only overwrite it
 *
 * The gradient of ReLU is a separate operation of the plan, which needs only y. */
#ifndef STK_TRAINER_BACKEND_CUDA_PROGRAM_LINEAR_H
#define STK_TRAINER_BACKEND_CUDA_PROGRAM_LINEAR_H

#include "trainer/backend/cuda/device/math.h"

struct stk_cuda_linear;

/* As stk_cuda_conv_create(), for a layer of kind STK_LINEAR. */
int stk_cuda_linear_create(struct stk_cuda_linear **out, const struct stk_cuda_math *math,
                           const struct stk_layer *layer, enum stk_cuda_direction direction,
                           bool relu, uint32_t count, stoker_error *error);
void stk_cuda_linear_destroy(struct stk_cuda_linear **linear); /* NULL-safe */

uint64_t stk_cuda_linear_workspace_bytes(const struct stk_cuda_linear *linear);

/* Enqueue on the stream of the back end. */
int stk_cuda_linear_run(struct stk_cuda_linear *linear, const struct stk_cuda_operands *operands,
                        stoker_error *error);

#endif
