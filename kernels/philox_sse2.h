/* philox_sse2.h - the words of stk_philox() (loader/base/rng.h) for two counters at once.
 *
 *   lanes of 64 bits    │ row 0: word c, rest │ row 1: word c, rest │    four of these, c = 0..3
 *
 * A product of two words needs the low half of a lane alone, so what stands in the high one does not matter.
 */
#ifndef STK_KERNELS_PHILOX_SSE2_H
#define STK_KERNELS_PHILOX_SSE2_H

#include <immintrin.h>

#include "loader/base/rng.h"

/* words[i] = stk_philox(key, counter_high, counter_low[i]). */
static inline void philox_2(uint64_t key, uint64_t counter_high, const uint64_t counter_low[2],
                            struct stk_random words[2])
{
    const __m128i even_factor = _mm_set1_epi64x(0xD2511F53),
                  odd_factor = _mm_set1_epi64x(0xCD9E8D57);
    const __m128i low = _mm_set_epi32(0, -1, 0, -1);
    __m128i c0 = _mm_loadu_si128((const __m128i_u *)(const void *)counter_low);
    __m128i c1 = _mm_srli_epi64(c0, 32);
    __m128i c2 = _mm_set1_epi64x((long long)counter_high);
    __m128i c3 = _mm_srli_epi64(c2, 32);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < 10; round++) {
        const __m128i even = _mm_mul_epu32(c0, even_factor), odd = _mm_mul_epu32(c2, odd_factor);
        const __m128i c1_key = _mm_xor_si128(c1, _mm_set1_epi32((int32_t)k0));
        const __m128i c3_key = _mm_xor_si128(c3, _mm_set1_epi32((int32_t)k1));
        c0 = _mm_xor_si128(_mm_srli_epi64(odd, 32), c1_key);
        c1 = odd;
        c2 = _mm_xor_si128(_mm_srli_epi64(even, 32), c3_key);
        c3 = even;
        k0 += 0x9E3779B9U;
        k1 += 0xBB67AE85U;
    }
    const __m128i first = _mm_or_si128(_mm_and_si128(c0, low), _mm_slli_epi64(c1, 32));
    const __m128i second = _mm_or_si128(_mm_and_si128(c2, low), _mm_slli_epi64(c3, 32));
    _mm_storeu_si128((__m128i_u *)(void *)words[0].word, _mm_unpacklo_epi64(first, second));
    _mm_storeu_si128((__m128i_u *)(void *)words[1].word, _mm_unpackhi_epi64(first, second));
}

#endif
