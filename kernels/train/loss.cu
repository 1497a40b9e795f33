/* loss.cu - softmax cross-entropy and mean squared error: loss and gradient in one pass. */
#include "kernels/train/device.cuh"

/* A lane's running maximum, its sum of exp(x - maximum) (Milakov, Gimelshein, "Online normalizer
 * calculation for softmax", 2018), and the first class with the maximum. */
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

/* Merges two lanes' values; of equal maxima the lower class wins. A lane without a class has sum 0;
 * a NaN stays. */
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

/* Joins the values of a row's lanes: a power of two, adjacent. */
static __device__ __forceinline__ running row_of_lanes(running r, uint32_t row_lanes)
{
    for (uint32_t lanes = row_lanes / 2; lanes > 0; lanes /= 2) {
        running other;
        other.largest = __shfl_xor_sync(0xFFFFFFFFU, r.largest, lanes);
        other.sum = __shfl_xor_sync(0xFFFFFFFFU, r.sum, lanes);
        other.best = __shfl_xor_sync(0xFFFFFFFFU, r.best, lanes);
        join(&r, other);
    }
    return r;
}

/* The results of a row's lane; all but loss are the same in all of them. */
struct found {
    float loss; /* this lane's share */
    uint32_t correct, bad;
};

/* Lane `lane` of a row's lanes; lanes beyond the last row have no classes. */
template <class T>
static __device__ __forceinline__ found row_loss(const stk_train_cross_entropy &a, uint32_t row,
                                                 uint32_t lane, uint32_t lanes, float scale,
                                                 float share)
{
    const bool exists = row < a.rows;
    const uint32_t classes = exists ? a.classes : 0;
    const uint64_t first = exists ? (uint64_t)row * a.classes : 0;
    const T *const x = (const T *)a.x + first;
    T *const dx = a.dx == nullptr ? nullptr : (T *)a.dx + first;
    const int64_t label = exists ? a.labels[row] : 0;
    const bool bad = exists && (label < 0 || label >= (int64_t)a.classes);
    found f = { 0, 0, bad };
    running r = { -INFINITY, 0, 0xFFFFFFFFU };
    for (uint32_t i = lane; i < classes; i += lanes)
        take(&r, load(x, i), i);
    r = row_of_lanes(r, lanes);
    const float base = r.largest < INFINITY ? r.largest + logf(r.sum) : NAN; /* inf - inf */
    f.correct = exists && !bad && (int64_t)r.best == label;
    for (uint32_t i = lane; i < classes; i += lanes) {
        const float log_p = load(x, i) - base;
        const float wanted = share + ((int64_t)i == label ? 1 - a.smoothing : 0);
        if (!bad && wanted > 0)
            f.loss -= wanted * log_p;
        if (dx != nullptr) /* dx may be x: this lane has read this element already */
            store(dx, i, bad ? 0 : (expf(log_p) - wanted) * scale);
    }
    return f;
}

/* Adds up what the blocks have found, with all threads of the last one. */
static __device__ __forceinline__ void add_blocks(const stk_train_cross_entropy &a, double *losses,
                                                  uint32_t *counts)
{
    double loss = 0;
    uint32_t correct = 0;
    uint32_t bad = 0;
    for (uint32_t block = threadIdx.x; block < gridDim.x; block += blockDim.x) {
        loss += a.partial_loss[block];
        correct += a.partial_counts[2 * block];
        bad += a.partial_counts[2 * block + 1];
    }
    loss = block_sum(loss, losses);
    correct = block_sum(correct, counts);
    bad = block_sum(bad, counts);
    if (threadIdx.x != 0)
        return;
    a.metrics->loss_sum += loss;
    a.metrics->correct += correct;
    a.metrics->bad_labels += bad;
    a.metrics->count += a.rows;
}

template <class T>
static __device__ __forceinline__ void cross_entropy(const stk_train_cross_entropy &a)
{
    __shared__ double losses[STK_LAUNCH_THREADS / 32];
    __shared__ uint32_t counts[STK_LAUNCH_THREADS / 32];
    __shared__ uint32_t flag;
    const uint32_t lanes = stk_train_row_lanes(a.classes);
    const uint32_t rows = blockDim.x / lanes; /* at once */
    const uint32_t lane = threadIdx.x % lanes;
    const float scale = a.gradient_factor * (a.state == nullptr ? 1 : a.state->loss_scale);
    const float share = a.smoothing / (float)a.classes; /* what each class gets */
    uint32_t correct = 0;
    uint32_t bad = 0;
    stk_train_sum sum = { 0, 0 };
    /* All lanes of a warp go round as often as its first: they meet in row_of_lanes(). */
    uint32_t first = blockIdx.x * rows;
    do {
        const uint32_t row = first + threadIdx.x / lanes;
        const found f = row_loss<T>(a, row, lane, lanes, scale, share);
        stk_train_sum_add(&sum, f.loss);
        correct += f.correct;
        bad += f.bad;
        first += gridDim.x * rows;
    } while (first < a.rows);
    const double loss = block_sum(stk_train_sum_value(&sum), losses);
    correct = block_sum(lane == 0 ? correct : 0U, counts);
    bad = block_sum(lane == 0 ? bad : 0U, counts);
    if (threadIdx.x == 0) {
        a.partial_loss[blockIdx.x] = loss;
        a.partial_counts[2 * blockIdx.x] = correct;
        a.partial_counts[2 * blockIdx.x + 1] = bad;
    }
    if (is_last_block(a.ticket, gridDim.x, &flag))
        add_blocks(a, losses, counts);
}

STK_KERNEL(stk_train_softmax_cross_entropy, stk_train_cross_entropy, cross_entropy)

template <class T> static __device__ __forceinline__ void mse(const stk_train_mse &a)
{
    __shared__ double sums[STK_LAUNCH_THREADS / 32];
    __shared__ uint32_t flag;
    const T *const x = (const T *)a.x;
    const float scale = a.gradient_factor * (a.state == nullptr ? 1 : a.state->loss_scale);
    const float factor = 2 / (float)a.outputs * scale;
    stk_train_sum squares = { 0, 0 };
    for (uint64_t i = first_element(); i < (uint64_t)a.rows * a.outputs; i += element_stride()) {
        const float off = load(x, i) - a.targets[i];
        stk_train_sum_add(&squares, off * off);
        if (a.dx != nullptr)
            store((T *)a.dx, i, off * factor);
    }
    double sum = block_sum(stk_train_sum_value(&squares), sums);
    if (threadIdx.x == 0)
        a.partial_loss[blockIdx.x] = sum;
    if (!is_last_block(a.ticket, gridDim.x, &flag))
        return;
    sum = 0;
    for (uint32_t block = threadIdx.x; block < gridDim.x; block += blockDim.x)
        sum += a.partial_loss[block];
    sum = block_sum(sum, sums);
    if (threadIdx.x == 0) {
        a.metrics->loss_sum += sum / a.outputs;
        a.metrics->count += a.rows;
    }
}

STK_KERNEL(stk_train_mse, stk_train_mse, mse)
