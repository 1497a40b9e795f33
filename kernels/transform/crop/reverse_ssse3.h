/* reverse_ssse3.h - reverses sixteen pixels of 1, 3 or 4 bytes.
 *
 *   3 bytes:  p0 p1 ... p15  in registers a b c   ->   p15 p14 ... p0
 *
 *   Of the first 16 output bytes 15 come from c and one from b, of the last 16 one from b and 15
 *   from a; the middle ones come from all three. One shuffle per source puts them in order.
 */
#ifndef STK_KERNELS_TRANSFORM_REVERSE_SSSE3_H
#define STK_KERNELS_TRANSFORM_REVERSE_SSSE3_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

enum { REVERSE_PIXELS = 16 };

static inline __m128i reverse_load(const uint8_t *at)
{
    return _mm_loadu_si128((const __m128i_u *)at);
}

static inline void reverse_store(uint8_t *at, __m128i v)
{
    _mm_storeu_si128((__m128i_u *)at, v);
}

static inline void reverse_16_of_1(const uint8_t *in, uint8_t *out)
{
    const __m128i order = _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    reverse_store(out, _mm_shuffle_epi8(reverse_load(in), order));
}

static inline void reverse_16_of_4(const uint8_t *in, uint8_t *out)
{
    for (size_t i = 0; i < 4; i++)
        reverse_store(out + 48 - 16 * i,
                      _mm_shuffle_epi32(reverse_load(in + 16 * i), _MM_SHUFFLE(0, 1, 2, 3)));
}

static inline void reverse_16_of_3(const uint8_t *in, uint8_t *out)
{
    const char x = -1;
    const __m128i a = reverse_load(in), b = reverse_load(in + 16), c = reverse_load(in + 32);
    const __m128i first_c = _mm_setr_epi8(13, 14, 15, 10, 11, 12, 7, 8, 9, 4, 5, 6, 1, 2, 3, x);
    const __m128i first_b = _mm_setr_epi8(x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, 14);
    const __m128i mid_c = _mm_setr_epi8(x, 0, x, x, x, x, x, x, x, x, x, x, x, x, x, x);
    const __m128i mid_b = _mm_setr_epi8(15, x, 11, 12, 13, 8, 9, 10, 5, 6, 7, 2, 3, 4, x, 0);
    const __m128i mid_a = _mm_setr_epi8(x, x, x, x, x, x, x, x, x, x, x, x, x, x, 15, x);
    const __m128i last_b = _mm_setr_epi8(1, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x);
    const __m128i last_a = _mm_setr_epi8(x, 12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2);
    const __m128i middle = _mm_or_si128(_mm_shuffle_epi8(c, mid_c), _mm_shuffle_epi8(a, mid_a));
    reverse_store(out, _mm_or_si128(_mm_shuffle_epi8(c, first_c), _mm_shuffle_epi8(b, first_b)));
    reverse_store(out + 16, _mm_or_si128(middle, _mm_shuffle_epi8(b, mid_b)));
    reverse_store(out + 32, _mm_or_si128(_mm_shuffle_epi8(b, last_b), _mm_shuffle_epi8(a, last_a)));
}

#endif
