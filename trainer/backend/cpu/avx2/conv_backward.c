/* conv_backward.c - gradients of a convolution, skipping the zeros of dy.
 *
 *   data      list of each pixel's filters with dy != 0: dx[kernel row] += sum of dy * filter's row
 *   weights   list of each filter's pixels  with dy != 0:  filter's row   += sum of dy * x's row
 *
 * A kernel row is one run of floats in x and in the filter, held in up to 12 registers while its
 * list is processed. Runs too short for that (few input channels: a stem) are summed with filters
 * in the lanes: see taps below. */
#include "trainer/backend/cpu/avx2/kernels.h"

#ifdef STK_HAVE_AVX2
#include "trainer/backend/cpu/avx2/lanes.h"

#include <string.h>

enum { VECTORS_MAX = 12, SHORT_RUN = 32, TAPS = 6 };

/* One non-zero of dy, and the start of the run that it multiplies. */
struct entry {
    uint32_t at; /* floats */
    float value;
};

static uint32_t pixels_of(const struct stk_conv_sizes *size)
{
    return size->out_h * size->out_w;
}

static uint64_t row_floats(const struct stk_conv_sizes *size)
{
    return (uint64_t)size->w * size->c;
}

static bool has_short_runs(const struct stk_conv_sizes *size)
{
    return size->run < SHORT_RUN;
}

static uint64_t round_to_lanes(uint64_t floats)
{
    return (floats + STK_LANES - 1) / STK_LANES * STK_LANES;
}

uint64_t stk_avx2_conv_scratch_bytes(const struct stk_conv_sizes *size)
{
    const uint64_t lengths =
        round_to_lanes(size->filters > pixels_of(size) ? size->filters : pixels_of(size));
    const uint64_t lists = (uint64_t)size->filters * pixels_of(size) * sizeof(struct entry) +
                           lengths * sizeof(uint32_t);
    const uint64_t taps =
        (uint64_t)size->kernel_h * size->run * round_to_lanes(size->filters) * sizeof(float);
    return lists > taps ? lists : taps;
}

/* Non-zero lanes of eight values (NaN is one), as bits. */
STK_AVX2_INLINE unsigned nonzero_lanes(const float *values, uint64_t count)
{
    const __m256 zero = _mm256_setzero_ps();
    const __m256 v = count >= STK_LANES ? _mm256_loadu_ps(values)
                                        : _mm256_maskload_ps(values, stk_first_lanes(count));
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(v, zero, _CMP_NEQ_UQ));
}

/* The first sums[0..vectors) of a run: += value * from[entry.at...] over the list. */
STK_AVX2_INLINE void sum_entries(const struct entry *list, uint32_t count, const float *from,
                                 float *to, const int vectors)
{
    __m256 sums[VECTORS_MAX];
    STK_UNROLL
    for (int v = 0; v < vectors; v++)
        sums[v] = _mm256_loadu_ps(to + v * STK_LANES);
    for (uint32_t i = 0; i < count; i++) {
        const __m256 value = _mm256_broadcast_ss(&list[i].value);
        const float *run = from + list[i].at;
        STK_UNROLL
        for (int v = 0; v < vectors; v++)
            sums[v] = _mm256_fmadd_ps(value, _mm256_loadu_ps(run + v * STK_LANES), sums[v]);
    }
    STK_UNROLL
    for (int v = 0; v < vectors; v++)
        _mm256_storeu_ps(to + v * STK_LANES, sums[v]);
}

/* Fewer than eight floats. */
STK_AVX2 static void sum_tail(const struct entry *list, uint32_t count, const float *from,
                              float *to, uint64_t lanes)
{
    const __m256i mask = stk_first_lanes(lanes);
    __m256 sum = _mm256_maskload_ps(to, mask);
    for (uint32_t i = 0; i < count; i++)
        sum = _mm256_fmadd_ps(_mm256_set1_ps(list[i].value),
                              _mm256_maskload_ps(from + list[i].at, mask), sum);
    _mm256_maskstore_ps(to, mask, sum);
}

typedef void sum_run(const struct entry *list, uint32_t count, const float *from, float *to);
#define SUM_RUN(vectors)                                                                           \
    STK_AVX2 static void sum_##vectors(const struct entry *list, uint32_t count,                   \
                                       const float *from, float *to)                               \
    {                                                                                              \
        sum_entries(list, count, from, to, vectors);                                               \
    }
SUM_RUN(1)
SUM_RUN(2)
SUM_RUN(3)
SUM_RUN(4)
SUM_RUN(5)
SUM_RUN(6)
SUM_RUN(7)
SUM_RUN(8)
SUM_RUN(9)
SUM_RUN(10)
SUM_RUN(11)
SUM_RUN(12)
static sum_run *const sum_runs[VECTORS_MAX] = { sum_1, sum_2, sum_3, sum_4,  sum_5,  sum_6,
                                                sum_7, sum_8, sum_9, sum_10, sum_11, sum_12 };

