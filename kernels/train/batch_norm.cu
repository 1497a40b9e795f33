/* batch_norm.cu - BatchNorm with known statistics, the gradient of its input, and statistics of
 * several GPUs.
 *
 *   block   all channels, or 256 x WIDTH of them, by as many pixels at once as it has threads left
 *   thread  keeps to WIDTH adjacent channels, whose parameters are in its registers, and goes from
 *           pixel to pixel */
#include "kernels/train/batch_norm.cuh"
#include "kernels/train/device.cuh"

/* Calls visit(c, first, step) in each thread with the first of its WIDTH channels, its first pixel
 * and the distance to the next, once for each 256 x WIDTH channels. before(c, channels) is called
 * first, with the channels of the block. */
template <int WIDTH, class Before, class Visit>
static __device__ __forceinline__ void each_channel(uint32_t c, const Before &before,
                                                    const Visit &visit)
{
    const uint32_t packs = c / WIDTH;
    const uint32_t columns = packs < STK_LAUNCH_THREADS ? packs : STK_LAUNCH_THREADS;
    const uint32_t rows = STK_LAUNCH_THREADS / columns;
    const uint32_t row = threadIdx.x / columns;
    const uint32_t column = threadIdx.x % columns * WIDTH;
    uint32_t from = 0;
    do {
        const uint32_t left = c - from;
        before(from, left < columns * WIDTH ? left : columns * WIDTH);
        /* Threads are left over if columns does not divide their number. */
        if (column < left && row < rows)
            visit(from + column, blockIdx.x * rows + row, gridDim.x * rows);
        from += columns * WIDTH;
    } while (from < c);
}

/* inverses: shared, for 256 x WIDTH channels; used if the variance is given. */
template <class T, int WIDTH>
static __device__ __forceinline__ void batch_norm_of(const stk_train_batch_norm &a, float *inverses)
{
    const T *const x = (const T *)a.x;
    T *const y = (T *)a.y;
    const uint32_t pixels = a.count / a.c;
    /* One square root a channel and block: in doubles, which many GPUs have few of. */
    const auto find_inverses = [&](uint32_t from, uint32_t channels) {
        if (a.inverse != nullptr)
            return;
        __syncthreads(); /* those of the channels before were used */
        for (uint32_t i = threadIdx.x; i < channels; i += blockDim.x)
            inverses[i] = stk_train_inverse(a.variance[from + i], a.epsilon);
        __syncthreads();
    };
    each_channel<WIDTH>(a.c, find_inverses, [&](uint32_t c, uint32_t first, uint32_t step) {
        float mean[WIDTH], inverse[WIDTH], gamma[WIDTH], beta[WIDTH];
        load_channels<WIDTH>(a.mean + c, mean);
        load_channels<WIDTH>(a.gamma + c, gamma);
        load_channels<WIDTH>(a.beta + c, beta);
        if (a.inverse != nullptr)
            load_channels<WIDTH>(a.inverse + c, inverse);
        else
            load_channels<WIDTH>(inverses + c % (STK_LAUNCH_THREADS * WIDTH), inverse);
        for (uint32_t pixel = first; pixel < pixels; pixel += step) {
            float value[WIDTH];
            load_wide<WIDTH>(x + (uint64_t)pixel * a.c + c, value);
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                value[i] = stk_train_normalize(value[i], mean[i], inverse[i], gamma[i], beta[i]);
                value[i] = a.relu != 0 && value[i] < 0 ? 0 : value[i];
            }
            store_wide<WIDTH>(y + (uint64_t)pixel * a.c + c, value);
        }
    });
}

template <class T> static __device__ __forceinline__ void batch_norm(const stk_train_batch_norm &a)
{
    enum { WIDTH = widest<T>::WIDTH };
    __shared__ __align__(16) float inverses[STK_LAUNCH_THREADS * WIDTH];
    if (a.c % WIDTH == 0)
        batch_norm_of<T, WIDTH>(a, inverses);
    else
        batch_norm_of<T, 1>(a, inverses);
}

template <class T, int WIDTH>
static __device__ __forceinline__ void backward_of(const stk_train_batch_norm_backward &a)
{
    const bool together = a.sums_of_all != nullptr;
    const float pixels_of_all = (float)(together ? a.pixels_of_all : a.pixels);
    const auto nothing = [](uint32_t, uint32_t) {};
    each_channel<WIDTH>(a.c, nothing, [&](uint32_t c, uint32_t first, uint32_t step) {
        const norm_channels<T, WIDTH> channels(a, c);
        float gamma_sum[WIDTH], beta_sum[WIDTH];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            gamma_sum[i] = together ? (float)a.sums_of_all[c + i] : a.sums[c + i];
            beta_sum[i] = together ? (float)a.sums_of_all[a.c + c + i] : a.sums[a.c + c + i];
        }
        for (uint64_t pixel = first; pixel < a.pixels; pixel += step) {
            float passed[WIDTH], hat[WIDTH];
            channels.of(pixel * a.c + c, passed, hat);
#pragma unroll
            for (int i = 0; i < WIDTH; i++)
                passed[i] = stk_train_norm_gradient(passed[i], hat[i],
                                                    channels.gamma[i] * channels.inverse[i],
                                                    beta_sum[i], gamma_sum[i], pixels_of_all);
            store_wide<WIDTH>((T *)a.dx + pixel * a.c + c, passed);
        }
    });
}

template <class T>
static __device__ __forceinline__ void backward(const stk_train_batch_norm_backward &a)
{
    enum { WIDTH = widest<T>::WIDTH };
    if (a.c % WIDTH == 0)
        backward_of<T, WIDTH>(a);
    else
        backward_of<T, 1>(a);
}

STK_KERNEL_BOUNDED(stk_train_batch_norm, stk_train_batch_norm, batch_norm, STK_LAUNCH_UNSPILLED(4))
STK_KERNEL(stk_train_batch_norm_backward, stk_train_batch_norm_backward, backward)

extern "C" __global__ void __launch_bounds__(STK_LAUNCH_THREADS)
    stk_train_batch_norm_finish(const struct stk_train_batch_norm_finish a)
{
    for (uint32_t c = first_element_32(); c < a.c; c += element_stride_32())
        stk_train_finish_channel(&a, c);
}

extern "C" __global__ void __launch_bounds__(STK_LAUNCH_THREADS)
    stk_train_move_statistics(const struct stk_train_move_statistics a)
{
    for (uint64_t i = first_element(); i < a.count; i += element_stride())
        stk_train_move_by_all(&a, i);
}
