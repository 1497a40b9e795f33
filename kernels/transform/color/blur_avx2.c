/* blur_avx2.c - sums of weighted lines, sixteen elements at once: pmaddwd multiplies and adds the
 * two taps at the same distance from the center.
 */
#include "kernels/transform/variants.h"

#include <immintrin.h>

enum { LANES = 16 };

static inline __m256i load(const int16_t *at)
{
    return _mm256_loadu_si256((const __m256i_u *)(const void *)at);
}

/* Sums of elements 0..3, 8..11 and 4..7, 12..15. */
struct sums {
    __m256i low, high;
};

static inline struct sums sum_lanes(const int16_t *const *lines, const int32_t *weights,
                                    uint32_t reach, size_t at)
{
    const __m256i center = load(lines[reach] + at), zero = _mm256_setzero_si256();
    const __m256i first = _mm256_set1_epi32(weights[0]); /* beside it: 0 */
    struct sums sums = { _mm256_madd_epi16(_mm256_unpacklo_epi16(center, zero), first),
                         _mm256_madd_epi16(_mm256_unpackhi_epi16(center, zero), first) };
    for (uint32_t tap = 1; tap <= reach; tap++) {
        const __m256i before = load(lines[reach - tap] + at), after = load(lines[reach + tap] + at);
        const __m256i weight = _mm256_set1_epi16((int16_t)weights[tap]);
        sums.low = _mm256_add_epi32(
            sums.low, _mm256_madd_epi16(_mm256_unpacklo_epi16(before, after), weight));
        sums.high = _mm256_add_epi32(
            sums.high, _mm256_madd_epi16(_mm256_unpackhi_epi16(before, after), weight));
    }
    return sums;
}

static inline __m256i shifted(struct sums sums, int half, int bits)
{
    const __m256i round = _mm256_set1_epi32(half);
    return _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(sums.low, round), bits),
                              _mm256_srai_epi32(_mm256_add_epi32(sums.high, round), bits));
}

static inline void store16(struct sums sums, int16_t *out)
{
    enum { BITS = STK_BLUR_BITS - STK_BLUR_KEPT };
    _mm256_storeu_si256((__m256i_u *)(void *)out, shifted(sums, 1 << (BITS - 1), BITS));
}

static inline void store8(struct sums sums, uint8_t *out)
{
    enum { BITS = STK_BLUR_BITS + STK_BLUR_KEPT };
    const __m256i words = shifted(sums, 1 << (BITS - 1), BITS);
    const __m128i bytes =
        _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128((__m128i_u *)(void *)out, bytes);
}

static void sum_one(const int16_t *const *lines, const int32_t *weights, uint32_t reach, size_t at,
                    int16_t *out16, uint8_t *out8)
{
    int32_t sum = weights[0] * lines[reach][at];
    for (uint32_t tap = 1; tap <= reach; tap++)
        sum += weights[tap] * (lines[reach - tap][at] + lines[reach + tap][at]);
    if (out8 != NULL)
        out8[at] = stk_blur_settle(sum);
    else
        out16[at] = (int16_t)stk_blur_keep(sum);
}

void stk_blur_avx2(const int16_t *const *lines, const int32_t *weights, uint32_t reach,
                   size_t count, int16_t *out16, uint8_t *out8)
{
    size_t at = 0;
    for (; at + LANES <= count; at += LANES) {
        const struct sums sums = sum_lanes(lines, weights, reach, at);
        if (out8 != NULL)
            store8(sums, out8 + at);
        else
            store16(sums, out16 + at);
    }
    for (; at < count; at++)
        sum_one(lines, weights, reach, at, out16, out8);
}