/* to[0..floats) += over the list, in pieces that fit the registers. */
static void sum_list(const struct entry *list, uint32_t count, const float *from, float *to,
                     uint64_t floats)
{
    uint64_t at = 0;
    while (floats - at >= STK_LANES) {
        const uint64_t left = (floats - at) / STK_LANES;
        const uint64_t vectors = left < VECTORS_MAX ? left : VECTORS_MAX;
        sum_runs[vectors - 1](list, count, from + at, to + at);
        at += vectors * STK_LANES;
    }
    if (at < floats)
        sum_tail(list, count, from + at, to + at, floats - at);
}

/* dy of one pixel as a list of filters; returns its length. */
STK_AVX2 static uint32_t list_filters(const struct stk_conv_sizes *size, const float *dy,
                                      struct entry *list)
{
    const uint32_t filter_floats = size->kernel_h * size->run;
    uint32_t count = 0;
    for (uint32_t first = 0; first < size->filters; first += STK_LANES)
        for (unsigned bits = nonzero_lanes(dy + first, size->filters - first); bits != 0;
             bits &= bits - 1) {
            const uint32_t filter = first + (uint32_t)__builtin_ctz(bits);
            list[count++] = (struct entry){ filter * filter_floats, dy[filter] };
        }
    return count;
}

/* Start of the input of output pixel `pixel`. */
static uint64_t reads_at(const struct stk_conv_sizes *size, uint32_t pixel)
{
    const uint64_t row = (uint64_t)(pixel / size->out_w) * size->stride_h;
    const uint64_t column = (uint64_t)(pixel % size->out_w) * size->stride_w;
    return (row * size->w + column) * size->c;
}

/* Kernel rows in the outer loop, so that one row of all filters stays in the L1 cache. */
void stk_avx2_conv_backward_data(const struct stk_conv_sizes *size, const float *dy,
                                 const float *weights, float *dx, void *scratch)
{
    const uint32_t pixels = pixels_of(size);
    uint32_t *lengths = scratch; /* at most `filters` entries a pixel, so pixels x filters fit */
    struct entry *lists = (struct entry *)(void *)(lengths + round_to_lanes(pixels));
    struct entry *end = lists;
    for (uint32_t pixel = 0; pixel < pixels; pixel++) {
        lengths[pixel] = list_filters(size, dy + (uint64_t)pixel * size->filters, end);
        end += lengths[pixel];
    }
    memset(dx, 0, size->h * row_floats(size) * sizeof(float));
    for (uint32_t r = 0; r < size->kernel_h; r++) {
        const struct entry *list = lists;
        for (uint32_t pixel = 0; pixel < pixels; list += lengths[pixel++])
            if (lengths[pixel] > 0)
                sum_list(list, lengths[pixel], weights + (uint64_t)r * size->run,
                         dx + reads_at(size, pixel) + r * row_floats(size), size->run);
    }
}

/* dy of one sample as a list of pixels for each filter. */
STK_AVX2 static void list_pixels(const struct stk_conv_sizes *size, const float *dy,
                                 struct entry *lists, uint32_t *lengths)
{
    const uint32_t pixels = pixels_of(size);
    memset(lengths, 0, size->filters * sizeof(*lengths));
    for (uint32_t pixel = 0; pixel < pixels; pixel++, dy += size->filters) {
        const uint32_t at = (uint32_t)reads_at(size, pixel);
        for (uint32_t first = 0; first < size->filters; first += STK_LANES)
            for (unsigned bits = nonzero_lanes(dy + first, size->filters - first); bits != 0;
                 bits &= bits - 1) {
                const uint32_t filter = first + (uint32_t)__builtin_ctz(bits);
                lists[(uint64_t)filter * pixels + lengths[filter]++] =
                    (struct entry){ at, dy[filter] };
            }
    }
}

static float sum_values(const struct entry *list, uint32_t count)
{
    float sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += list[i].value;
    return sum;
}

static void weights_by_list(const struct stk_conv_sizes *size, const float *x, const float *dy,
                            float *weight_grad, float *bias_grad, void *scratch)
{
    uint32_t *lengths = scratch;
    struct entry *lists = (struct entry *)(void *)(lengths + round_to_lanes(size->filters));
    list_pixels(size, dy, lists, lengths);
    for (uint32_t filter = 0; filter < size->filters; filter++) {
        const struct entry *list = lists + (uint64_t)filter * pixels_of(size);
        float *to = weight_grad + (uint64_t)filter * size->kernel_h * size->run;
        for (uint32_t r = 0; r < size->kernel_h; r++)
            sum_list(list, lengths[filter], x + r * row_floats(size), to + (uint64_t)r * size->run,
                     size->run);
        if (bias_grad != NULL)
            bias_grad[filter] += sum_values(list, lengths[filter]);
    }
}

/* Six taps (kernel row, place in its run) x up to 16 filters: sums over all pixels of
 * x[pixel + tap] * dy[pixel][filter], written to to[tap][...]. */
