/* loss.cu - softmax cross-entropy and mean squared error: loss and gradient in one pass. Host version:
 * loss.c. */
#include "kernels/train/device.cuh"

/* A lane's running maximum, its sum of exp(x - maximum) (Milakov, Gimelshein, "Online normalizer calculation for
 * softmax", 2018), and the first class with the maximum. */
struct running {
    float largest, sum;
    uint32_t best;
};

static __device__ __forceinline__ void take(running *r, float x, uint32_t i)
{
    if (x > r->largest) {
        r->sum = r->sum * expf(r->largest - x) + 1;
        r->largest = x;
        r->best = i;
    } else if (x != -INFINITY) { /* adds 0; -inf - -inf would be NaN */
        r->sum += expf(x - r->largest);
    }
}

/* Merges two lanes' values; of equal maxima the lower class wins. A lane without a class has sum 0; a NaN stays. */
static __device__ __forceinline__ void join(running *r, const running &other)
{
    if (other.largest > r->largest || (other.largest == r->largest && other.best < r->best)) {
        r->sum = other.sum + (r->sum != 0 ? r->sum * expf(r->largest - other.largest) : 0);
        r->largest = other.largest;
        r->best = other.best;
    } else if (other.sum != 0) {
        r->sum += other.sum * expf(other.largest - r->largest);
    }
}

static __device__ __forceinline__ running row_of_warp(running r)
{
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        running other;
        other.largest = __shfl_xor_sync(0xFFFFFFFFU, r.largest, lanes);
        other.sum = __shfl_xor_sync(0xFFFFFFFFU, r.sum, lanes);
        other.best = __shfl_xor_sync(0xFFFFFFFFU, r.best, lanes);
        join(&r, other);
    }
    return r;
}

/* The results of a warp; all but loss are the same in all lanes. */
struct found {
    float loss; /* this lane's share */
    uint32_t correct, bad;
};

template <class T>
static __device__ __forceinline__ void row_loss(const stk_train_cross_entropy &a, uint32_t row,
                                                float scale, float share, found *out)
{
    const uint32_t lane = threadIdx.x % 32;
    const T *const x = (const T *)a.x + (uint64_t)row * a.classes;
    T *const dx = a.dx == nullptr ? nullptr : (T *)a.dx + (uint64_t)row * a.classes;
    const int64_t label = a.labels[row];
    const bool bad = label < 0 || label >= (int64_t)a.classes;
    running r = { -INFINITY, 0, 0xFFFFFFFFU };
    for (uint32_t i = lane; i < a.classes; i += 32)
        take(&r, load(x, i), i);
    r = row_of_warp(r);
    const float base = r.largest < INFINITY ? r.largest + logf(r.sum) : NAN; /* inf - inf */
    out->bad += bad;
    out->correct += !bad && (int64_t)r.best == label;
    for (uint32_t i = lane; i < a.classes; i += 32) {
        const float log_p = load(x, i) - base;
        const float wanted = share + ((int64_t)i == label ? 1 - a.smoothing : 0);
        if (!bad && wanted > 0)
            out->loss -= wanted * log_p;
        if (dx != nullptr) /* dx may be x: this lane has read this element already */
            store(dx, i, bad ? 0 : (expf(log_p) - wanted) * scale);
    }
}

/* What else a kernel does around the loss: for each row of a warp, of a block, and in the last block. */
struct nothing {
    __device__ __forceinline__ void before(uint32_t)
    {
    }
    __device__ __forceinline__ void after(uint32_t)
    {
    }
    __device__ __forceinline__ void end_block()
    {
    }
    __device__ __forceinline__ void end_last()
    {
    }
};

template <class T, class Around>
static __device__ __forceinline__ void cross_entropy_within(const stk_train_cross_entropy &a,
                                                            Around around)
{
    __shared__ double losses[STK_LAUNCH_THREADS / 32];
    __shared__ uint32_t counts[STK_LAUNCH_THREADS / 32];
    __shared__ uint32_t flag;
    const uint32_t warps = blockDim.x / 32;
    const float scale = a.gradient_factor * (a.state == nullptr ? 1 : a.state->loss_scale);
    const float share = a.smoothing / (float)a.classes; /* what each class gets */
    found f = { 0, 0, 0 };
    double loss = 0;
    for (uint32_t row = blockIdx.x * warps + threadIdx.x / 32; row < a.rows;
         row += gridDim.x * warps) {
        f.loss = 0;
        around.before(row);
        row_loss<T>(a, row, scale, share, &f);
        around.after(row);
        loss += (double)f.loss;
    }
    around.end_block();
    const bool first_lane = threadIdx.x % 32 == 0;
    loss = block_sum(loss, losses);
    const uint32_t correct = block_sum(first_lane ? f.correct : 0U, counts);
    const uint32_t bad = block_sum(first_lane ? f.bad : 0U, counts);
    if (threadIdx.x == 0) {
        a.partial_loss[blockIdx.x] = loss;
        a.partial_counts[2 * blockIdx.x] = correct;
        a.partial_counts[2 * blockIdx.x + 1] = bad;
    }
    if (!is_last_block(a.ticket, gridDim.x, &flag))
        return;
    around.end_last();
    if (threadIdx.x != 0)
        return;
    for (uint32_t block = 0; block < gridDim.x; block++) {
        a.metrics->loss_sum += a.partial_loss[block];
        a.metrics->correct += a.partial_counts[2 * block];
        a.metrics->bad_labels += a.partial_counts[2 * block + 1];
    }
    a.metrics->count += a.rows;
}

template <class T>
static __device__ __forceinline__ void cross_entropy(const stk_train_cross_entropy &a)
{
    cross_entropy_within<T>(a, nothing());
}

STK_KERNEL(stk_train_softmax_cross_entropy, stk_train_cross_entropy, cross_entropy)

template <class T> static __device__ __forceinline__ void mse(const stk_train_mse &a)
{
    __shared__ double sums[STK_LAUNCH_THREADS / 32];
    __shared__ uint32_t flag;
    const T *const x = (const T *)a.x;
    const float scale = a.gradient_factor * (a.state == nullptr ? 1 : a.state->loss_scale);
    const float factor = 2 / (float)a.outputs * scale;
    double sum = 0;
    for (uint64_t i = first_element(); i < (uint64_t)a.rows * a.outputs; i += element_stride()) {
        const float off = load(x, i) - a.targets[i];
        sum += (double)off * (double)off;
        if (a.dx != nullptr)
            store((T *)a.dx, i, off * factor);
    }
    sum = block_sum(sum, sums);
    if (threadIdx.x == 0)
        a.partial_loss[blockIdx.x] = sum;
    if (!is_last_block(a.ticket, gridDim.x, &flag) || threadIdx.x != 0)
        return;
    sum = 0;
    for (uint32_t block = 0; block < gridDim.x; block++)
        sum += a.partial_loss[block];
    a.metrics->loss_sum += sum / a.outputs;
    a.metrics->count += a.rows;
}

STK_KERNEL(stk_train_mse, stk_train_mse, mse)
