/* draw_avx2.c - draws the words of frames, four rows at a time: stk_philox() (loader/base/rng.h) in
 * 64-bit lanes.
 *
 *   │ row 0: word c, rest │ row 1: word c, rest │ row 2 │ row 3 │    four of these, c = 0..3
 *
 * A product of two words uses only the low half of a lane; the high one is ignored.
 */
#include "kernels/transform/variants.h"

#include <immintrin.h>

enum { ROWS = 4, ROUNDS = 10 };

/* The keys of all rounds: the same for every row. */
struct keys {
    __m256i first[ROUNDS], second[ROUNDS];
};

static inline struct keys keys_of(uint64_t key)
{
    struct keys keys;
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < ROUNDS; round++, k0 += 0x9E3779B9U, k1 += 0xBB67AE85U) {
        keys.first[round] = _mm256_set1_epi32((int32_t)k0);
        keys.second[round] = _mm256_set1_epi32((int32_t)k1);
    }
    return keys;
}

static inline void draw_four(const struct keys *keys, uint64_t epoch, const uint64_t samples[ROWS],
                             struct stk_random words[ROWS])
{
    const __m256i even_factor = _mm256_set1_epi64x(0xD2511F53);
    const __m256i odd_factor = _mm256_set1_epi64x(0xCD9E8D57);
    __m256i c0 = _mm256_loadu_si256((const __m256i_u *)(const void *)samples);
    __m256i c1 = _mm256_srli_epi64(c0, 32);
    __m256i c2 = _mm256_set1_epi64x((long long)epoch);
    __m256i c3 = _mm256_srli_epi64(c2, 32);
#pragma GCC unroll 10
    for (int round = 0; round < ROUNDS; round++) {
        const __m256i even = _mm256_mul_epu32(c0, even_factor);
        const __m256i odd = _mm256_mul_epu32(c2, odd_factor);
        const __m256i c1_key = _mm256_xor_si256(c1, keys->first[round]);
        const __m256i c3_key = _mm256_xor_si256(c3, keys->second[round]);
        c0 = _mm256_xor_si256(_mm256_srli_epi64(odd, 32), c1_key);
        c1 = odd;
        c2 = _mm256_xor_si256(_mm256_srli_epi64(even, 32), c3_key);
        c3 = even;
    }
    /* Joins words 0 and 1 of each row in one vector, 2 and 3 in the other, then stores row by
     * row. */
    const __m256i first = _mm256_blend_epi32(c0, _mm256_slli_epi64(c1, 32), 0xaa);
    const __m256i second = _mm256_blend_epi32(c2, _mm256_slli_epi64(c3, 32), 0xaa);
    const __m256i rows_0_2 = _mm256_unpacklo_epi64(first, second);
    const __m256i rows_1_3 = _mm256_unpackhi_epi64(first, second);
    _mm256_storeu_si256((__m256i_u *)(void *)words[0].word,
                        _mm256_permute2x128_si256(rows_0_2, rows_1_3, 0x20));
    _mm256_storeu_si256((__m256i_u *)(void *)words[2].word,
                        _mm256_permute2x128_si256(rows_0_2, rows_1_3, 0x31));
}

void stk_draw_words_avx2(uint64_t key, uint64_t epoch, const uint64_t *samples, uint32_t count,
                         struct stk_random *words)
{
    const struct keys keys = keys_of(key);
    uint32_t k = 0;
    for (; k + ROWS <= count; k += ROWS)
        draw_four(&keys, epoch, samples + k, words + k);
    for (; k < count; k++)
        words[k] = stk_philox(key, epoch, samples[k]);
}
