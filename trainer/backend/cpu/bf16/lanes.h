/* lanes.h - vectors of 32 bfloat16 and of 16 floats, and the attributes of functions that use them.
 *
 *   dot          sum[i] += a[2 i] b[2 i] + a[2 i + 1] b[2 i + 1]     the instruction of AVX512_BF16: 64 products
 *   interleave   two rows -> pairs of their elements, so that `dot` adds up over rows:
 *
 *     a0 .. a31, b0 .. b31  ->  low   a0 b0 .. a3 b3, a8 b8 .. a11 b11, a16 .., a24 ..
 *                               high  a4 b4 .. a7 b7, a12 ..,           a20 .., a28 ..
 *
 * The shuffle works on quarters of a vector, so sums come out in the order of `low` and `high`. stk_bf16_in_order()
 * restores that of the row. */
#ifndef STK_TRAINER_BACKEND_CPU_BF16_LANES_H
#define STK_TRAINER_BACKEND_CPU_BF16_LANES_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define STK_BF16_TARGET target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
#define STK_BF16        __attribute__((STK_BF16_TARGET))
/* For functions whose loop counts are constants of the caller, so that their arrays of sums become registers. */
#define STK_BF16_INLINE static inline __attribute__((always_inline, STK_BF16_TARGET))

#if defined(__clang__)
#define STK_BF16_UNROLL _Pragma("unroll")
#else
#define STK_BF16_UNROLL _Pragma("GCC unroll 32")
#endif

enum { STK_BF16_FLOATS = 16, STK_BF16_LANES = 32 };

/* Masks of the first `count` lanes: all of them if there are more. */
STK_BF16_INLINE __mmask16 stk_bf16_first_floats(uint64_t count)
{
    return count >= STK_BF16_FLOATS ? (__mmask16)0xFFFF : (__mmask16)((1U << count) - 1);
}

STK_BF16_INLINE __mmask32 stk_bf16_first_lanes(uint64_t count)
{
    return count >= STK_BF16_LANES ? (__mmask32)0xFFFFFFFF : (__mmask32)((1U << count) - 1);
}

/* Stores of some lanes. Whole vectors take a branch, since AMD's processors store under a mask many times slower. */
STK_BF16_INLINE void stk_bf16_store(uint16_t *to, __mmask32 lanes, __m512i values)
{
    if (lanes == 0xFFFFFFFF)
        _mm512_storeu_si512(to, values);
    else
        _mm512_mask_storeu_epi16(to, lanes, values);
}

STK_BF16_INLINE void stk_bf16_store_half(uint16_t *to, __mmask16 lanes, __m256i values)
{
    if (lanes == 0xFFFF)
        _mm256_storeu_si256((__m256i_u *)to, values);
    else
        _mm256_mask_storeu_epi16(to, lanes, values);
}

STK_BF16_INLINE void stk_bf16_store_floats(float *to, __mmask16 lanes, __m512 values)
{
    if (lanes == 0xFFFF)
        _mm512_storeu_ps(to, values);
    else
        _mm512_mask_storeu_ps(to, lanes, values);
}

STK_BF16_INLINE void stk_bf16_add_floats(float *to, __mmask16 lanes, __m512 values)
{
    stk_bf16_store_floats(to, lanes, _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, to), values));
}

STK_BF16_INLINE __m512 stk_bf16_dot(__m512 sum, __m512i a, __m512i b)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

/* 16 values. */
STK_BF16_INLINE __m512 stk_bf16_widen(__m256i values)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(values), 16));
}

STK_BF16_INLINE __m256i stk_bf16_narrow(__m512 values)
{
    return (__m256i)_mm512_cvtneps_pbh(values);
}

/* 32 values: the first 16 are `low`. */
STK_BF16_INLINE __m512i stk_bf16_narrow_two(__m512 low, __m512 high)
{
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

STK_BF16_INLINE __m512 stk_bf16_low(__m512i values)
{
    return stk_bf16_widen(_mm512_castsi512_si256(values));
}

STK_BF16_INLINE __m512 stk_bf16_high(__m512i values)
{
    return stk_bf16_widen(_mm512_extracti64x4_epi64(values, 1));
}

/* Two neighbours in every lane. */
STK_BF16_INLINE __m512i stk_bf16_pair(const uint16_t *from)
{
    int pair;
    memcpy(&pair, from, sizeof(pair));
    return _mm512_set1_epi32(pair);
}

/* Sums over interleaved pairs: the first and the last 16 columns. */
struct stk_bf16_columns {
    __m512 first, last;
};

STK_BF16_INLINE struct stk_bf16_columns stk_bf16_in_order(__m512 low, __m512 high)
{
    const __m512i first = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const __m512i last =
        _mm512_setr_epi32(8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
    return (struct stk_bf16_columns){ _mm512_permutex2var_ps(low, first, high),
                                      _mm512_permutex2var_ps(low, last, high) };
}

#endif
