/* head.cu - the last linear layer of a classifier with its loss, and the gradients of its input and bias: one launch in place
 * of five, for layers so small that launches are all they cost. Host version: head.c.
 *
 *   a warp has a row     x ─▶ logits, one a lane ─▶ loss ─▶ their gradients, one a lane ─▶ dx
 */
#include "kernels/train/device.cuh"

template <class T> struct head_layer {
    const stk_train_head &a;
    float *sums; /* shared, one a thread: gradients of its class, of this warp's rows */

    __device__ __forceinline__ head_layer(const stk_train_head &arguments, float *shared)
        : a(arguments), sums(shared)
    {
        sums[threadIdx.x] = 0;
    }

    /* The lane that writes a logit is the one that the loss reads it in. */
    __device__ __forceinline__ void before(uint32_t row)
    {
        const uint32_t lane = threadIdx.x % 32;
        const T *const x = (const T *)a.x + (uint64_t)row * a.depth;
        float logit = 0;
#pragma unroll 1
        for (uint32_t c = 0; c < a.loss.classes; c++) {
            const T *const weight = (const T *)a.weight + (uint64_t)c * a.depth;
            float sum = 0;
            for (uint32_t k = lane; k < a.depth; k += 32)
                sum += load(x, k) * load(weight, k);
            for (int lanes = 16; lanes > 0; lanes /= 2)
                sum += __shfl_xor_sync(0xFFFFFFFFU, sum, lanes);
            logit = lane == c ? sum : logit;
        }
        if (lane >= a.loss.classes)
            return;
        if (a.bias != nullptr)
            logit += load((const T *)a.bias, lane);
        store((T *)a.logits, (uint64_t)row * a.loss.classes + lane, logit);
    }

    __device__ __forceinline__ void after(uint32_t row)
    {
        const uint32_t lane = threadIdx.x % 32;
        const float own = lane < a.loss.classes
                              ? load((const T *)a.loss.dx, (uint64_t)row * a.loss.classes + lane)
                              : 0;
        sums[threadIdx.x] += own;
        if (a.dx == nullptr)
            return;
#pragma unroll 1
        for (uint32_t k = lane; k - lane < a.depth; k += 32) { /* all lanes shuffle */
            float sum = 0;
            for (uint32_t c = 0; c < a.loss.classes; c++) {
                const float d = __shfl_sync(0xFFFFFFFFU, own, (int)c);
                if (k < a.depth)
                    sum += d * load((const T *)a.weight, (uint64_t)c * a.depth + k);
            }
            if (k < a.depth)
                store((T *)a.dx, (uint64_t)row * a.depth + k, sum);
        }
    }

    __device__ __forceinline__ void end_block()
    {
        if (a.bias_grad == nullptr)
            return;
        __syncthreads();
        if (threadIdx.x >= a.loss.classes)
            return;
        float sum = sums[threadIdx.x];
        for (uint32_t warp = 1; warp < STK_LAUNCH_THREADS / 32; warp++)
            sum += sums[32 * warp + threadIdx.x];
        a.partial_sums[(uint64_t)blockIdx.x * a.loss.classes + threadIdx.x] = sum;
    }

    __device__ __forceinline__ void end_last()
    {
        if (a.bias_grad == nullptr || threadIdx.x >= a.loss.classes)
            return;
        float sum = 0;
#pragma unroll 8
        for (uint32_t block = 0; block < gridDim.x; block++)
            sum += a.partial_sums[(uint64_t)block * a.loss.classes + threadIdx.x];
        stk_train_add_to(&a.bias_grad[threadIdx.x], sum, a.write);
    }
};

template <class T> static __device__ __forceinline__ void head(const stk_train_head &a)
{
    __shared__ float sums[STK_LAUNCH_THREADS];
    cross_entropy_within<T>(a.loss, 32, head_layer<T>(a, sums));
}

/* Four blocks a multiprocessor leave each thread the registers that it needs. */
STK_KERNEL_BOUNDED(stk_train_head, stk_train_head, head, STK_LAUNCH_THREADS, 4)
