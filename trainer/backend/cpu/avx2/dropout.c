/* dropout.c - dropout with eight Philox counters side by side; bit-equal to dropout.h. */
#include "trainer/backend/cpu/avx2/kernels.h"

#ifdef STK_HAVE_AVX2
#include "trainer/backend/cpu/avx2/lanes.h"

struct words {
    __m256i word[4];
};

/* Low and high halves of eight 32 x 32 bit products. */
STK_AVX2_INLINE void multiply(__m256i a, uint32_t factor, __m256i *high, __m256i *low)
{
    const __m256i b = _mm256_set1_epi32((int)factor);
    const __m256i even = _mm256_mul_epu32(a, b);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), b);
    *low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
    *high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
}

/* Counters first .. first + 7, which differ in their low 32 bits only. */
STK_AVX2_INLINE struct words draw(const struct stk_dropout *dropout, uint64_t first)
{
    uint32_t k0 = (uint32_t)dropout->key;
    uint32_t k1 = (uint32_t)(dropout->key >> 32);
    __m256i c0 = _mm256_add_epi32(_mm256_set1_epi32((int)(uint32_t)first),
                                  _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    __m256i c1 = _mm256_set1_epi32((int)(uint32_t)(first >> 32));
    __m256i c2 = _mm256_set1_epi32((int)(uint32_t)dropout->counter_high);
    __m256i c3 = _mm256_set1_epi32((int)(uint32_t)(dropout->counter_high >> 32));
    for (int round = 0; round < 10; round++) {
        __m256i even_high, even_low, odd_high, odd_low;
        multiply(c0, 0xD2511F53U, &even_high, &even_low);
        multiply(c2, 0xCD9E8D57U, &odd_high, &odd_low);
        c0 = _mm256_xor_si256(_mm256_xor_si256(odd_high, c1), _mm256_set1_epi32((int)k0));
        c1 = odd_low;
        c2 = _mm256_xor_si256(_mm256_xor_si256(even_high, c3), _mm256_set1_epi32((int)k1));
        c3 = even_low;
        k0 += 0x9E3779B9U;
        k1 += 0xBB67AE85U;
    }
    return (struct words){ { c0, c1, c2, c3 } };
}

STK_AVX2_INLINE __m256 keep(const struct stk_dropout *dropout, __m256 values, __m256i bits)
{
    const __m256i below = _mm256_set1_epi32((int)dropout->dropped_below);
    const __m256 dropped = _mm256_castsi256_ps(_mm256_cmpgt_epi32(below, bits));
    return _mm256_andnot_ps(dropped, _mm256_mul_ps(values, _mm256_set1_ps(dropout->scale)));
}

STK_AVX2_INLINE __m256i half_of(const struct words *words, int half)
{
    const __m256i word = words->word[half / 2];
    return half % 2 == 0 ? _mm256_and_si256(word, _mm256_set1_epi32(0xFFFF))
                         : _mm256_srli_epi32(word, 16);
}

STK_AVX2 void stk_avx2_drop(const struct stk_dropout *dropout, float *to, const float *from,
                            uint64_t count)
{
    for (uint64_t at = 0; at < count; at += STK_DROPOUT_GROUP) {
        const struct words words = draw(dropout, at / STK_DROPOUT_GROUP * STK_DROPOUT_LANES);
        STK_UNROLL
        for (int half = 0; half < 8; half++) {
            const uint64_t first = at + (uint64_t)half * STK_LANES;
            if (first >= count)
                break;
            const uint64_t left = count - first;
            const __m256i mask = stk_first_lanes(left < STK_LANES ? left : STK_LANES);
            const __m256 values = _mm256_maskload_ps(from + first, mask);
            _mm256_maskstore_ps(to + first, mask, keep(dropout, values, half_of(&words, half)));
        }
    }
}
#endif
