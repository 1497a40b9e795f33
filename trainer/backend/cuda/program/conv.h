/* conv.h - one convolution layer in one direction on a GPU: cuDNN graphs and own kernels.
 *
 *   FORWARD           conv + bias (+ ReLU): one graph if an engine supports that, else a graph
 *                     without bias and ReLU, followed by a kernel
 *   BACKWARD_DATA     one graph
 *   BACKWARD_WEIGHTS  a graph that writes the gradient; if T has 16 bits, or if the gradient is to
 *                     be added, it writes to workspace, followed by a kernel that converts and
 *                     adds. Then the kernel of the bias */
#ifndef STK_TRAINER_BACKEND_CUDA_PROGRAM_CONV_H
#define STK_TRAINER_BACKEND_CUDA_PROGRAM_CONV_H

#include "trainer/backend/cuda/device/math.h"

struct stk_cuda_conv;

/* Choose engines and prepare them. layer: STK_CONV2D, borrowed; relu: FORWARD only; count >= 1
 * samples. On success the caller owns *out. STOKER_ENOTSUP: no engine meets the rules;
 * STOKER_ENOMEM; STOKER_EDEVICE: cuDNN failed, or of the engines that do none runs (the message has
 * the first failure). */
int stk_cuda_conv_create(struct stk_cuda_conv **out, const struct stk_cuda_math *math,
                         const struct stk_layer *layer, enum stk_cuda_direction direction,
                         bool relu, uint32_t count, stoker_error *error);
void stk_cuda_conv_destroy(struct stk_cuda_conv **conv); /* NULL-safe */

uint64_t stk_cuda_conv_workspace_bytes(const struct stk_cuda_conv *conv);

/* Enqueue on the stream of the back end. */
int stk_cuda_conv_run(struct stk_cuda_conv *conv, const struct stk_cuda_operands *operands,
                      stoker_error *error);

#endif
