/* resize_avx2.c - resampling with AVX2: two lines side by side, four taps at a time.
 *
 *   weight = high x 2048 + low, both below 2^12, so that pmaddwd multiplies and adds two taps:
 *
 *   sum = 2048 x (p0 high0 + p1 high1 + ...) + (p0 low0 + p1 low1 + ...)     exact, in 32 bits
 *
 * A register's lower half belongs to one line, its upper half to the other: they share weights.
 */
#include <immintrin.h>
#include <string.h>

#include "kernels/transform/resize/taps.h"
#include "kernels/transform/variants.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

static ALWAYS_INLINE __m128i load_16(const uint8_t *at)
{
    return _mm_loadu_si128((const __m128i_u *)at);
}

static ALWAYS_INLINE __m256i load_two(const uint8_t *a, const uint8_t *b)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(a)), load_16(b), 1);
}

/* Broadcasts two adjacent weights. */
static ALWAYS_INLINE __m256i two_weights(const int16_t *at)
{
    int32_t both;
    memcpy(&both, at, sizeof(both));
    return _mm256_set1_epi32(both);
}

/* 2048 high + low, rounded to 0..255 (or slightly above). */
static ALWAYS_INLINE __m256i settle_sums(__m256i high, __m256i low)
{
    const __m256i sum = _mm256_add_epi32(_mm256_slli_epi32(high, 11), low);
    return _mm256_srai_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(STK_TAP_HALF)), STK_TAP_BITS);
}

/* ---- along the line, 2 to 4 channels -------------------------------------------- */

/* Positions of the channels of two taps in four pixels, as pairs of 16-bit numbers. */
static ALWAYS_INLINE __m256i pair_places(uint32_t channels, uint32_t tap)
{
    int8_t place[16];
    for (uint32_t channel = 0; channel < 4; channel++) {
        const uint32_t at = tap * channels + channel;
        const bool there = channel < channels;
        place[4 * channel] = (int8_t)(there ? (int)at : -1);
        place[4 * channel + 1] = -1; /* a byte of 0 */
        place[4 * channel + 2] = (int8_t)(there ? (int)(at + channels) : -1);
        place[4 * channel + 3] = -1;
    }
    return _mm256_broadcastsi128_si256(load_16((const uint8_t *)place));
}

/* One pixel of both lines: its channels as four 32-bit numbers per line. */
static ALWAYS_INLINE __m256i pixel_of(const struct stk_axis *axis, uint32_t i, uint32_t channels,
                                      const uint8_t *const in[2], const __m256i places[2])
{
    const size_t at = (size_t)axis->first[i] * channels;
    const struct stk_tap_group *group = &axis->weights[(size_t)i * axis->groups];
    __m256i high = _mm256_setzero_si256(), low = _mm256_setzero_si256();
    for (uint32_t g = 0; g < axis->groups; g++, group++) {
        const size_t from = at + (size_t)g * 4 * channels;
        const __m256i four = load_two(in[0] + from, in[1] + from);
        const __m256i first = _mm256_shuffle_epi8(four, places[0]);
        const __m256i second = _mm256_shuffle_epi8(four, places[1]);
        high = _mm256_add_epi32(high, _mm256_madd_epi16(first, two_weights(group->high)));
        low = _mm256_add_epi32(low, _mm256_madd_epi16(first, two_weights(group->low)));
        high = _mm256_add_epi32(high, _mm256_madd_epi16(second, two_weights(group->high + 2)));
        low = _mm256_add_epi32(low, _mm256_madd_epi16(second, two_weights(group->low + 2)));
    }
    return settle_sums(high, low);
}

static ALWAYS_INLINE void store_two(uint8_t *const out[2], size_t at, __m256i bytes)
{
    _mm_storeu_si128((__m128i_u *)(out[0] + at), _mm256_castsi256_si128(bytes));
    _mm_storeu_si128((__m128i_u *)(out[1] + at), _mm256_extracti128_si256(bytes, 1));
}

/* Stores four pixels at once, in 16 bytes of which 4 x channels count: the next four overwrite the
 * rest, or it lies in the slack. */
static ALWAYS_INLINE void lines_of(const struct stk_axis *axis, const uint32_t channels,
                                   const uint8_t *const in[2], uint8_t *const out[2])
{
    const __m256i places[2] = { pair_places(channels, 0), pair_places(channels, 2) };
    const int8_t x = -1;
    const __m256i squeeze = _mm256_broadcastsi128_si256(
        channels == 4   ? _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
        : channels == 3 ? _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, x, x, x, x)
                        : _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, x, x, x, x, x, x, x, x));
    const uint32_t last = axis->count - 1;
    for (uint32_t i = 0; i < axis->count; i += 4) {
        __m256i pixel[4];
        for (uint32_t k = 0; k < 4; k++)
            pixel[k] = pixel_of(axis, i + k < last ? i + k : last, channels, in, places);
        const __m256i words = _mm256_packus_epi16(_mm256_packs_epi32(pixel[0], pixel[1]),
                                                  _mm256_packs_epi32(pixel[2], pixel[3]));
        store_two(out, (size_t)i * channels, _mm256_shuffle_epi8(words, squeeze));
    }
}

/* ---- along the line, 1 channel -------------------------------------------------- */

static ALWAYS_INLINE __m128i load_4(const uint8_t *at)
{
    int32_t four;
    memcpy(&four, at, sizeof(four));
    return _mm_cvtsi32_si128(four);
}

