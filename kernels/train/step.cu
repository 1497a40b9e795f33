/* step.cu - kernels of the update in one launch: norm and factors; factors and update. Host version: step.c. */
#include "kernels/train/device.cuh"

extern "C" __global__ void __launch_bounds__(STK_LAUNCH_THREADS)
    stk_train_norm_prepare(const struct stk_train_norm_prepare a)
{
    if (gradient_norm<float>(a.norm))
        stk_train_prepare_state(&a.prepare);
}

/* Every block reads the state before it takes its ticket, so the last one may write it. */
template <class T> static __device__ __forceinline__ void step(const stk_train_step &a)
{
    __shared__ stk_train_state after;
    __shared__ uint32_t flag;
    if (threadIdx.x == 0) {
        after = *a.prepare.state;
        stk_train_prepare_copy(&a.prepare, &after);
    }
    __syncthreads();
    stk_train_update moved = a.update;
    moved.state = &after;
    update<T>(moved);
    if (is_last_block(a.ticket, gridDim.x, &flag) && threadIdx.x == 0)
        *a.prepare.state = after;
}

STK_KERNEL(stk_train_step, stk_train_step, step)
