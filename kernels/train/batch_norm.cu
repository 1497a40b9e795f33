/* batch_norm.cu - what is left of BatchNorm beside the convolutions: statistics from sums, and the
 * normalisation itself. Twin: batch_norm.c. */
#include "kernels/train/device.cuh"

/* y = scale x + shift. */
template <class T>
static __device__ __forceinline__ void store_scale(const stk_train_batch_norm_statistics &a,
                                                   uint32_t c, float mean, float inverse)
{
    const float scale = a.gamma[c] * inverse;
    store((T *)a.scale, c, scale);
    store((T *)a.shift, c, a.beta[c] - mean * scale);
}

template <class T>
static __device__ __forceinline__ void statistics(const stk_train_batch_norm_statistics &a)
{
    for (uint32_t c = first_element_32(); c < a.c; c += element_stride_32()) {
        if (a.sum == nullptr) {
            store_scale<T>(a, c, a.known_mean[c], a.known_inverse[c]);
            continue;
        }
        const stk_train_moments_of_channel m =
            stk_train_channel_moments(a.sum[c], a.square_sum[c], a.pixels, a.epsilon);
        a.mean[c] = m.mean;
        a.inverse[c] = m.inverse;
        if (a.running_mean != nullptr) {
            a.running_mean[c] = stk_train_move(a.running_mean[c], m.mean, a.momentum);
            a.running_var[c] = stk_train_move(a.running_var[c], m.unbiased, a.momentum);
        }
        if (a.scale != nullptr)
            store_scale<T>(a, c, m.mean, m.inverse);
    }
}

template <class T> static __device__ __forceinline__ void batch_norm(const stk_train_batch_norm &a)
{
    for (uint32_t i = first_element_32(); i < a.count; i += element_stride_32()) {
        const uint32_t c = i % a.c;
        const float inverse =
            a.inverse != nullptr ? a.inverse[c] : stk_train_inverse(a.variance[c], a.epsilon);
        float value =
            stk_train_normalise(load((const T *)a.x, i), a.mean[c], inverse, a.gamma[c], a.beta[c]);
        if (a.x2 != nullptr)
            value += load((const T *)a.x2, i);
        store((T *)a.y, i, a.relu != 0 && value < 0 ? 0 : value);
    }
}

STK_KERNEL(stk_train_batch_norm_statistics, stk_train_batch_norm_statistics, statistics)
STK_KERNEL(stk_train_batch_norm, stk_train_batch_norm, batch_norm)
