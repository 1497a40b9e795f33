/* conv_stem.c - the gradient of the weights of a convolution with few input channels: filters in the lanes.
 *
 *   sums[tap][filter] += x[pixel + tap] * dy[pixel][filter]     over all pixels, two neighbours at a time
 *
 * A tap is one element of a filter: a kernel row and a place in its run. Rows of an odd number of pixels end with one
 * neighbour of zeros. */
#include "trainer/backend/cpu/bf16/conv_backward.h"

#ifdef STK_HAVE_BF16
#include "trainer/backend/cpu/bf16/lanes.h"

#include <string.h>

enum { TAPS = 9 };

static uint64_t taps_of(const struct stk_bf16_conv *size)
{
    return (uint64_t)size->kernel_h * size->run;
}

static uint64_t padded_filters(const struct stk_bf16_conv *size)
{
    return (size->filters + UINT64_C(31)) / STK_BF16_LANES * STK_BF16_LANES;
}

static uint64_t row_elements(const struct stk_bf16_conv *size)
{
    return (uint64_t)size->w * size->c;
}

/* Sums of each tap, then those of the bias. */
uint64_t stk_bf16_stem_scratch_bytes(const struct stk_bf16_conv *size)
{
    return (taps_of(size) + 1) * padded_filters(size) * sizeof(float);
}

/* Up to nine taps of 32 filters; the pointers of taps that do not exist repeat the last. */
struct part {
    const uint16_t *x[TAPS];
    float *to[TAPS];
    const uint16_t *dy; /* the first of the filters */
    __mmask32 filters;
};

/* x of two neighbouring pixels; of the second only if it exists. */
STK_BF16_INLINE __m512i pixels_at(const uint16_t *x, uint64_t step, const bool both)
{
    const uint32_t second = both ? (uint32_t)x[step] << 16 : 0;
    return _mm512_set1_epi32((int)(x[0] | second));
}

STK_BF16_INLINE void add_pixels(const struct part *part, const uint16_t *dy, uint64_t dy_step,
                                uint64_t at, uint64_t step, const bool both, __m512 sums[TAPS][2])
{
    const __m512i one = _mm512_maskz_loadu_epi16(part->filters, dy);
    const __m512i two =
        both ? _mm512_maskz_loadu_epi16(part->filters, dy + dy_step) : _mm512_setzero_si512();
    const __m512i low = _mm512_unpacklo_epi16(one, two);
    const __m512i high = _mm512_unpackhi_epi16(one, two);
    STK_BF16_UNROLL
    for (int tap = 0; tap < TAPS; tap++) {
        const __m512i x = pixels_at(part->x[tap] + at, step, both);
        sums[tap][0] = stk_bf16_dot(sums[tap][0], x, low);
        sums[tap][1] = stk_bf16_dot(sums[tap][1], x, high);
    }
}

STK_BF16 static void sum_part(const struct stk_bf16_conv *size, const struct part *part)
{
    const uint64_t step = (uint64_t)size->stride_w * size->c;
    const uint16_t *dy = part->dy;
    __m512 sums[TAPS][2];
    STK_BF16_UNROLL
    for (int tap = 0; tap < TAPS; tap++)
        sums[tap][0] = sums[tap][1] = _mm512_setzero_ps();
    for (uint32_t oh = 0; oh < size->out_h; oh++) {
        uint64_t at = (uint64_t)oh * size->stride_h * row_elements(size);
        for (uint32_t ow = 0; ow + 1 < size->out_w; ow += 2) {
            add_pixels(part, dy, size->filters, at, step, true, sums);
            at += 2 * step;
            dy += 2 * (uint64_t)size->filters;
        }
        if (size->out_w % 2 != 0) {
            add_pixels(part, dy, size->filters, at, step, false, sums);
            dy += size->filters;
        }
    }
    STK_BF16_UNROLL
    for (int tap = 0; tap < TAPS; tap++) {
        const struct stk_bf16_columns columns = stk_bf16_in_order(sums[tap][0], sums[tap][1]);
        _mm512_storeu_ps(part->to[tap], columns.first);
        _mm512_storeu_ps(part->to[tap] + STK_BF16_FLOATS, columns.last);
    }
}

/* Taps [first, first + 9) of all filters. */
static void sum_taps(const struct stk_bf16_conv *size, const uint16_t *x, const uint16_t *dy,
                     uint64_t first, float *sums)
{
    struct part part;
    for (uint64_t i = 0; i < TAPS; i++) {
        const uint64_t tap = first + i < taps_of(size) ? first + i : taps_of(size) - 1;
        part.x[i] = x + tap / size->run * row_elements(size) + tap % size->run;
        part.to[i] = sums + tap * padded_filters(size);
    }
    for (uint32_t filter = 0; filter < size->filters; filter += STK_BF16_LANES) {
        const uint32_t left = size->filters - filter;
        part.dy = dy + filter;
        part.filters = left >= STK_BF16_LANES ? 0xFFFFFFFF : (1U << left) - 1;
        sum_part(size, &part);
        for (int i = 0; i < TAPS; i++)
            part.to[i] += STK_BF16_LANES;
    }
}

STK_BF16 static void sum_bias(const struct stk_bf16_conv *size, const uint16_t *dy, float *sums)
{
    const uint32_t pixels = size->out_h * size->out_w;
    for (uint32_t filter = 0; filter < size->filters; filter += STK_BF16_FLOATS) {
        const __mmask16 lanes = stk_bf16_first_floats(size->filters - filter);
        __m512 sum = _mm512_setzero_ps();
        for (uint64_t pixel = 0; pixel < pixels; pixel++)
            sum = _mm512_add_ps(sum, stk_bf16_widen(_mm256_maskz_loadu_epi16(
                                         lanes, dy + pixel * size->filters + filter)));
        _mm512_storeu_ps(sums + filter, sum);
    }
}

void stk_bf16_stem_weights(const struct stk_bf16_conv *size, const uint16_t *x, const uint16_t *dy,
                           float *weight_grad, float *bias_grad, void *scratch)
{
    const uint64_t taps = taps_of(size);
    const uint64_t width = padded_filters(size);
    float *sums = scratch;
    for (uint64_t tap = 0; tap < taps; tap += TAPS)
        sum_taps(size, x, dy, tap, sums);
    for (uint32_t filter = 0; filter < size->filters; filter++)
        for (uint64_t tap = 0; tap < taps; tap++)
            weight_grad[filter * taps + tap] += sums[tap * width + filter];
    if (bias_grad == NULL)
        return;
    float *bias_sums = sums + taps * width;
    sum_bias(size, dy, bias_sums);
    for (uint32_t filter = 0; filter < size->filters; filter++)
        bias_grad[filter] += bias_sums[filter];
}
#endif
