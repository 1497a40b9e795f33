/* block_avx2.h - converts eight pixels at a time: as they are or flipped, channels last or in planes.
 *
 *   24 bytes of the image    r g b r g b r g b r g b r g b r g b r g b r g b     3 channels
 *                              └── window ────────────┘                            16 bytes
 *                                     │ order: any 8 of them, as 32-bit numbers
 *                                     ▼
 *                              [ 8 elements ] ─▶ fma ─▶ stored                     3 times
 *
 * Widening bytes takes a shuffle anyway, and vpshufb reads them in any order: so flipping pixels, splitting them
 * into planes and filling those outside the image is free (shuffle_tables.h). A block writes its own eight pixels
 * and nothing beside them. With n channels it makes n vectors of eight elements; their sources and targets stay in
 * registers for a whole image.
 */
#ifndef STK_KERNELS_TRANSFORM_BLOCK_AVX2_H
#define STK_KERNELS_TRANSFORM_BLOCK_AVX2_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/transform.h>

#include "kernels/convert/span_body.h"
#include "kernels/transform/transform.h"

enum { BLOCK_PIXELS = STK_BLOCK_PIXELS, VECTORS_MAX = STOKER_TRANSFORM_CHANNELS_MAX };

/* One vector of a block. */
struct vector {
    __m256i order; /* bytes of the windows, for vpshufb */
    __m256 factor, bias;
    /* Windows of the first and last four elements: bytes from the block's first. */
    int32_t low, high;
    size_t to; /* bytes from the block's first in the output */
};

/* How to make a block. channels and planes are compile-time constants. */
struct block {
    uint32_t channels;
    bool planes;
    struct vector vectors[VECTORS_MAX];
};

/* ---- stores of eight floats, in each type ----------------------------------------- */

typedef void store_eight_fn(unsigned char *at, __m256 v);

static inline void eight_to_f32(unsigned char *at, __m256 v)
{
    _mm256_storeu_ps((float *)(void *)at, v);
}

static inline void eight_to_f16(unsigned char *at, __m256 v)
{
    _mm_storeu_si128((__m128i_u *)at, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

/* As bfloat16_of_float() without NaN: adds half a step, less one if even. */
static inline void eight_to_bf16(unsigned char *at, __m256 v)
{
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i half_step = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256i upper = _mm256_srli_epi32(_mm256_add_epi32(bits, half_step), 16);
    const __m256i packed = _mm256_packus_epi32(upper, upper);
    _mm_storeu_si128((__m128i_u *)at, _mm256_castsi256_si128(_mm256_permute4x64_epi64(
                                          packed, _MM_SHUFFLE(3, 1, 2, 0))));
}

/* ---- making and using a block ----------------------------------------------------- */

/* plane_bytes: distance between the planes of two channels in the output. */
static ALWAYS_INLINE void block_init(struct block *block, const struct stk_transform_plan *plan,
                                     const struct stk_shuffle *shuffles, uint32_t channels,
                                     bool planes, size_t element_bytes, size_t plane_bytes)
{
    block->channels = channels;
    block->planes = planes;
#pragma GCC unroll 4
    for (uint32_t number = 0; number < channels; number++) {
        struct vector *vector = &block->vectors[number];
        vector->order = _mm256_loadu_si256((const __m256i_u *)shuffles[number].order);
        vector->factor = planes ? _mm256_set1_ps(plan->factor[number])
                                : _mm256_loadu_ps(plan->factor + number * BLOCK_PIXELS);
        vector->bias = _mm256_loadu_ps(shuffles[number].bias);
        vector->low = shuffles[number].low;
        vector->high = shuffles[number].high;
        vector->to = number * (planes ? plane_bytes : BLOCK_PIXELS * element_bytes);
    }
}

static ALWAYS_INLINE __m256i block_windows(const struct block *block, const unsigned char *in,
                                           int32_t low_at, int32_t high_at)
{
    if (block->channels == 1)
        return _mm256_broadcastq_epi64(_mm_loadl_epi64((const __m128i_u *)(in + low_at)));
    const __m128i low = _mm_loadu_si128((const __m128i_u *)(in + low_at));
    if (!block->planes)
        return _mm256_broadcastsi128_si256(low);
    const __m128i high = _mm_loadu_si128((const __m128i_u *)(in + high_at));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

/* Converts the eight pixels at in, flipped or not. */
static ALWAYS_INLINE void block_put(const struct block *block, const unsigned char *in,
                                    unsigned char *out, store_eight_fn *store)
{
    __m256i windows = _mm256_setzero_si256(); /* planes: shared by all vectors */
#pragma GCC unroll 4
    for (uint32_t number = 0; number < block->channels; number++) {
        const struct vector *vector = &block->vectors[number];
        if (!block->planes || number == 0)
            windows = block_windows(block, in, vector->low, vector->high);
        const __m256i numbers = _mm256_shuffle_epi8(windows, vector->order);
        store(out + vector->to,
              _mm256_fmadd_ps(_mm256_cvtepi32_ps(numbers), vector->factor, vector->bias));
    }
}

#endif
