/* channel_sums.cu - per-channel sums over all pixels: the gradient of a bias, BatchNorm's moments,
 * and the gradients of its gamma and beta. Host version: channel_sums.c.
 *
 *            32 channels
 *          ┌────────────┐
 *   chunk  │ 8 threads  │ x 32: each adds every eighth pixel of the chunk
 *          │ a channel  │
 *          └────────────┘ then the chunk's sums, then the last block adds up the chunks in order */
#include "kernels/train/device.cuh"

enum { CHANNELS = 32, ROWS = STK_LAUNCH_THREADS / CHANNELS };

/* The sums of a block. */
struct extent {
    uint64_t pixels;
    uint32_t c, chunks;
};

/* Adds SUMS values per pixel into partial_sums, [chunks][SUMS][c]. `values(at, c, out)` returns those of element
 * `at` of channel c. Returns true in one thread per channel of the last block, which then owns the
 * partial sums. */
template <int SUMS, class Values>
static __device__ __forceinline__ bool sum_chunks(const extent &e, float *partial_sums,
                                                  uint32_t *tickets, const Values &values)
{
    __shared__ float shared[SUMS][ROWS][CHANNELS];
    __shared__ uint32_t flag;
    const uint32_t lane = threadIdx.x % CHANNELS;
    const uint32_t row = threadIdx.x / CHANNELS;
    const uint32_t c = blockIdx.x * CHANNELS + lane;
    const uint64_t chunk = (e.pixels + e.chunks - 1) / e.chunks;
    const uint64_t first = blockIdx.y * chunk;
    const uint64_t end = first + chunk < e.pixels ? first + chunk : e.pixels;
    float sum[SUMS] = {};
    if (c < e.c)
        for (uint64_t pixel = first + row; pixel < end; pixel += ROWS) {
            float value[SUMS];
            values(pixel * e.c + c, c, value);
#pragma unroll
            for (int i = 0; i < SUMS; i++)
                sum[i] += value[i];
        }
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        shared[i][row][lane] = sum[i];
    __syncthreads();
    if (row == 0 && c < e.c) {
#pragma unroll
        for (int i = 0; i < SUMS; i++) {
            for (uint32_t r = 1; r < ROWS; r++)
                sum[i] += shared[i][r][lane];
            partial_sums[((uint64_t)blockIdx.y * SUMS + i) * e.c + c] = sum[i];
        }
    }
    return is_last_block(&tickets[blockIdx.x], e.chunks, &flag) && row == 0 && c < e.c;
}

static __device__ __forceinline__ uint32_t channel_of_thread(void)
{
    return blockIdx.x * CHANNELS + threadIdx.x % CHANNELS;
}

/* ---- bias --------------------------------------------------------------------------------------- */

template <class T>
static __device__ __forceinline__ void bias_gradient(const stk_train_bias_gradient &a)
{
    const extent e = { a.pixels, a.c, a.chunks };
    const auto values = [&](uint64_t at, uint32_t, float *out) {
        out[0] = load((const T *)a.dy, at);
    };
    if (!sum_chunks<1>(e, a.partial_sums, a.tickets, values))
        return;
    const uint32_t c = channel_of_thread();
    float sum = 0;
    for (uint32_t i = 0; i < a.chunks; i++)
        sum += a.partial_sums[(uint64_t)i * a.c + c];
    a.bias_grad[c] += sum;
}

/* ---- BatchNorm ---------------------------------------------------------------------------------- */

template <class T>
static __device__ __forceinline__ void moments(const stk_train_batch_norm_moments &a)
{
    const extent e = { a.pixels, a.c, a.chunks };
    const T *const x = (const T *)a.x;
    const auto values = [&](uint64_t at, uint32_t c, float *out) {
        const float off = load(x, at) - load(x, c); /* relative to the channel's first pixel */
        out[0] = off;
        out[1] = off * off;
    };
    if (!sum_chunks<2>(e, a.partial_sums, a.tickets, values))
        return;
    const uint32_t c = channel_of_thread();
    double sum = 0;
    double square_sum = 0;
    for (uint32_t i = 0; i < a.chunks; i++) {
        sum += (double)a.partial_sums[(uint64_t)i * 2 * a.c + c];
        square_sum += (double)a.partial_sums[((uint64_t)i * 2 + 1) * a.c + c];
    }
    const stk_train_moments_of_channel m =
        stk_train_shifted_moments(sum, square_sum, load(x, c), a.pixels, a.epsilon);
    a.mean[c] = m.mean;
    a.inverse[c] = m.inverse;
    if (a.running_mean != nullptr) {
        a.running_mean[c] = stk_train_move(a.running_mean[c], m.mean, a.momentum);
        a.running_var[c] = stk_train_move(a.running_var[c], m.unbiased, a.momentum);
    }
}