/* Four taps of four pixels, as 16-bit numbers: pixels 0 and 2 below, 1 and 3 above. */
static ALWAYS_INLINE __m256i four_times_four(const uint8_t *line, const uint32_t at[4])
{
    const __m128i below = _mm_unpacklo_epi32(load_4(line + at[0]), load_4(line + at[2]));
    const __m128i above = _mm_unpacklo_epi32(load_4(line + at[1]), load_4(line + at[3]));
    return _mm256_cvtepu8_epi16(_mm_unpacklo_epi64(below, above));
}

static ALWAYS_INLINE __m256i load_groups(const struct stk_tap_group *a,
                                         const struct stk_tap_group *b)
{
    return _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128((const __m128i_u *)(const void *)a)),
        _mm_loadu_si128((const __m128i_u *)(const void *)b), 1);
}

static ALWAYS_INLINE void gray_pixels(const struct stk_axis *axis, uint32_t i, const uint8_t *in,
                                      uint8_t *out)
{
    const uint32_t last = axis->count - 1;
    const struct stk_tap_group *group[4];
    uint32_t at[4];
    for (uint32_t k = 0; k < 4; k++) {
        const uint32_t pixel = i + k < last ? i + k : last;
        group[k] = &axis->weights[(size_t)pixel * axis->groups];
        at[k] = axis->first[pixel];
    }
    __m256i high = _mm256_setzero_si256(), low = _mm256_setzero_si256();
    for (uint32_t g = 0; g < axis->groups; g++) {
        const __m256i taps = four_times_four(in, at);
        const __m256i even = load_groups(group[0] + g, group[1] + g);
        const __m256i odd = load_groups(group[2] + g, group[3] + g);
        high = _mm256_add_epi32(high, _mm256_madd_epi16(taps, _mm256_unpacklo_epi64(even, odd)));
        low = _mm256_add_epi32(low, _mm256_madd_epi16(taps, _mm256_unpackhi_epi64(even, odd)));
        for (uint32_t k = 0; k < 4; k++)
            at[k] += 4;
    }
    const __m256i none = _mm256_setzero_si256();
    const __m256i value = settle_sums(_mm256_hadd_epi32(high, none), _mm256_hadd_epi32(low, none));
    /* 0 2 . . | 1 3 . . */
    const __m128i ordered =
        _mm_unpacklo_epi32(_mm256_castsi256_si128(value), _mm256_extracti128_si256(value, 1));
    const __m128i words = _mm_packs_epi32(ordered, ordered);
    const int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
    memcpy(out + i, &bytes, sizeof(bytes));
}

static void gray_line(const struct stk_axis *axis, const uint8_t *in, uint8_t *out)
{
    for (uint32_t i = 0; i < axis->count; i += 4)
        gray_pixels(axis, i, in, out);
}

void stk_resize_lines_avx2(const struct stk_axis *axis, uint32_t channels,
                           const uint8_t *const in[2], uint8_t *const out[2])
{
    if (channels == 3) {
        lines_of(axis, 3, in, out);
    } else if (channels == 4) {
        lines_of(axis, 4, in, out);
    } else if (channels == 2) {
        lines_of(axis, 2, in, out);
    } else {
        gray_line(axis, in[0], out[0]);
        if (in[1] != in[0])
            gray_line(axis, in[1], out[1]);
    }
}

/* ---- across the lines ----------------------------------------------------------- */

/* Makes 16 bytes of an output line from the same 16 of each line, two lines at a time. */
static ALWAYS_INLINE __m128i column_of(const struct stk_tap_group *weights, uint32_t taps,
                                       const uint8_t *const *lines, size_t at)
{
    __m256i high[2] = { _mm256_setzero_si256(), _mm256_setzero_si256() };
    __m256i low[2] = { _mm256_setzero_si256(), _mm256_setzero_si256() };
    for (uint32_t tap = 0; tap < taps; tap += 2) {
        const struct stk_tap_group *group = &weights[tap / 4];
        const __m256i high_weights = two_weights(&group->high[tap % 4]);
        const __m256i low_weights = two_weights(&group->low[tap % 4]);
        const __m128i a = load_16(lines[tap] + at);
        const __m128i b = load_16(lines[tap + 1 < taps ? tap + 1 : tap] + at);
        const __m256i left = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b));
        const __m256i right = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b));
        high[0] = _mm256_add_epi32(high[0], _mm256_madd_epi16(left, high_weights));
        high[1] = _mm256_add_epi32(high[1], _mm256_madd_epi16(right, high_weights));
        low[0] = _mm256_add_epi32(low[0], _mm256_madd_epi16(left, low_weights));
        low[1] = _mm256_add_epi32(low[1], _mm256_madd_epi16(right, low_weights));
    }
    const __m256i words = _mm256_permute4x64_epi64(
        _mm256_packs_epi32(settle_sums(high[0], low[0]), settle_sums(high[1], low[1])),
        _MM_SHUFFLE(3, 1, 2, 0));
    return _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

void stk_resize_column_avx2(const struct stk_tap_group *weights, uint32_t taps,
                            const uint8_t *const *lines, size_t bytes, uint8_t *out)
{
    size_t at = 0;
    for (; at + 16 <= bytes; at += 16)
        _mm_storeu_si128((__m128i_u *)(out + at), column_of(weights, taps, lines, at));
    if (at < bytes) { /* the ring's lines have slack, the output may have none */
        uint8_t tail[16];
        _mm_storeu_si128((__m128i_u *)tail, column_of(weights, taps, lines, at));
        memcpy(out + at, tail, bytes - at);
    }
}
