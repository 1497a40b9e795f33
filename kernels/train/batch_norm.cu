/* batch_norm.cu - BatchNorm with known statistics, and statistics of several GPUs. Host version: batch_norm.c. */
#include "kernels/train/batch_norm.cuh"
#include "kernels/train/device.cuh"

template <class T> static __device__ __forceinline__ void batch_norm(const stk_train_batch_norm &a)
{
    for (uint32_t i = first_element_32(); i < a.count; i += element_stride_32()) {
        const uint32_t c = i % a.c;
        const float inverse =
            a.inverse != nullptr ? a.inverse[c] : stk_train_inverse(a.variance[c], a.epsilon);
        const float value =
            stk_train_normalise(load((const T *)a.x, i), a.mean[c], inverse, a.gamma[c], a.beta[c]);
        store((T *)a.y, i, a.relu != 0 && value < 0 ? 0 : value);
    }
}

template <class T>
static __device__ __forceinline__ void backward(const stk_train_batch_norm_backward &a)
{
    const bool together = a.sums_of_all != nullptr;
    const float pixels = (float)(together ? a.pixels_of_all : a.pixels);
    for (uint64_t i = first_element(); i < a.pixels * a.c; i += element_stride()) {
        const uint32_t c = (uint32_t)(i % a.c);
        const float gamma = together ? (float)a.sums_of_all[c] : a.sums[c];
        const float beta = together ? (float)a.sums_of_all[a.c + c] : a.sums[a.c + c];
        const norm_channels<T, 1> channel(a, c);
        float passed, hat;
        channel.of(i, &passed, &hat);
        store((T *)a.dx, i,
              stk_train_norm_gradient(passed, hat, a.gamma[c] * a.inverse[c], beta, gamma, pixels));
    }
}

STK_KERNEL(stk_train_batch_norm, stk_train_batch_norm, batch_norm)
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