STK_AVX2_INLINE void sum_taps(const struct stk_conv_sizes *size, const float *const *x,
                              const float *dy, float *const *to, uint32_t lanes, const int vectors)
{
    __m256 sums[TAPS][2];
    const __m256i last = stk_first_lanes(lanes - (uint32_t)(vectors - 1) * STK_LANES);
    STK_UNROLL
    for (int tap = 0; tap < TAPS; tap++)
        STK_UNROLL
    for (int v = 0; v < vectors; v++)
        sums[tap][v] = _mm256_setzero_ps();
    for (uint32_t oh = 0; oh < size->out_h; oh++) {
        uint64_t at = (uint64_t)oh * size->stride_h * row_floats(size);
        for (uint32_t ow = 0; ow < size->out_w; ow++, at += (uint64_t)size->stride_w * size->c) {
            __m256 filters[2];
            STK_UNROLL
            for (int v = 0; v < vectors; v++)
                filters[v] = v + 1 < vectors ? _mm256_loadu_ps(dy + v * STK_LANES)
                                             : _mm256_maskload_ps(dy + v * STK_LANES, last);
            dy += size->filters;
            STK_UNROLL
            for (int tap = 0; tap < TAPS; tap++) {
                const __m256 value = _mm256_broadcast_ss(x[tap] + at);
                STK_UNROLL
                for (int v = 0; v < vectors; v++)
                    sums[tap][v] = _mm256_fmadd_ps(value, filters[v], sums[tap][v]);
            }
        }
    }
    STK_UNROLL
    for (int tap = 0; tap < TAPS; tap++)
        STK_UNROLL
    for (int v = 0; v < vectors; v++)
        _mm256_storeu_ps(to[tap] + v * STK_LANES, sums[tap][v]);
}

STK_AVX2 static void sum_taps_8(const struct stk_conv_sizes *size, const float *const *x,
                                const float *dy, float *const *to, uint32_t lanes)
{
    sum_taps(size, x, dy, to, lanes, 1);
}

STK_AVX2 static void sum_taps_16(const struct stk_conv_sizes *size, const float *const *x,
                                 const float *dy, float *const *to, uint32_t lanes)
{
    sum_taps(size, x, dy, to, lanes, 2);
}

/* Taps [first, first + 6) of all filters; the pointers of taps that do not exist repeat the last.
 * */
static void taps_of_filters(const struct stk_conv_sizes *size, const float *x, const float *dy,
                            uint64_t first, float *sums)
{
    const uint64_t taps = (uint64_t)size->kernel_h * size->run;
    const uint64_t width = round_to_lanes(size->filters);
    const float *from[TAPS];
    float *to[TAPS];
    for (uint64_t i = 0; i < TAPS; i++) {
        const uint64_t tap = first + i < taps ? first + i : taps - 1;
        from[i] = x + tap / size->run * row_floats(size) + tap % size->run;
        to[i] = sums + tap * width;
    }
    for (uint32_t filter = 0; filter < size->filters; filter += 2 * STK_LANES) {
        const uint32_t left = size->filters - filter;
        if (left > STK_LANES)
            sum_taps_16(size, from, dy + filter, to, left < 16 ? left : 16);
        else
            sum_taps_8(size, from, dy + filter, to, left);
        for (int i = 0; i < TAPS; i++)
            to[i] += 2 * STK_LANES;
    }
}

static void weights_by_taps(const struct stk_conv_sizes *size, const float *x, const float *dy,
                            float *weight_grad, float *bias_grad, void *scratch)
{
    const uint64_t taps = (uint64_t)size->kernel_h * size->run;
    const uint64_t width = round_to_lanes(size->filters);
    float *sums = scratch;
    for (uint64_t tap = 0; tap < taps; tap += TAPS)
        taps_of_filters(size, x, dy, tap, sums);
    for (uint32_t filter = 0; filter < size->filters; filter++)
        for (uint64_t tap = 0; tap < taps; tap++)
            weight_grad[filter * taps + tap] += sums[tap * width + filter];
    if (bias_grad == NULL)
        return;
    memset(sums, 0, width * sizeof(float)); /* no longer needed: reused for the sums of the bias */
    for (uint32_t pixel = 0; pixel < pixels_of(size); pixel++, dy += size->filters)
        for (uint32_t filter = 0; filter < size->filters; filter++)
            sums[filter] += dy[filter];
    for (uint32_t filter = 0; filter < size->filters; filter++)
        bias_grad[filter] += sums[filter];
}

void stk_avx2_conv_backward_weights(const struct stk_conv_sizes *size, const float *x,
                                    const float *dy, float *weight_grad, float *bias_grad,
                                    void *scratch)
{
    if (has_short_runs(size))
        weights_by_taps(size, x, dy, weight_grad, bias_grad, scratch);
    else
        weights_by_list(size, x, dy, weight_grad, bias_grad, scratch);
}
#endif
