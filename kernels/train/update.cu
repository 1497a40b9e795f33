/* update.cu - the norm and finiteness of the gradients, the factors of a step, and the step over
 * whole arenas. */
#include "kernels/train/packs.cuh"

/* The sum of the squares of eight elements, but for overflow and underflow. Products of 16-bit
 * numbers are exact. */
template <class T>
static __device__ __forceinline__ stk_train_sum pack_squares(const float *g, const T *)
{
    stk_train_sum sum = { g[0] * g[0], 0 };
    if (sizeof(T) == sizeof(float))
        sum.low = fmaf(g[0], g[0], -sum.high);
#pragma unroll
    for (int i = 1; i < STK_TRAIN_PACK; i++) {
        const float square = g[i] * g[i];
        stk_train_sum_add(&sum, square);
        if (sizeof(T) == sizeof(float))
            sum.low += fmaf(g[i], g[i], -square);
    }
    return sum;
}

/* What a thread has seen of the gradients. */
struct squares_seen {
    double sum;
    uint32_t not_finite;
};

/* Adds elements [first, first + PACK) of any size, one by one. */
template <class T>
static __device__ __forceinline__ void add_squares(const T *gradients, uint64_t first,
                                                   uint64_t count, squares_seen *seen)
{
    const uint64_t left = count - first;
    const uint32_t end = left < STK_TRAIN_PACK ? (uint32_t)left : STK_TRAIN_PACK;
#pragma unroll 1 /* rare */
    for (uint32_t i = 0; i < end; i++) {
        const float g = load(gradients, first + i);
        if (g == 0)
            continue;
        seen->sum += (double)g * (double)g;
        seen->not_finite |= !isfinite(g);
    }
}

/* Many GPUs have few units for doubles: a pack is summed as a pair of floats, if nothing overflowed
 * and if what underflowed (squares below 2^-126, by 2^-149 each) is beyond the digits of its
 * sum. */
template <class T>
static __device__ __forceinline__ squares_seen each_square(const stk_train_norm &a)
{
    const T *const gradients = (const T *)a.gradients;
    squares_seen seen = { 0, 0 };
    FOR_EACH_PACK(first, a.count)
    {
        float g[STK_TRAIN_PACK];
        load_some(gradients, first, a.count, g);
        const stk_train_sum sum = pack_squares(g, gradients);
        if (sum.high >= 0x1p-80F && sum.high <= 0x1p120F)
            seen.sum += (double)sum.high + (double)sum.low;
        else
            add_squares(gradients, first, a.count, &seen);
    }
    return seen;
}

template <class T> static __device__ __forceinline__ void gradient_norm(const stk_train_norm &a)
{
    __shared__ double sums[STK_LAUNCH_THREADS / 32];
    __shared__ uint32_t flags[STK_LAUNCH_THREADS / 32];
    __shared__ uint32_t flag;
    const squares_seen seen = each_square<T>(a);
    double sum = block_sum(seen.sum, sums);
    uint32_t not_finite = block_sum(seen.not_finite, flags);
    if (threadIdx.x == 0) {
        a.partial_sums[blockIdx.x] = sum;
        a.partial_finite[blockIdx.x] = not_finite == 0;
    }
    if (!is_last_block(a.ticket, gridDim.x, &flag))
        return;
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
