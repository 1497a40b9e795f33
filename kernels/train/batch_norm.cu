/* batch_norm.cu - BatchNorm with known statistics. Host version: batch_norm.c. */
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

STK_KERNEL(stk_train_batch_norm, stk_train_batch_norm, batch_norm)
