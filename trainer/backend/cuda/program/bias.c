/* bias.c - see bias.h. */
#include "trainer/backend/cuda/program/bias.h"

#include "trainer/backend/cuda/device/device.h"

enum {
    CHUNK_PIXELS = 256, /* per block, at least: eight threads a channel add 32 each */
    BLOCKS = 512        /* target: a few for each multiprocessor of a large GPU */
};

struct stk_cuda_bias stk_cuda_bias_plan(stoker_dtype dtype, uint64_t pixels, uint32_t channels)
{
    const uint64_t groups = stk_cuda_tickets(channels);
    const uint64_t wanted = (pixels + CHUNK_PIXELS - 1) / CHUNK_PIXELS;
    const uint64_t most = groups < BLOCKS ? BLOCKS / groups : 1;
    const uint64_t chunks = wanted < most ? wanted : most;
    return (struct stk_cuda_bias){ .kernel = stk_train_kernel_in("stk_train_bias_gradient", dtype),
                                   .pixels = pixels,
                                   .channels = channels,
                                   .chunks = (uint32_t)chunks };
}

uint64_t stk_cuda_bias_workspace_bytes(const struct stk_cuda_bias *bias)
{
    return (uint64_t)bias->chunks * bias->channels * sizeof(float);
}

int stk_cuda_bias_run(const struct stk_cuda_bias *bias, struct stk_backend *backend,
                      const struct stk_cuda_operands *operands, stoker_error *error)
{
    const struct stk_train_bias_gradient arguments = { .dy = operands->dy,
                                                       .pixels = bias->pixels,
                                                       .c = bias->channels,
                                                       .chunks = bias->chunks,
                                                       .bias_grad = operands->bias_grad,
                                                       .partial_sums = operands->workspace,
                                                       .tickets = operands->tickets,
                                                       .write = operands->write };
    return stk_cuda_launch(backend, bias->kernel, &arguments, error);
}
