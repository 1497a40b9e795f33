/* unfilter_sse41.c - see unfilter.h: SSE4.1, for pixels of 1, 3 and 4 bytes.
 *
 * Each pixel waits for the one to its left, so what counts is the number of steps from one pixel
 * to the next, and how many rows go side by side. Two Paeth rows are undone together, the
 * lower one pixel behind, in the two halves of a register:
 *
 *   upper row   . . . c b x        lanes 0..3   a = left, b and c from the row above
 *   lower row   . . c b x          lanes 4..7   b and c are what the upper row has just made
 *
 * A pixel of 3 bytes is loaded and stored as 4, except the last of a row: the byte behind it
 * belongs to the next row, or to nobody.
 */
#include "loader/codec/png/unfilter.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#include "loader/base/cpu/cpu_features.h"
#include "loader/codec/png/paeth.h"

#define SSE41        __attribute__((target("sse4.1")))
#define SSE41_INLINE static inline __attribute__((target("sse4.1"), always_inline))

SSE41_INLINE __m128i load_16(const uint8_t *at)
{
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

SSE41_INLINE __m128i load_pixel(const uint8_t *at)
{
    int32_t four;
    memcpy(&four, at, sizeof(four));
    return _mm_cvtsi32_si128(four);
}

/* Four bytes as four 16-bit lanes. */
SSE41_INLINE __m128i load_wide(const uint8_t *at)
{
    return _mm_cvtepu8_epi16(load_pixel(at));
}

SSE41_INLINE void store_pixel(uint8_t *at, __m128i pixel, size_t bytes)
{
    const int32_t four = _mm_cvtsi128_si32(pixel);
    memcpy(at, &four, bytes);
}

SSE41_INLINE void store_wide(uint8_t *at, __m128i lanes, size_t bytes)
{
    store_pixel(at, _mm_packus_epi16(lanes, lanes), bytes);
}

/* The predictor of paeth.h in 16-bit lanes; `outer` is 3c - b, known before a is. */
SSE41_INLINE __m128i paeth(__m128i a, __m128i b, __m128i c, __m128i outer)
{
    const __m128i threshold = _mm_sub_epi16(outer, a);
    const __m128i lo = _mm_min_epi16(a, b);
    const __m128i hi = _mm_max_epi16(a, b);
    const __m128i inner = _mm_blendv_epi8(lo, c, _mm_cmpgt_epi16(hi, threshold));
    return _mm_blendv_epi8(hi, inner, _mm_cmpgt_epi16(threshold, lo));
}

SSE41_INLINE __m128i outer_of(__m128i b, __m128i c)
{
    return _mm_sub_epi16(_mm_add_epi16(c, _mm_add_epi16(c, c)), b);
}

/* ---- one row of pixels of `step` bytes, 3 or 4 ---- */

SSE41_INLINE void undo_sub(const uint8_t *from, uint8_t *out, size_t stride, size_t step)
{
    __m128i a = _mm_setzero_si128();
    size_t i = 0;
    for (; i + step < stride; i += step) {
        a = _mm_add_epi8(a, load_pixel(from + i));
        store_pixel(out + i, a, 4);
    }
    store_pixel(out + i, _mm_add_epi8(a, load_pixel(from + i)), step);
}

/* pavgb rounds up and the filter rounds down, but of complements it is the other way round:
 * floor((a + b) / 2) = ~pavgb(~a, ~b). So a is kept as ~a, and from one pixel to the next there
 * are two steps: ~(x + average) = pavgb(~a, ~b) - x. */
SSE41_INLINE __m128i average_step(__m128i not_a, const uint8_t *above, const uint8_t *from)
{
    const __m128i not_b = _mm_xor_si128(load_pixel(above), _mm_set1_epi8(-1));
    return _mm_sub_epi8(_mm_avg_epu8(not_a, not_b), load_pixel(from));
}

SSE41_INLINE void undo_average(const uint8_t *from, const uint8_t *above, uint8_t *out,
                               size_t stride, size_t step)
{
    const __m128i ones = _mm_set1_epi8(-1);
    __m128i not_a = ones;
    size_t i = 0;
    for (; i + step < stride; i += step) {
        not_a = average_step(not_a, above + i, from + i);
        store_pixel(out + i, _mm_xor_si128(not_a, ones), 4);
    }
    not_a = average_step(not_a, above + i, from + i);
    store_pixel(out + i, _mm_xor_si128(not_a, ones), step);
}

SSE41_INLINE void undo_paeth(const uint8_t *from, const uint8_t *above, uint8_t *out, size_t stride,
                             size_t step)
{
    __m128i a = _mm_setzero_si128();
    __m128i c = a;
    size_t i = 0;
    for (; i < stride; i += step) {
        const __m128i b = load_wide(above + i);
        a = _mm_add_epi8(paeth(a, b, c, outer_of(b, c)), load_wide(from + i));
        c = b;
        store_wide(out + i, a, i + step < stride ? 4 : step);
    }
}

/* ---- two Paeth rows ---- */

struct pair {
    __m128i a; /* what was made last: the upper row's pixel, the lower row's one before it */
    __m128i c; /* what stood above them */
};

/* Make the upper row's next pixel from the row above it, and the lower row's from what
 * the upper row made last; x holds the filtered bytes of both. */
SSE41_INLINE void pair_step(struct pair *pair, __m128i above, __m128i x)
{
    const __m128i b = _mm_unpacklo_epi64(above, pair->a);
    const __m128i predicted = paeth(pair->a, b, pair->c, outer_of(b, pair->c));
    pair->a = _mm_add_epi8(predicted, x);
    pair->c = b;
}

SSE41_INLINE __m128i load_two(const uint8_t *upper, const uint8_t *lower)
{
    return _mm_cvtepu8_epi16(_mm_unpacklo_epi32(load_pixel(upper), load_pixel(lower)));
}

SSE41_INLINE void store_upper(uint8_t *at, const struct pair *pair, size_t bytes)
{
    store_wide(at, pair->a, bytes);
}

SSE41_INLINE void store_lower(uint8_t *at, const struct pair *pair, size_t bytes)
{
    store_wide(at, _mm_srli_si128(pair->a, 8), bytes);
}

SSE41_INLINE void undo_paeth_pair(const uint8_t *from, const uint8_t *above, uint8_t *out,
                                  size_t stride, size_t step)
{
    const uint8_t *from_lower = from + stride + 1; /* 1: its filter type */
    uint8_t *out_lower = out + stride;
    const size_t last = stride - step;
    struct pair pair = { _mm_setzero_si128(), _mm_setzero_si128() };

    pair_step(&pair, load_wide(above), load_wide(from)); /* the lower row has not begun: 0 */
    store_upper(out, &pair, step);
    for (size_t i = step; i < last; i += step) {
        pair_step(&pair, load_wide(above + i), load_two(from + i, from_lower + i - step));
        store_upper(out + i, &pair, 4);
        store_lower(out_lower + i - step, &pair, 4);
    }
    if (last > 0) {
        pair_step(&pair, load_wide(above + last), load_two(from + last, from_lower + last - step));
        store_upper(out + last, &pair, step);
        store_lower(out_lower + last - step, &pair, 4);
    }
    pair_step(&pair, pair.a, load_two(from, from_lower + last)); /* the upper row is done */
    store_lower(out_lower + last, &pair, step);
}

/* ---- gray ---- */

/* Running sums in 16 bytes at a time: each byte plus the one, two, four, eight before it. */
SSE41_INLINE void undo_sub_gray(const uint8_t *from, uint8_t *out, size_t stride)
{
    __m128i a = _mm_setzero_si128(); /* the last byte made, in all places */
    size_t i = 0;
    for (; i + 16 <= stride; i += 16) {
        __m128i x = load_16(from + i);
        x = _mm_add_epi8(x, _mm_slli_si128(x, 1));
        x = _mm_add_epi8(x, _mm_slli_si128(x, 2));
        x = _mm_add_epi8(x, _mm_slli_si128(x, 4));
        x = _mm_add_epi8(_mm_add_epi8(x, _mm_slli_si128(x, 8)), a);
        _mm_storeu_si128((__m128i *)(void *)(out + i), x);
        a = _mm_shuffle_epi8(x, _mm_set1_epi8(15));
    }
    uint8_t left = (uint8_t)_mm_cvtsi128_si32(a);
    for (; i < stride; i++)
        out[i] = left = (uint8_t)(from[i] + left);
}

static void undo_average_gray(const uint8_t *from, const uint8_t *above, uint8_t *out,
                              size_t stride)
{
    unsigned left = 0;
    for (size_t i = 0; i < stride; i++)
        out[i] = (uint8_t)(left = (from[i] + (left + above[i]) / 2) & 0xFF);
}

/* The same as undo_paeth_pair: two chains of single bytes that do not wait for each other. */
static void undo_paeth_gray_pair(const uint8_t *from, const uint8_t *above, uint8_t *out,
                                 size_t stride)
{
    const uint8_t *from_lower = from + stride + 1;
    uint8_t *out_lower = out + stride;
    int upper = (from[0] + above[0]) & 0xFF;
    int upper_before = 0;
    int lower = 0;
    out[0] = (uint8_t)upper;
    for (size_t i = 1; i < stride; i++) {
        lower = (from_lower[i - 1] + stk_png_paeth(lower, upper, upper_before)) & 0xFF;
        upper_before = upper;
        upper = (from[i] + stk_png_paeth(upper, above[i], above[i - 1])) & 0xFF;
        out[i] = (uint8_t)upper;
        out_lower[i - 1] = (uint8_t)lower;
    }
    out_lower[stride - 1] =
        (uint8_t)(from_lower[stride - 1] + stk_png_paeth(lower, upper, upper_before));
}

static void undo_paeth_gray(const uint8_t *from, const uint8_t *above, uint8_t *out, size_t stride)
{
    int a = 0;
    int c = 0;
    for (size_t i = 0; i < stride; i++) {
        const int b = above[i];
        a = (from[i] + stk_png_paeth(a, b, c)) & 0xFF;
        c = b;
        out[i] = (uint8_t)a;
    }
}

/* ---- the image ---- */

SSE41_INLINE void undo_up(const uint8_t *from, const uint8_t *above, uint8_t *out, size_t stride)
{
    if (stride < 16) {
        for (size_t i = 0; i < stride; i++)
            out[i] = (uint8_t)(from[i] + above[i]);
        return;
    }
    for (size_t i = 0; i < stride; i += 16) {
        const size_t at = i + 16 <= stride ? i : stride - 16; /* the last ones may be done twice */
        _mm_storeu_si128((__m128i *)(void *)(out + at),
                         _mm_add_epi8(load_16(from + at), load_16(above + at)));
    }
}

/* Undo the row or rows that begin at `from`. Returns how many; 0 = no such filter. */
SSE41_INLINE uint32_t undo_rows(const struct stk_png_filtered *image, const uint8_t *from,
                                const uint8_t *above, uint8_t *out, bool more, size_t step)
{
    const size_t stride = image->stride;
    switch (*from++) {
    case STK_PNG_NONE:
        memcpy(out, from, stride);
        return 1;
    case STK_PNG_SUB:
        step == 1 ? undo_sub_gray(from, out, stride) : undo_sub(from, out, stride, step);
        return 1;
    case STK_PNG_UP:
        undo_up(from, above, out, stride);
        return 1;
    case STK_PNG_AVERAGE:
        step == 1 ? undo_average_gray(from, above, out, stride)
                  : undo_average(from, above, out, stride, step);
        return 1;
    case STK_PNG_PAETH:
        if (more && from[stride] == STK_PNG_PAETH) {
            step == 1 ? undo_paeth_gray_pair(from, above, out, stride)
                      : undo_paeth_pair(from, above, out, stride, step);
            return 2;
        }
        step == 1 ? undo_paeth_gray(from, above, out, stride)
                  : undo_paeth(from, above, out, stride, step);
        return 1;
    default:
        return 0;
    }
}

SSE41_INLINE bool undo_all(const struct stk_png_filtered *image, uint8_t *out, size_t step)
{
    const uint8_t *from = image->bytes;
    const uint8_t *above = image->zeros;
    for (uint32_t y = 0; y < image->height;) {
        const uint32_t rows = undo_rows(image, from, above, out, y + 1 < image->height, step);
        if (rows == 0)
            return false;
        y += rows;
        from += rows * (image->stride + 1);
        out += rows * image->stride;
        above = out - image->stride;
    }
    return true;
}

/* One copy of everything for each pixel size. */
SSE41 static bool undo_sse41(const struct stk_png_filtered *image, uint8_t *out)
{
    switch (image->pixel_bytes) {
    case 1:
        return undo_all(image, out, 1);
    case 3:
        return undo_all(image, out, 3);
    default:
        return undo_all(image, out, 4);
    }
}

stk_png_unfilter_fn *stk_png_unfilter_sse41(void)
{
    return stk_cpu_has(STK_CPU_SSE41) ? undo_sse41 : NULL;
}

#else

stk_png_unfilter_fn *stk_png_unfilter_sse41(void)
{
    return NULL;
}

#endif
