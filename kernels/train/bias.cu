/* bias.cu - the gradient of a bias, summed by the kernel that writes what it is the sum of. Host version: bias.c.
 *
 * Blocks and order of sums are those of channel_sums.cu. */
#include "kernels/train/device.cuh"

/* WIDTH gradients, 0 where ReLU cut them off; y may be NULL. */
template <class T, int WIDTH>
static __device__ __forceinline__ void load_passed(const T *dy, const T *y, float *passed)
{
    load_wide<WIDTH>(dy, passed);
    if (y == nullptr)
        return;
    float out[WIDTH];
    load_wide<WIDTH>(y, out);
#pragma unroll
    for (int i = 0; i < WIDTH; i++)
        passed[i] = out[i] > 0 ? passed[i] : 0;
}

template <class T, int WIDTH> struct relu_terms {
    enum { SUMS = 1 };
    const T *y, *dy;
    T *dx;

    __device__ __forceinline__ relu_terms(const stk_train_relu_bias &a, uint32_t)
        : y((const T *)a.y), dy((const T *)a.dy), dx((T *)a.dx)
    {
    }
    __device__ __forceinline__ void add(uint64_t at, float *sums) const
    {
        float passed[WIDTH];
        load_passed<T, WIDTH>(dy + at, y + at, passed);
        store_wide<WIDTH>(dx + at, passed);
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            sums[i] += passed[i];
    }
};

template <class T, int WIDTH> struct pool_terms {
    enum { SUMS = 1 };
    const stk_train_pool_bias &a;

    __device__ __forceinline__ pool_terms(const stk_train_pool_bias &arguments, uint32_t)
        : a(arguments)
    {
    }
    /* Writes the whole window of these outputs. */
    __device__ __forceinline__ void add(uint64_t at, float *sums) const
    {
        const stk_train_window &w = a.window;
        const uint8_t *const places = (const uint8_t *)a.places + at;
        float passed[WIDTH];
        load_passed<T, WIDTH>((const T *)a.dy + at, a.y == nullptr ? nullptr : (const T *)a.y + at,
                              passed);
        const uint32_t output = (uint32_t)at; /* there are fewer than 2^31, and inputs */
        const uint32_t pixel = output / a.c;
        const uint32_t row = pixel / w.out_w;
        const uint32_t column = pixel % w.out_w;
        T *const dx =
            (T *)a.dx + (row * w.kernel[0] * w.in_w + column * w.kernel[1]) * a.c + output % a.c;
#pragma unroll 1 /* registers would not suffice */
        for (uint32_t r = 0; r < w.kernel[0]; r++)
#pragma unroll 1
            for (uint32_t s = 0; s < w.kernel[1]; s++) {
                float value[WIDTH];
#pragma unroll
                for (int i = 0; i < WIDTH; i++)
                    value[i] = places[i] == r * w.kernel[1] + s ? passed[i] : 0;
                store_wide<WIDTH>(dx + (r * w.in_w + s) * a.c, value);
            }
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            sums[i] += passed[i];
    }
};

template <class T> static __device__ __forceinline__ void relu_bias(const stk_train_relu_bias &a)
{
    uint32_t c;
    stk_train_sum sum;
    if (sum_pixels<relu_terms, T>(a, &c, &sum))
        stk_train_add_to(&a.bias_grad[c], stk_train_sum_float(&sum), a.write);
}

template <class T> static __device__ __forceinline__ void pool_bias(const stk_train_pool_bias &a)
{
    uint32_t c;
    stk_train_sum sum;
    if (sum_pixels<pool_terms, T>(a, &c, &sum))
        stk_train_add_to(&a.bias_grad[c], stk_train_sum_float(&sum), a.write);
}

STK_KERNEL(stk_train_relu_bias, stk_train_relu_bias, relu_bias)
STK_KERNEL(stk_train_pool_bias, stk_train_pool_bias, pool_bias)
