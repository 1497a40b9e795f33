/* lanes_avx512.h - sixteen floats in an AVX-512 register (F, BW, VL; no DQ). */
#ifndef STK_KERNELS_CONVERT_LANES_AVX512_H
#define STK_KERNELS_CONVERT_LANES_AVX512_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 16 };
typedef __m512 lanes;

static inline __m128i load_16_bytes(const unsigned char *at)
{
    return _mm_loadu_si128((const __m128i_u *)at);
}

static inline __m256i load_32_bytes(const unsigned char *at)
{
    return _mm256_loadu_si256((const __m256i_u *)at);
}

static inline lanes lanes_from_u8(const unsigned char *at)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(load_16_bytes(at)));
}

static inline lanes lanes_from_i8(const unsigned char *at)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load_16_bytes(at)));
}

static inline lanes lanes_from_i16(const unsigned char *at)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(load_32_bytes(at)));
}

static inline lanes lanes_from_i32(const unsigned char *at)
{
    return _mm512_cvtepi32_ps(_mm512_loadu_si512(at));
}

static inline lanes lanes_from_i64(const unsigned char *at)
{
    int64_t whole[LANES]; /* only AVX-512 DQ converts these as vectors */
    float value[LANES];
    memcpy(whole, at, sizeof(whole));
    for (int lane = 0; lane < LANES; lane++)
        value[lane] = (float)whole[lane];
    return _mm512_loadu_ps(value);
}

static inline lanes lanes_from_u16(const unsigned char *at)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu16_epi32(load_32_bytes(at)));
}

static inline lanes lanes_from_u32(const unsigned char *at)
{
    return _mm512_cvtepu32_ps(_mm512_loadu_si512(at));
}

static inline lanes lanes_from_u64(const unsigned char *at)
{
    uint64_t whole[LANES]; /* scalar: rare, and no vector instruction of this set does it */
    float value[LANES];
    memcpy(whole, at, sizeof(whole));
    for (int lane = 0; lane < LANES; lane++)
        value[lane] = (float)whole[lane];
    return _mm512_loadu_ps(value);
}

static inline lanes lanes_from_f32(const unsigned char *at)
{
    return _mm512_loadu_ps(at);
}

static inline lanes lanes_from_f64(const unsigned char *at)
{
    __m256 low = _mm512_cvtpd_ps(_mm512_loadu_pd(at));
    __m256 high = _mm512_cvtpd_ps(_mm512_loadu_pd(at + 64));
    __m512d both = _mm512_castpd256_pd512(_mm256_castps_pd(low));
    return _mm512_castpd_ps(_mm512_insertf64x4(both, _mm256_castps_pd(high), 1));
}

static inline lanes lanes_from_f16(const unsigned char *at)
{
    return _mm512_cvtph_ps(load_32_bytes(at));
}

static inline lanes lanes_from_bf16(const unsigned char *at)
{
    __m512i wide = _mm512_cvtepu16_epi32(load_32_bytes(at));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

static inline lanes lanes_of(float value)
{
    return _mm512_set1_ps(value);
}

static inline lanes lanes_load(const float *at)
{
    return _mm512_loadu_ps(at);
}

static inline lanes lanes_fma(lanes x, lanes factor, lanes bias)
{
    return _mm512_fmadd_ps(x, factor, bias);
}

static inline void lanes_to_f32(unsigned char *at, lanes v, bool may_be_nan)
{
    (void)may_be_nan;
    _mm512_storeu_ps(at, v);
}

static inline void lanes_to_f16(unsigned char *at, lanes v, bool may_be_nan)
{
    (void)may_be_nan;
    /* Masked with all lanes: gcc's unmasked form is a macro at -O0 and warns. */
    const __m256i half = _mm512_maskz_cvtps_ph((__mmask16)0xffff, v, _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256((__m256i_u *)at, half);
}

/* As bfloat16_of_float(): adds half a step, less one if even; NaN stays quiet.
 * (The instruction of AVX512-BF16 flushes subnormals.) */
static inline void lanes_to_bf16(unsigned char *at, lanes v, bool may_be_nan)
{
    __m512i bits = _mm512_castps_si512(v);
    __m512i upper = _mm512_srli_epi32(bits, 16);
    __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    __m512i half_step = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, half_step), 16);
    if (may_be_nan) {
        __m512i quiet = _mm512_or_si512(upper, _mm512_set1_epi32(0x40));
        __mmask16 is_nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
        rounded = _mm512_mask_blend_epi32(is_nan, rounded, quiet);
    }
    _mm256_storeu_si256((__m256i_u *)at, _mm512_cvtepi32_epi16(rounded));
}

#endif
