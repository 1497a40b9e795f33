/* update.cu - the norm and finiteness of the gradients, the factors of a step, and the step over whole
 * arenas. Host version: update.c. */
#include "kernels/train/device.cuh"

/* Returns true in the thread that has written the state. */
template <class T> static __device__ __forceinline__ bool gradient_norm(const stk_train_norm &a)
{
    __shared__ double sums[STK_LAUNCH_THREADS / 32];
    __shared__ uint32_t flags[STK_LAUNCH_THREADS / 32];
    __shared__ uint32_t flag;
    const T *const gradients = (const T *)a.gradients;
    double sum = 0;
    uint32_t not_finite = 0;
    for (uint64_t i = first_element(); i < a.count; i += element_stride()) {
        const float g = load(gradients, i);
        sum += (double)g * (double)g;
        not_finite |= !isfinite(g);
    }
    sum = block_sum(sum, sums);
    not_finite = block_sum(not_finite, flags);
    if (threadIdx.x == 0) {
        a.partial_sums[blockIdx.x] = sum;
        a.partial_finite[blockIdx.x] = not_finite == 0;
    }
    if (!is_last_block(a.ticket, gridDim.x, &flag))
        return false;
    sum = 0;
    not_finite = 0;
    for (uint32_t block = threadIdx.x; block < gridDim.x; block += blockDim.x) {
        sum += a.partial_sums[block];
        not_finite |= a.partial_finite[block] == 0;
    }
    sum = block_sum(sum, sums);
    not_finite = block_sum(not_finite, flags);
    if (threadIdx.x == 0) {
        a.state->norm_squared = sum;
        a.state->finite = not_finite == 0;
    }
    return threadIdx.x == 0;
}

STK_KERNEL(stk_train_gradient_norm, stk_train_norm, gradient_norm)

extern "C" __global__ void __launch_bounds__(STK_LAUNCH_THREADS)
    stk_train_prepare(const struct stk_train_prepare a)
{
    if (threadIdx.x == 0)
        stk_train_prepare_state(&a);
}

template <class T, uint32_t LOOP>
static __device__ __forceinline__ void update_loop(const stk_train_update &a)
{
    const uint32_t moments = stk_train_moments(LOOP);
    const stk_train_factors f = a.state->factors;
    for (uint64_t i = first_element(); i < a.count; i += element_stride()) {
        stk_train_weight w;
        w.weight = a.parameters[i];
#pragma unroll
        for (uint32_t m = 0; m < moments; m++)
            w.moment[m] = a.moments[m][i];
        stk_train_step_weight(LOOP, &f, &w, a.gradients[i]);
        a.parameters[i] = w.weight;
#pragma unroll
        for (uint32_t m = 0; m < moments; m++)
            a.moments[m][i] = w.moment[m];
        if (a.half_weights != nullptr)
            store((T *)a.half_weights, i, w.weight);
        if (a.ema != nullptr)
            a.ema[i] += (w.weight - a.ema[i]) * f.average;
    }
}

template <class T> static __device__ __forceinline__ void update(const stk_train_update &a)
{
    if (a.state->use == 0)
        return;
#define LOOP_CASE(loop)                                                                            \
    case loop:                                                                                     \
        update_loop<T, loop>(a);                                                                   \
        break;
    switch (a.loop) {
        LOOP_CASE(STK_TRAIN_SGD)
        LOOP_CASE(STK_TRAIN_SGD_MOMENTUM)
        LOOP_CASE(STK_TRAIN_SGD_NESTEROV)
        LOOP_CASE(STK_TRAIN_ADAM)
        LOOP_CASE(STK_TRAIN_ADAMAX)
        LOOP_CASE(STK_TRAIN_ADAGRAD)
        LOOP_CASE(STK_TRAIN_ADADELTA)
        LOOP_CASE(STK_TRAIN_RMSPROP)
        LOOP_CASE(STK_TRAIN_RMSPROP_MOMENTUM)
        LOOP_CASE(STK_TRAIN_RMSPROP_CENTERED)
        LOOP_CASE(STK_TRAIN_RMSPROP_CENTERED_MOMENTUM)
        LOOP_CASE(STK_TRAIN_ASGD)
    default:
        break;
    }
#undef LOOP_CASE
}

STK_KERNEL(stk_train_update, stk_train_update, update)
