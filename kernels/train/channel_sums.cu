/* channel_sums.cu - per-channel sums over all pixels: the gradient of a bias, BatchNorm's moments,
 * and the gradients of its gamma and beta.
 *
 *            32 channels, or all if there are fewer
 *          ┌────────────┐
 *   chunk  │ a thread   │ x rows: each thread adds up WIDTH adjacent channels of every rows-th pixel
 *          │ has WIDTH  │
 *          └────────────┘ then rows are added in pairs; the last block adds up the chunks
 *                         with all its threads */
#include "kernels/train/batch_norm.cuh"
#include "kernels/train/device.cuh"

enum { CHANNELS = STK_TRAIN_SUM_CHANNELS };

/* The sums of a launch. */
struct extent {
    uint64_t pixels;
    uint32_t c, chunks;
};

typedef float shared_row[STK_LAUNCH_THREADS];

/* Adds up `count` rows of `columns` threads in pairs: row r takes row r + half, for half = 128, 64,
 * ..., 1. The result is in row 0. `shared` has VALUES rows. */
template <int VALUES, class Join>
static __device__ __forceinline__ void join_rows(float *values, shared_row *shared,
                                                 uint32_t columns, uint32_t count, const Join &join)
{
    const uint32_t row = threadIdx.x / columns;
#pragma unroll
    for (int i = 0; i < VALUES; i++)
        shared[i][threadIdx.x] = values[i];
    for (uint32_t half = STK_LAUNCH_THREADS / 2; half > 0; half /= 2) {
        if (half >= count)
            continue;
        __syncthreads(); /* a row that is read here was written in the step before */
        if (row + half < count && row < half) {
            float other[VALUES];
#pragma unroll
            for (int i = 0; i < VALUES; i++)
                other[i] = shared[i][threadIdx.x + half * columns];
            join(values, other);
#pragma unroll
            for (int i = 0; i < VALUES; i++)
                shared[i][threadIdx.x] = values[i];
        }
    }
}

/* Adds a chunk's Terms::SUMS terms per pixel into partial_sums, [chunks][SUMS][c]. `terms` is made
 * of `a` and the first of WIDTH channels; terms.add(at, sums) adds those of the elements from
 * `at`. */
template <class Terms, int WIDTH, class Arguments>
static __device__ __forceinline__ void sum_chunk(const Arguments &a, const extent &e,
                                                 shared_row *shared)
{
    enum { SUMS = Terms::SUMS, VALUES = SUMS * WIDTH };
    const uint32_t columns = stk_train_group_channels(e.c, blockIdx.x) / WIDTH;
    const uint32_t rows = STK_LAUNCH_THREADS / columns;
    const uint32_t row = threadIdx.x / columns;
    const uint32_t c = blockIdx.x * CHANNELS + threadIdx.x % columns * WIDTH;
    const uint64_t chunk = (e.pixels + e.chunks - 1) / e.chunks;
    const uint64_t first = blockIdx.y * chunk;
    const uint64_t end = first + chunk < e.pixels ? first + chunk : e.pixels;
    float sum[VALUES] = {};
    const Terms terms(a, c);
    /* If columns does not divide the number of threads, the last ones have nothing to add. */
#pragma unroll 4
    for (uint64_t pixel = row < rows ? first + row : end; pixel < end; pixel += rows)
        terms.add(pixel * e.c + c, sum);
    join_rows<VALUES>(sum, shared, columns, rows, [](float *mine, const float *other) {
#pragma unroll
        for (int i = 0; i < VALUES; i++)
            mine[i] += other[i];
    });
    if (row == 0)
#pragma unroll
        for (int i = 0; i < VALUES; i++)
            a.partial_sums[((uint64_t)blockIdx.y * SUMS + i / WIDTH) * e.c + c + i % WIDTH] =
                sum[i];
}

/* Adds up all chunks of the block's channels, as many chunks at once as there are threads. Returns
 * true in one thread per channel, which gets the sums of channel `c`. */
template <int SUMS>
static __device__ __forceinline__ bool sum_of_chunks(const extent &e, const float *partial_sums,
                                                     shared_row *shared, uint32_t *c,
                                                     stk_train_sum *sums)
{
    const uint32_t channels = stk_train_group_channels(e.c, blockIdx.x);
    const uint32_t parts = STK_LAUNCH_THREADS / channels;
    const uint32_t part = threadIdx.x / channels;
    float values[2 * SUMS];
    *c = blockIdx.x * CHANNELS + threadIdx.x % channels;
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        sums[i].high = sums[i].low = 0;
#pragma unroll 8
    for (uint32_t chunk = part; chunk < e.chunks; chunk += parts)
#pragma unroll
        for (int i = 0; i < SUMS; i++)
            stk_train_sum_add(&sums[i], partial_sums[((uint64_t)chunk * SUMS + i) * e.c + *c]);
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        values[2 * i] = sums[i].high, values[2 * i + 1] = sums[i].low;
    join_rows<2 * SUMS>(values, shared, channels, parts, [](float *mine, const float *other) {
#pragma unroll
        for (int i = 0; i < 2 * SUMS; i += 2) {
            stk_train_sum sum = { mine[i], mine[i + 1] };
            const stk_train_sum added = { other[i], other[i + 1] };
            stk_train_sum_join(&sum, &added);
            mine[i] = sum.high, mine[i + 1] = sum.low;
        }
    });
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        sums[i].high = values[2 * i], sums[i].low = values[2 * i + 1];
    return part == 0;
}

