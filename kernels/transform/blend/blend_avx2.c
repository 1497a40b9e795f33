/* blend_avx2.c - mixup in vectors of 32 bytes; float16 by the processor's conversions. */
#include <immintrin.h>

#include "kernels/float16.h"
#include "kernels/transform/blend/blend.h"

static inline __m256 load_8(const uint16_t *at)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)(const void *)at));
}

static void blend_f16(uint16_t *restrict to, const uint16_t *restrict from, size_t count, float a,
                      float b)
{
    const __m256 own = _mm256_set1_ps(a), other = _mm256_set1_ps(b);
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m256 sum = _mm256_add_ps(_mm256_mul_ps(load_8(to + i), own),
                                         _mm256_mul_ps(load_8(from + i), other));
        _mm_storeu_si128((__m128i_u *)(void *)(to + i),
                         _mm256_cvtps_ph(sum, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
    for (; i < count; i++)
        to[i] = float16_of_float(
            stk_mix_float(float_of_float16(to[i]), float_of_float16(from[i]), a, b));
}

#define MIX_HAS_F16
#define MIX_NAME(name) name##_avx2
#include "kernels/transform/blend/blend_body.h"
