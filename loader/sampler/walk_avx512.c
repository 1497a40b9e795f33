/* walk_avx512.c - the rounds with AVX-512 F: a block's four vectors of each half stay in registers through all of them.
 */
#if defined(__x86_64__)
#include <immintrin.h>

#include "loader/sampler/walk.h"

#define AVX512 __attribute__((target("avx512f")))

enum { LANES = 16, VECTORS = STK_SAMPLER_BLOCK / LANES };

/* high 32 bits of each lane of a times size */
AVX512 static inline __m512i multiply_high(__m512i a, __m512i size)
{
    const __m512i even = _mm512_srli_epi64(_mm512_mul_epu32(a, size), 32);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), size);
    return _mm512_mask_mov_epi32(even, (__mmask16)0xAAAA, odd);
}

/* One round on one half: to + round_value(half), modulo size. */
AVX512 static inline __m512i add_round(__m512i to, __m512i half, __m512i key, __m512i size)
{
    __m512i h = _mm512_mullo_epi32(_mm512_xor_si512(half, key), _mm512_set1_epi32((int)FIRST_MIX));
    h = _mm512_mullo_epi32(_mm512_xor_si512(h, _mm512_srli_epi32(h, 15)),
                           _mm512_set1_epi32((int)SECOND_MIX));
    const __m512i sum = _mm512_add_epi32(to, multiply_high(h, size));
    return _mm512_min_epu32(sum, _mm512_sub_epi32(sum, size));
}

/* Eight ids from eight lanes of each half; returns how many are past the end. */
AVX512 static inline uint32_t join_halves(__m256i left, __m256i right, __m512i width, __m512i last,
                                          uint64_t *ids)
{
    const __m512i id = _mm512_add_epi64(_mm512_mul_epu32(_mm512_cvtepu32_epi64(right), width),
                                        _mm512_cvtepu32_epi64(left));
    _mm512_storeu_si512((void *)ids, id);
    return (uint32_t)__builtin_popcount(_mm512_cmpgt_epi64_mask(id, last));
}

/* All rounds over a block, then its ids. */
AVX512 static inline __attribute__((always_inline)) uint32_t walk_vectors(
    const struct stk_sampler *sampler, const uint32_t *keys, __m512i *left, __m512i *right,
    uint64_t *ids)
{
    const __m512i width = _mm512_set1_epi32((int)sampler->width);
    const __m512i height = _mm512_set1_epi32((int)sampler->height);
    const __m512i last = _mm512_set1_epi64((int64_t)sampler->count - 1);
    for (uint32_t round = 0; round < sampler->rounds; round += 2) {
        const __m512i even = _mm512_set1_epi32((int)keys[round]);
        const __m512i odd = _mm512_set1_epi32((int)keys[round + 1]);
        for (int v = 0; v < VECTORS; v++)
            left[v] = add_round(left[v], right[v], even, width);
        for (int v = 0; v < VECTORS; v++)
            right[v] = add_round(right[v], left[v], odd, height);
    }
    uint32_t past = 0;
    for (int v = 0; v < VECTORS; v++) {
        uint64_t *to = ids + v * LANES;
        past += join_halves(_mm512_castsi512_si256(left[v]), _mm512_castsi512_si256(right[v]),
                            width, last, to);
        past += join_halves(_mm512_extracti64x4_epi64(left[v], 1),
                            _mm512_extracti64x4_epi64(right[v], 1), width, last, to + LANES / 2);
    }
    return past;
}

AVX512 static uint32_t walk_block_avx512(const struct stk_sampler *sampler, const uint32_t *keys,
                                         uint32_t *left, uint32_t *right, uint64_t *ids)
{
    __m512i l[VECTORS], r[VECTORS];
    for (int v = 0; v < VECTORS; v++) {
        l[v] = _mm512_loadu_si512((const void *)(left + v * LANES));
        r[v] = _mm512_loadu_si512((const void *)(right + v * LANES));
    }
    return walk_vectors(sampler, keys, l, r, ids);
}

AVX512 static uint32_t walk_neighbours_avx512(const struct stk_sampler *sampler,
                                              const uint32_t *keys, uint32_t left, uint32_t right,
                                              uint64_t *ids)
{
    const __m512i width = _mm512_set1_epi32((int)sampler->width);
    const __m512i here = _mm512_set1_epi32((int)right);
    const __m512i after = _mm512_set1_epi32((int)row_after(sampler, right));
    __m512i at =
        _mm512_add_epi32(_mm512_set1_epi32((int)left),
                         _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    __m512i l[VECTORS], r[VECTORS];
    for (int v = 0; v < VECTORS; v++) {
        l[v] = _mm512_min_epu32(at, _mm512_sub_epi32(at, width)); /* as in add_modulo */
        r[v] = _mm512_mask_mov_epi32(after, _mm512_cmpeq_epi32_mask(l[v], at), here);
        at = _mm512_add_epi32(at, _mm512_set1_epi32(LANES));
    }
    return walk_vectors(sampler, keys, l, r, ids);
}

const struct stk_walk stk_walk_avx512 = { walk_block_avx512, walk_neighbours_avx512 };

#else
typedef int stk_walk_avx512_is_not_built; /* C wants a declaration */
#endif