/* Returns true in one thread per channel of the last block of a group of channels: it gets the sums
 * of channel `c` over all pixels. */
template <template <class, int> class Terms, class T, class Arguments>
static __device__ __forceinline__ bool sum_pixels(const Arguments &a, uint32_t *c,
                                                  stk_train_sum *sums)
{
    enum { WIDTH = widest<T>::WIDTH, SUMS = Terms<T, 1>::SUMS };
    __shared__ shared_row shared[SUMS * WIDTH];
    __shared__ uint32_t flag;
    const extent e = { a.pixels, a.c, a.chunks };
    if (a.c % WIDTH == 0)
        sum_chunk<Terms<T, WIDTH>, WIDTH>(a, e, shared);
    else
        sum_chunk<Terms<T, 1>, 1>(a, e, shared);
    return is_last_block(&a.tickets[blockIdx.x], e.chunks, &flag) &&
           sum_of_chunks<SUMS>(e, a.partial_sums, shared, c, sums);
}

/* ---- bias ------------------------------------------------------------------------------------ */

template <class T, int WIDTH> struct bias_terms {
    enum { SUMS = 1 };
    const T *dy;

    __device__ __forceinline__ bias_terms(const stk_train_bias_gradient &a, uint32_t)
        : dy((const T *)a.dy)
    {
    }
    __device__ __forceinline__ void add(uint64_t at, float *sums) const
    {
        float value[WIDTH];
        load_wide<WIDTH>(dy + at, value);
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            sums[i] += value[i];
    }
};

template <class T>
static __device__ __forceinline__ void bias_gradient(const stk_train_bias_gradient &a)
{
    uint32_t c;
    stk_train_sum sum;
    if (sum_pixels<bias_terms, T>(a, &c, &sum))
        stk_train_add_to(&a.bias_grad[c], stk_train_sum_float(&sum), a.write);
}

/* ---- BatchNorm ------------------------------------------------------------------------------- */

/* The sums of x - shift and of its square. */
template <class T, int WIDTH> struct moment_terms {
    enum { SUMS = 2 };
    const T *x;
    float shift[WIDTH];

    /* Relative to the channel's first pixel. */
    __device__ __forceinline__ moment_terms(const stk_train_batch_norm_moments &a, uint32_t c)
        : x((const T *)a.x)
    {
        load_wide<WIDTH>(x + c, shift);
    }
    __device__ __forceinline__ moment_terms(const stk_train_batch_norm_sums &a, uint32_t c)
        : x((const T *)a.x)
    {
        load_channels<WIDTH>(a.shift + c, shift);
    }
    __device__ __forceinline__ void add(uint64_t at, float *sums) const
    {
        float value[WIDTH];
        load_wide<WIDTH>(x + at, value);
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            const float off = value[i] - shift[i];
            sums[i] += off;
            sums[WIDTH + i] += off * off;
        }
    }
};

template <class T>
static __device__ __forceinline__ void moments(const stk_train_batch_norm_moments &a)
{
    uint32_t c;
    stk_train_sum sums[2];
    if (!sum_pixels<moment_terms, T>(a, &c, sums))
        return;
    const stk_train_moments_of_channel m =
        stk_train_shifted_moments(stk_train_sum_value(&sums[0]), stk_train_sum_value(&sums[1]),
                                  load((const T *)a.x, c), a.pixels, a.epsilon);
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
    uint32_t c;
    stk_train_sum sums[2];
    if (!sum_pixels<moment_terms, T>(a, &c, sums))
        return;
    a.sums[c] = stk_train_sum_value(&sums[0]);
    a.sums[a.c + c] = stk_train_sum_value(&sums[1]);
}

template <class T, int WIDTH> struct norm_terms {
    enum { SUMS = 2 };
    norm_channels<T, WIDTH> channels;

    __device__ __forceinline__ norm_terms(const stk_train_batch_norm_backward &a, uint32_t c)
        : channels(a, c)
    {
    }
    __device__ __forceinline__ void add(uint64_t at, float *sums) const
    {
        float passed[WIDTH], hat[WIDTH];
        channels.of(at, passed, hat);
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            sums[i] += passed[i] * hat[i];
            sums[WIDTH + i] += passed[i];
        }
    }
};

template <class T>
static __device__ __forceinline__ void backward_sums(const stk_train_batch_norm_backward &a)
{
    uint32_t c;
    stk_train_sum sums[2];
    if (!sum_pixels<norm_terms, T>(a, &c, sums))
        return;
    const double gamma = stk_train_sum_value(&sums[0]);
    const double beta = stk_train_sum_value(&sums[1]);
    a.sums[c] = (float)gamma;
    a.sums[a.c + c] = (float)beta;
    if (a.sums_of_all != nullptr) {
        a.sums_of_all[c] = gamma;
        a.sums_of_all[a.c + c] = beta;
    }
    stk_train_add_to(&a.gamma_grad[c], (float)gamma, a.write);
    stk_train_add_to(&a.beta_grad[c], (float)beta, a.write);
}

STK_KERNEL(stk_train_bias_gradient, stk_train_bias_gradient, bias_gradient)
STK_KERNEL_BOUNDED(stk_train_batch_norm_moments, stk_train_batch_norm_moments, moments,
                   STK_LAUNCH_UNSPILLED(4))
STK_KERNEL_BOUNDED(stk_train_batch_norm_sums, stk_train_batch_norm_sums, sums_to_share,
                   STK_LAUNCH_UNSPILLED(4))
STK_KERNEL(stk_train_batch_norm_backward_sums, stk_train_batch_norm_backward, backward_sums)
