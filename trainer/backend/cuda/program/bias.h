/* bias.h - the gradient of a bias: the same for convolutions and linear layers. */
#ifndef STK_TRAINER_BACKEND_CUDA_PROGRAM_BIAS_H
#define STK_TRAINER_BACKEND_CUDA_PROGRAM_BIAS_H

#include "trainer/backend/cuda/device/math.h"

struct stk_cuda_bias {
    const struct stk_kernel *kernel;
    uint64_t pixels; /* summed per channel: pixels of an image x samples */
    uint32_t channels, chunks;
};

/* The number of blocks per sum depends on the shape alone, so every device gives the same bits. */
struct stk_cuda_bias stk_cuda_bias_plan(stoker_dtype dtype, uint64_t pixels, uint32_t channels);

/* Bytes of partial sums. */
uint64_t stk_cuda_bias_workspace_bytes(const struct stk_cuda_bias *bias);

/* Enqueue bias_grad += sums of dy. Partial sums are at the start of the workspace. */
int stk_cuda_bias_run(const struct stk_cuda_bias *bias, struct stk_backend *backend,
                      const struct stk_cuda_operands *operands, stoker_error *error);

#endif