template <class T>
static __device__ __forceinline__ void sums_to_share(const stk_train_batch_norm_sums &a)
{
    const extent e = { a.pixels, a.c, a.chunks };
    const T *const x = (const T *)a.x;
    const auto values = [&](uint64_t at, uint32_t c, float *out) {
        const float off = load(x, at) - a.shift[c];
        out[0] = off;
        out[1] = off * off;
    };
    if (!sum_chunks<2>(e, a.partial_sums, a.tickets, values))
        return;
    const uint32_t c = channel_of_thread();
    double sum = 0;
    double square_sum = 0;
    for (uint32_t i = 0; i < a.chunks; i++) {
        sum += (double)a.partial_sums[(uint64_t)i * 2 * a.c + c];
        square_sum += (double)a.partial_sums[((uint64_t)i * 2 + 1) * a.c + c];
    }
    a.sums[c] = sum;
    a.sums[a.c + c] = square_sum;
}

/* Returns the gradient at element `at` of channel c: 0 if ReLU cut it off. */
template <class T>
static __device__ __forceinline__ float passed(const stk_train_batch_norm_backward &a, uint64_t at,
                                               uint32_t c)
{
    const float dy = load((const T *)a.dy, at);
    if (a.relu == 0)
        return dy;
    const float y = a.y != nullptr
                        ? load((const T *)a.y, at)
                        : rounded(stk_train_normalise(load((const T *)a.x, at), a.mean[c],
                                                      a.inverse[c], a.gamma[c], a.beta[c]),
                                  (const T *)nullptr);
    return y > 0 ? dy : 0;
}

template <class T>
static __device__ __forceinline__ void backward_sums(const stk_train_batch_norm_backward &a)
{
    const extent e = { a.pixels, a.c, a.chunks };
    const auto values = [&](uint64_t at, uint32_t c, float *out) {
        const float dy = passed<T>(a, at, c);
        out[0] = dy * ((load((const T *)a.x, at) - a.mean[c]) * a.inverse[c]);
        out[1] = dy;
    };
    if (!sum_chunks<2>(e, a.partial_sums, a.tickets, values))
        return;
    const uint32_t c = channel_of_thread();
    double gamma = 0;
    double beta = 0;
    for (uint32_t i = 0; i < a.chunks; i++) {
        gamma += (double)a.partial_sums[(uint64_t)i * 2 * a.c + c];
        beta += (double)a.partial_sums[((uint64_t)i * 2 + 1) * a.c + c];
    }
    a.sums[c] = (float)gamma;
    a.sums[a.c + c] = (float)beta;
    if (a.sums_of_all != nullptr) {
        a.sums_of_all[c] = gamma;
        a.sums_of_all[a.c + c] = beta;
    }
    a.gamma_grad[c] += (float)gamma;
    a.beta_grad[c] += (float)beta;
}

template <class T>
static __device__ __forceinline__ void backward(const stk_train_batch_norm_backward &a)
{
    const bool together = a.sums_of_all != nullptr;
    const float pixels = (float)(together ? a.pixels_of_all : a.pixels);
    for (uint64_t i = first_element(); i < a.pixels * a.c; i += element_stride()) {
        const uint32_t c = (uint32_t)(i % a.c);
        const float hat = (load((const T *)a.x, i) - a.mean[c]) * a.inverse[c];
        const float gamma = together ? (float)a.sums_of_all[c] : a.sums[c];
        const float beta = together ? (float)a.sums_of_all[a.c + c] : a.sums[a.c + c];
        store((T *)a.dx, i,
              stk_train_norm_gradient(passed<T>(a, i, c), hat, a.gamma[c] * a.inverse[c], beta,
                                      gamma, pixels));
    }
}

STK_KERNEL(stk_train_bias_gradient, stk_train_bias_gradient, bias_gradient)
STK_KERNEL(stk_train_batch_norm_moments, stk_train_batch_norm_moments, moments)
STK_KERNEL(stk_train_batch_norm_sums, stk_train_batch_norm_sums, sums_to_share)
STK_KERNEL(stk_train_batch_norm_backward_sums, stk_train_batch_norm_backward, backward_sums)
STK_KERNEL(stk_train_batch_norm_backward, stk_train_batch_norm_backward, backward)
