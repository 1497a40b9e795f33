/* train_bias.cu - the gradient of a bias: sums over all pixels, channel by channel. Twin: train_bias.c.
 *
 *            32 channels
 *          ┌────────────┐
 *   chunk  │ 8 threads  │ x 32: each adds every eighth pixel of the chunk
 *          │ a channel  │
 *          └────────────┘ then the chunk's sums, then the last block adds up the chunks in order */
#include "kernels/train_device.cuh"

enum { CHANNELS = 32, ROWS = STK_LAUNCH_THREADS / CHANNELS };

template <class T>
static __device__ __forceinline__ void bias_gradient(const stk_train_bias_gradient &a)
{
    __shared__ float sums[ROWS][CHANNELS];
    __shared__ uint32_t flag;
    const uint32_t lane = threadIdx.x % CHANNELS;
    const uint32_t row = threadIdx.x / CHANNELS;
    const uint32_t c = blockIdx.x * CHANNELS + lane;
    const uint64_t chunk = (a.pixels + a.chunks - 1) / a.chunks;
    const uint64_t first = blockIdx.y * chunk;
    const uint64_t end = first + chunk < a.pixels ? first + chunk : a.pixels;
    float sum = 0;
    if (c < a.c)
        for (uint64_t pixel = first + row; pixel < end; pixel += ROWS)
            sum += load((const T *)a.dy, pixel * a.c + c);
    sums[row][lane] = sum;
    __syncthreads();
    if (row == 0 && c < a.c) {
        for (uint32_t r = 1; r < ROWS; r++)
            sum += sums[r][lane];
        a.partial_sums[(uint64_t)blockIdx.y * a.c + c] = sum;
    }
    if (!is_last_block(&a.tickets[blockIdx.x], a.chunks, &flag) || row != 0 || c >= a.c)
        return;
    sum = 0;
    for (uint32_t i = 0; i < a.chunks; i++)
        sum += a.partial_sums[(uint64_t)i * a.c + c];
    a.bias_grad[c] += sum;
}

STK_KERNEL(stk_train_bias_gradient, stk_train_bias_gradient, bias_gradient)
