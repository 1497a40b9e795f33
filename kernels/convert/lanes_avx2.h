/* lanes_avx2.h - sixteen floats in two AVX2 registers, with FMA and F16C. */
#ifndef STK_KERNELS_CONVERT_LANES_AVX2_H
#define STK_KERNELS_CONVERT_LANES_AVX2_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 16 };
typedef struct lanes {
    __m256 low, high;
} lanes;

static inline __m128i load_8_bytes(const unsigned char *at)
{
    return _mm_loadl_epi64((const __m128i_u *)at);
}

static inline __m128i load_16_bytes(const unsigned char *at)
{
    return _mm_loadu_si128((const __m128i_u *)at);
}

static inline __m256i load_32_bytes(const unsigned char *at)
{
    return _mm256_loadu_si256((const __m256i_u *)at);
}

static inline void store_32_bytes(unsigned char *at, __m256i v)
{
    _mm256_storeu_si256((__m256i_u *)at, v);
}

static inline lanes lanes_of_integers(__m256i low, __m256i high)
{
    return (lanes){ _mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(high) };
}

static inline lanes lanes_from_u8(const unsigned char *at)
{
    return lanes_of_integers(_mm256_cvtepu8_epi32(load_8_bytes(at)),
                             _mm256_cvtepu8_epi32(load_8_bytes(at + 8)));
}

static inline lanes lanes_from_i8(const unsigned char *at)
{
    return lanes_of_integers(_mm256_cvtepi8_epi32(load_8_bytes(at)),
                             _mm256_cvtepi8_epi32(load_8_bytes(at + 8)));
}

static inline lanes lanes_from_i16(const unsigned char *at)
{
    return lanes_of_integers(_mm256_cvtepi16_epi32(load_16_bytes(at)),
                             _mm256_cvtepi16_epi32(load_16_bytes(at + 16)));
}

static inline lanes lanes_from_i32(const unsigned char *at)
{
    return lanes_of_integers(load_32_bytes(at), load_32_bytes(at + 32));
}

static inline lanes lanes_load(const float *at)
{
    return (lanes){ _mm256_loadu_ps(at), _mm256_loadu_ps(at + 8) };
}

static inline lanes lanes_from_i64(const unsigned char *at)
{
    int64_t whole[LANES]; /* without AVX-512 DQ only scalar code converts these */
    float value[LANES];
    memcpy(whole, at, sizeof(whole));
    for (int lane = 0; lane < LANES; lane++)
        value[lane] = (float)whole[lane];
    return lanes_load(value);
}

static inline lanes lanes_from_u16(const unsigned char *at)
{
    return lanes_of_integers(_mm256_cvtepu16_epi32(load_16_bytes(at)),
                             _mm256_cvtepu16_epi32(load_16_bytes(at + 16)));
}

static inline lanes lanes_from_u32(const unsigned char *at)
{
    uint32_t whole[LANES]; /* scalar: rare, and no vector instruction of this set does it */
    float value[LANES];
    memcpy(whole, at, sizeof(whole));
    for (int lane = 0; lane < LANES; lane++)
        value[lane] = (float)whole[lane];
    return lanes_load(value);
}

static inline lanes lanes_from_u64(const unsigned char *at)
{
    uint64_t whole[LANES]; /* scalar: rare, and no vector instruction of this set does it */
    float value[LANES];
    memcpy(whole, at, sizeof(whole));
    for (int lane = 0; lane < LANES; lane++)
        value[lane] = (float)whole[lane];
    return lanes_load(value);
}

static inline lanes lanes_from_f32(const unsigned char *at)
{
    return (lanes){ _mm256_castsi256_ps(load_32_bytes(at)),
                    _mm256_castsi256_ps(load_32_bytes(at + 32)) };
}

static inline __m256 half_lanes_from_f64(const unsigned char *at)
{
    __m128 low = _mm256_cvtpd_ps(_mm256_castsi256_pd(load_32_bytes(at)));
    __m128 high = _mm256_cvtpd_ps(_mm256_castsi256_pd(load_32_bytes(at + 32)));
    return _mm256_set_m128(high, low);
}

static inline lanes lanes_from_f64(const unsigned char *at)
{
    return (lanes){ half_lanes_from_f64(at), half_lanes_from_f64(at + 64) };
}

static inline lanes lanes_from_f16(const unsigned char *at)
{
    return (lanes){ _mm256_cvtph_ps(load_16_bytes(at)), _mm256_cvtph_ps(load_16_bytes(at + 16)) };
}

static inline __m256 half_lanes_from_bf16(const unsigned char *at)
{
    __m256i wide = _mm256_cvtepu16_epi32(load_16_bytes(at));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

static inline lanes lanes_from_bf16(const unsigned char *at)
{
    return (lanes){ half_lanes_from_bf16(at), half_lanes_from_bf16(at + 16) };
}

static inline lanes lanes_of(float value)
{
    return (lanes){ _mm256_set1_ps(value), _mm256_set1_ps(value) };
}

static inline lanes lanes_fma(lanes x, lanes factor, lanes bias)
{
    return (lanes){ _mm256_fmadd_ps(x.low, factor.low, bias.low),
                    _mm256_fmadd_ps(x.high, factor.high, bias.high) };
}

static inline void lanes_to_f32(unsigned char *at, lanes v, bool may_be_nan)
{
    (void)may_be_nan;
    store_32_bytes(at, _mm256_castps_si256(v.low));
    store_32_bytes(at + 32, _mm256_castps_si256(v.high));
}

static inline void lanes_to_f16(unsigned char *at, lanes v, bool may_be_nan)
{
    (void)may_be_nan;
    _mm_storeu_si128((__m128i_u *)at, _mm256_cvtps_ph(v.low, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128((__m128i_u *)(at + 16), _mm256_cvtps_ph(v.high, _MM_FROUND_TO_NEAREST_INT));
}

/* As bfloat16_of_float(): adds half a step, less one if even; NaN stays quiet. */
static inline __m256i half_lanes_to_bf16(__m256 v, bool may_be_nan)
{
    __m256i bits = _mm256_castps_si256(v);
    __m256i upper = _mm256_srli_epi32(bits, 16);
    __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    __m256i nearly_half = _mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff));
    __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(nearly_half, odd), 16);
    if (!may_be_nan)
        return rounded;
    __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(rounded, quiet, is_nan);
}

static inline void lanes_to_bf16(unsigned char *at, lanes v, bool may_be_nan)
{
    __m256i packed = _mm256_packus_epi32(half_lanes_to_bf16(v.low, may_be_nan),
                                         half_lanes_to_bf16(v.high, may_be_nan));
    store_32_bytes(at, _mm256_permute4x64_epi64(packed, _MM_SHUFFLE(3, 1, 2, 0)));
}

#endif
