/* walk_avx2.c - the rounds with AVX2 intrinsics: four vectors of each half stay in registers through all rounds, and
 * the high half of a product takes five operations; the compiler would widen and pack.
 */
#if defined(__x86_64__)
#include <immintrin.h>

#include "loader/sampler/walk.h"

#define AVX2 __attribute__((target("avx2")))

enum { LANES = 8, VECTORS = 4 };

/* high 32 bits of each lane of a times size */
AVX2 static inline __m256i multiply_high(__m256i a, __m256i size)
{
    const __m256i even = _mm256_srli_epi64(_mm256_mul_epu32(a, size), 32);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), size);
    return _mm256_blend_epi32(even, odd, 0xAA);
}

/* One round on one half: to + round_value(half), modulo size. */
AVX2 static inline __m256i add_round(__m256i to, __m256i half, __m256i key, __m256i size)
{
    __m256i h = _mm256_mullo_epi32(_mm256_xor_si256(half, key), _mm256_set1_epi32((int)FIRST_MIX));
    h = _mm256_mullo_epi32(_mm256_xor_si256(h, _mm256_srli_epi32(h, 15)),
                           _mm256_set1_epi32((int)SECOND_MIX));
    const __m256i sum = _mm256_add_epi32(to, multiply_high(h, size));
    return _mm256_min_epu32(sum, _mm256_sub_epi32(sum, size));
}

/* Four ids from four lanes of each half; lanes past the end are added to *past as -1. */
AVX2 static inline void join_halves(__m128i left, __m128i right, __m256i width, __m256i last,
                                    uint64_t *ids, __m256i *past)
{
    const __m256i id = _mm256_add_epi64(_mm256_mul_epu32(_mm256_cvtepu32_epi64(right), width),
                                        _mm256_cvtepu32_epi64(left));
    _mm256_storeu_si256((__m256i *)(void *)ids, id);
    *past = _mm256_add_epi64(*past, _mm256_cmpgt_epi64(id, last));
}

/* All rounds over VECTORS vectors of each half, then their ids. */
AVX2 static inline __attribute__((always_inline)) void walk_vectors(
    const struct stk_sampler *sampler, const uint32_t *keys, __m256i *left, __m256i *right,
    uint64_t *ids, __m256i *past)
{
    const __m256i width = _mm256_set1_epi32((int)sampler->width);
    const __m256i height = _mm256_set1_epi32((int)sampler->height);
    const __m256i last = _mm256_set1_epi64x((int64_t)sampler->count - 1);
    for (uint32_t round = 0; round < sampler->rounds; round += 2) {
        const __m256i even = _mm256_set1_epi32((int)keys[round]);
        const __m256i odd = _mm256_set1_epi32((int)keys[round + 1]);
        for (int v = 0; v < VECTORS; v++)
            left[v] = add_round(left[v], right[v], even, width);
        for (int v = 0; v < VECTORS; v++)
            right[v] = add_round(right[v], left[v], odd, height);
    }
    for (int v = 0; v < VECTORS; v++) {
        uint64_t *to = ids + v * LANES;
        join_halves(_mm256_castsi256_si128(left[v]), _mm256_castsi256_si128(right[v]), width, last,
                    to, past);
        join_halves(_mm256_extracti128_si256(left[v], 1), _mm256_extracti128_si256(right[v], 1),
                    width, last, to + LANES / 2, past);
    }
}

/* Returns the number of counted lanes: each is -1 in one of four sums. */
AVX2 static inline uint32_t count_past(__m256i past)
{
    int64_t counts[4];
    _mm256_storeu_si256((__m256i *)(void *)counts, past);
    return (uint32_t) - (counts[0] + counts[1] + counts[2] + counts[3]);
}

AVX2 static uint32_t walk_block_avx2(const struct stk_sampler *sampler, const uint32_t *keys,
                                     uint32_t *left, uint32_t *right, uint64_t *ids)
{
    __m256i past = _mm256_setzero_si256();
    for (int at = 0; at < STK_SAMPLER_BLOCK; at += LANES * VECTORS) {
        __m256i l[VECTORS], r[VECTORS];
        for (int v = 0; v < VECTORS; v++) {
            l[v] = _mm256_loadu_si256((const __m256i *)(const void *)(left + at + v * LANES));
            r[v] = _mm256_loadu_si256((const __m256i *)(const void *)(right + at + v * LANES));
        }
        walk_vectors(sampler, keys, l, r, ids + at, &past);
    }
    return count_past(past);
}

AVX2 static uint32_t walk_neighbours_avx2(const struct stk_sampler *sampler, const uint32_t *keys,
                                          uint32_t left, uint32_t right, uint64_t *ids)
{
    const __m256i width = _mm256_set1_epi32((int)sampler->width);
    const __m256i here = _mm256_set1_epi32((int)right);
    const __m256i after = _mm256_set1_epi32((int)row_after(sampler, right));
    __m256i at =
        _mm256_add_epi32(_mm256_set1_epi32((int)left), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    __m256i past = _mm256_setzero_si256();
    for (int first = 0; first < STK_SAMPLER_BLOCK; first += LANES * VECTORS) {
        __m256i l[VECTORS], r[VECTORS];
        for (int v = 0; v < VECTORS; v++) {
            l[v] = _mm256_min_epu32(at, _mm256_sub_epi32(at, width)); /* as in add_modulo */
            r[v] = _mm256_blendv_epi8(after, here, _mm256_cmpeq_epi32(l[v], at));
            at = _mm256_add_epi32(at, _mm256_set1_epi32(LANES));
        }
        walk_vectors(sampler, keys, l, r, ids + first, &past);
    }
    return count_past(past);
}

const struct stk_walk stk_walk_avx2 = { walk_block_avx2, walk_neighbours_avx2 };

#else
typedef int stk_walk_avx2_is_not_built; /* C wants a declaration */
#endif
