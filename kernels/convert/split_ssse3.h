/* split_ssse3.h - splits sixteen pixels of three or four bytes into planes.
 *
 *   r g b r g b r g b ...        r r r r ...
 *   48 bytes in 3 registers  ->  g g g g ...   pixel p of channel c is byte 3p + c,
 *                                b b b b ...   in register (3p + c) / 16 at (3p + c) % 16
 *
 * As 16 % 3 = 1, each position holds a different channel in each register: blending the
 * three collects a channel without a clash, and one shuffle puts it in order.
 */
#ifndef STK_KERNELS_CONVERT_SPLIT_SSSE3_H
#define STK_KERNELS_CONVERT_SPLIT_SSSE3_H

#include <immintrin.h>
#include <stddef.h>

enum { SPLIT_PIXELS = 16 };

static inline __m128i split_load(const unsigned char *at)
{
    return _mm_loadu_si128((const __m128i_u *)at);
}

static inline void split_store(unsigned char *at, __m128i v)
{
    _mm_storeu_si128((__m128i_u *)at, v);
}

static inline void split_3_bytes(unsigned char *planes, size_t plane_bytes, const unsigned char *in)
{
    const __m128i first = _mm_setr_epi8(-1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1);
    const __m128i second = _mm_setr_epi8(0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0);
    const __m128i third = _mm_setr_epi8(0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0);
    const __m128i order0 = _mm_setr_epi8(0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14, 1, 4, 7, 10, 13);
    const __m128i order1 = _mm_setr_epi8(1, 4, 7, 10, 13, 0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14);
    const __m128i order2 = _mm_setr_epi8(2, 5, 8, 11, 14, 1, 4, 7, 10, 13, 0, 3, 6, 9, 12, 15);

    __m128i a = split_load(in), b = split_load(in + 16), c = split_load(in + 32);
    __m128i plane0 = _mm_blendv_epi8(_mm_blendv_epi8(c, b, third), a, first);
    __m128i plane1 = _mm_blendv_epi8(_mm_blendv_epi8(c, b, first), a, second);
    __m128i plane2 = _mm_blendv_epi8(_mm_blendv_epi8(c, b, second), a, third);
    split_store(planes, _mm_shuffle_epi8(plane0, order0));
    split_store(planes + plane_bytes, _mm_shuffle_epi8(plane1, order1));
    split_store(planes + 2 * plane_bytes, _mm_shuffle_epi8(plane2, order2));
}

/* Orders each register as rrrr gggg bbbb aaaa, then transposes 4 x 4 words. */
static inline void split_4_bytes(unsigned char *planes, size_t plane_bytes, const unsigned char *in)
{
    const __m128i order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m128i a = _mm_shuffle_epi8(split_load(in), order);
    __m128i b = _mm_shuffle_epi8(split_load(in + 16), order);
    __m128i c = _mm_shuffle_epi8(split_load(in + 32), order);
    __m128i d = _mm_shuffle_epi8(split_load(in + 48), order);
    __m128i ab_low = _mm_unpacklo_epi32(a, b), ab_high = _mm_unpackhi_epi32(a, b);
    __m128i cd_low = _mm_unpacklo_epi32(c, d), cd_high = _mm_unpackhi_epi32(c, d);
    split_store(planes, _mm_unpacklo_epi64(ab_low, cd_low));
    split_store(planes + plane_bytes, _mm_unpackhi_epi64(ab_low, cd_low));
    split_store(planes + 2 * plane_bytes, _mm_unpacklo_epi64(ab_high, cd_high));
    split_store(planes + 3 * plane_bytes, _mm_unpackhi_epi64(ab_high, cd_high));
}

#endif
