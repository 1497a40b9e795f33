/* batch_norm.cuh - shared by the two kernels of BatchNorm's backward: sums by channel, then the
 * gradient of x. */
#ifndef STK_KERNELS_TRAIN_BATCH_NORM_CUH
#define STK_KERNELS_TRAIN_BATCH_NORM_CUH

#include "kernels/train/device.cuh"

/* What BatchNorm's backward knows of WIDTH channels: gradients that ReLU let pass, and x
 * normalized. */
template <class T, int WIDTH> struct norm_channels {
    const T *x, *dy, *y;
    bool relu;
    float mean[WIDTH], inverse[WIDTH], gamma[WIDTH], beta[WIDTH];

    __device__ __forceinline__ norm_channels(const stk_train_batch_norm_backward &a, uint32_t c)
        : x((const T *)a.x), dy((const T *)a.dy), y((const T *)a.y), relu(a.relu != 0)
    {
        load_channels<WIDTH>(a.mean + c, mean);
        load_channels<WIDTH>(a.inverse + c, inverse);
        load_channels<WIDTH>(a.gamma + c, gamma);
        load_channels<WIDTH>(a.beta + c, beta);
    }
    /* passed: the gradient of element at + i, 0 if ReLU cut it off. */
    __device__ __forceinline__ void of(uint64_t at, float *passed, float *hat) const
    {
        float value[WIDTH], out[WIDTH];
        load_wide<WIDTH>(x + at, value);
        load_wide<WIDTH>(dy + at, passed);
        if (relu && y != nullptr)
            load_wide<WIDTH>(y + at, out);
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            hat[i] = (value[i] - mean[i]) * inverse[i];
            if (relu && y == nullptr)
                out[i] = rounded(
                    stk_train_normalize(value[i], mean[i], inverse[i], gamma[i], beta[i]), x);
            if (relu)
                passed[i] = out[i] > 0 ? passed[i] : 0;
        }
    }
};

#endif
