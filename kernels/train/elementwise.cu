/* elementwise.cu - elementwise kernels, eight elements per thread. Host version:
 * elementwise.c. */
#include "kernels/train/device.cuh"

/* Loops over this thread's packs of eight elements; each begins at `first`. */
#define FOR_EACH_PACK(first, count)                                                                \
    for (uint64_t first = first_element() * STK_TRAIN_PACK; first < (count);                       \
         first += element_stride() * STK_TRAIN_PACK)

#define EACH_OF_PACK(i) for (int i = 0; i < STK_TRAIN_PACK; i++)

template <class T> static __device__ __forceinline__ void cast(const stk_train_cast &a)
{
    FOR_EACH_PACK(first, a.count)
    {
        float v[STK_TRAIN_PACK];
        load_some(a.x, first, a.count, v);
        store_some((T *)a.y, first, a.count, v);
    }
}

template <class T>
static __device__ __forceinline__ void add_gradient(const stk_train_add_gradient &a)
{
    FOR_EACH_PACK(first, a.count)
    {
        float gradient[STK_TRAIN_PACK], sum[STK_TRAIN_PACK];
        load_some((const T *)a.gradient, first, a.count, gradient);
        if (a.write == 0)
            load_some(a.sum, first, a.count, sum);
#pragma unroll
        EACH_OF_PACK(i)
        sum[i] = a.write == 0 ? sum[i] + gradient[i] : gradient[i];
        store_some(a.sum, first, a.count, sum);
    }
}

template <class T> static __device__ __forceinline__ void relu(const stk_train_relu &a)
{
    FOR_EACH_PACK(first, a.count)
    {
        float v[STK_TRAIN_PACK];
        load_some((const T *)a.x, first, a.count, v);
#pragma unroll
        EACH_OF_PACK(i)
        v[i] = stk_train_rectified(v[i]);
        store_some((T *)a.y, first, a.count, v);
    }
}

template <class T>
static __device__ __forceinline__ void relu_backward(const stk_train_relu_backward &a)
{
    FOR_EACH_PACK(first, a.count)
    {
        float y[STK_TRAIN_PACK], dy[STK_TRAIN_PACK];
        load_some((const T *)a.y, first, a.count, y);
        load_some((const T *)a.dy, first, a.count, dy);
#pragma unroll
        EACH_OF_PACK(i)
        dy[i] = y[i] > 0 ? dy[i] : 0;
        store_some((T *)a.dx, first, a.count, dy);
    }
}

template <class T> static __device__ __forceinline__ void add(const stk_train_add &a)
{
    FOR_EACH_PACK(first, a.count)
    {
        float v[STK_TRAIN_PACK], w[STK_TRAIN_PACK];
        load_some((const T *)a.x, first, a.count, v);
        load_some((const T *)a.x2, first, a.count, w);
#pragma unroll
        EACH_OF_PACK(i)
        v[i] += w[i];
        store_some((T *)a.y, first, a.count, v);
    }
}

template <class T> static __device__ __forceinline__ void bias_relu(const stk_train_bias_relu &a)
{
    const T *const bias = (const T *)a.bias;
    FOR_EACH_PACK(first, a.count)
    {
        float v[STK_TRAIN_PACK];
        load_some((const T *)a.y, first, a.count, v);
        uint32_t c = (uint32_t)(first % a.c);
#pragma unroll
        EACH_OF_PACK(i)
        {
            v[i] += bias != nullptr ? load(bias, c) : 0;
            v[i] = a.relu != 0 ? stk_train_rectified(v[i]) : v[i];
            c = c + 1 == a.c ? 0 : c + 1;
        }
        store_some((T *)a.y, first, a.count, v);
    }
}

STK_KERNEL(stk_train_cast, stk_train_cast, cast)
STK_KERNEL(stk_train_add_gradient, stk_train_add_gradient, add_gradient)
STK_KERNEL(stk_train_relu, stk_train_relu, relu)
STK_KERNEL(stk_train_relu_backward, stk_train_relu_backward, relu_backward)
STK_KERNEL(stk_train_add, stk_train_add, add)
STK_KERNEL(stk_train_bias_relu, stk_train_bias_relu, bias_relu)
