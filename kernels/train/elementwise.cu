/* elementwise.cu - elementwise kernels, eight elements per thread. */
#include "kernels/train/packs.cuh"

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

/* The bias of channels c, c + 1, ...; behind the last one comes the first. */
template <class T>
static __device__ __forceinline__ void load_bias(const T *bias, uint32_t c, uint32_t channels,
                                                 float *v)
{
    if (channels % STK_TRAIN_PACK == 0) {
        load_pack(bias + c, v);
        return;
    }
#pragma unroll
    EACH_OF_PACK(i)
    {
        v[i] = load(bias, c);
        c = c + 1 == channels ? 0 : c + 1;
    }
}

template <class T> static __device__ __forceinline__ void bias_relu(const stk_train_bias_relu &a)
{
    const T *const bias = (const T *)a.bias;
    uint32_t c = (uint32_t)(first_element() * STK_TRAIN_PACK % a.c);
    const uint32_t c_step = (uint32_t)(element_stride() * STK_TRAIN_PACK % a.c);
    FOR_EACH_PACK(first, a.count)
    {
        float v[STK_TRAIN_PACK], added[STK_TRAIN_PACK] = {};
        load_some((const T *)a.y, first, a.count, v);
        if (bias != nullptr)
            load_bias(bias, c, a.c, added);
#pragma unroll
        EACH_OF_PACK(i)
        {
            v[i] += added[i];
            v[i] = a.relu != 0 ? stk_train_rectified(v[i]) : v[i];
        }
        store_some((T *)a.y, first, a.count, v);
        c += c_step;
        c -= c >= a.c ? a.c : 0;
    }
}

STK_KERNEL(stk_train_cast, stk_train_cast, cast)
STK_KERNEL(stk_train_add_gradient, stk_train_add_gradient, add_gradient)
STK_KERNEL(stk_train_relu, stk_train_relu, relu)
STK_KERNEL(stk_train_relu_backward, stk_train_relu_backward, relu_backward)
STK_KERNEL(stk_train_add, stk_train_add, add)
STK_KERNEL(stk_train_bias_relu, stk_train_bias_relu, bias_relu)
