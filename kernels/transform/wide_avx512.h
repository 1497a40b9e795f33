/* wide_avx512.h - the block of crop_blocks.h with AVX-512: sixteen pixels, as they are or flipped.
 *
 *   48 bytes of the image   r g b r│g b r g│b r g b│r g b r│ ...          3 channels, groups of four
 *                                    │ groups: four windows of 16 bytes, each from its first element on
 *                                    │ order: any 4 bytes of each, as 32-bit numbers
 *                                    ▼
 *                             [ 16 elements ] ─▶ fma ─▶ stored              3 times
 */
#ifndef STK_KERNELS_TRANSFORM_WIDE_AVX512_H
#define STK_KERNELS_TRANSFORM_WIDE_AVX512_H

#include "kernels/convert/lanes_avx512.h"
#include "kernels/transform/block_avx2.h"

enum { WIDE_PIXELS = STK_WIDE_PIXELS };

/* How to make a block. channels and planes are compile-time constants. */
struct wide {
    uint32_t channels;
    bool planes;
    struct wide_vector {
        __m512i groups, order;
        __m512 factor, bias;
        size_t to; /* bytes from the block's first in the output */
    } vectors[VECTORS_MAX];
};

/* plane_bytes: distance between the planes of two channels in the output. */
static ALWAYS_INLINE void wide_init(struct wide *wide, const struct stk_transform_plan *plan,
                                    bool flip, uint32_t channels, bool planes, size_t element_bytes,
                                    size_t plane_bytes)
{
    wide->channels = channels;
    wide->planes = planes;
#pragma GCC unroll 4
    for (uint32_t number = 0; number < channels; number++) {
        const struct stk_wide_shuffle *shuffle = &plan->wide_shuffles[flip][number];
        struct wide_vector *vector = &wide->vectors[number];
        vector->groups = _mm512_loadu_si512(shuffle->groups);
        vector->order = _mm512_loadu_si512(shuffle->order);
        vector->factor = planes ? _mm512_set1_ps(plan->factor[number])
                                : _mm512_loadu_ps(plan->factor + number * WIDE_PIXELS);
        vector->bias = planes ? _mm512_set1_ps(plan->bias[number])
                              : _mm512_loadu_ps(plan->bias + number * WIDE_PIXELS);
        vector->to = number * (planes ? plane_bytes : WIDE_PIXELS * element_bytes);
    }
}

/* Loads sixteen pixels and no byte behind them. With one masked load a whole photo took twice the time (Zen 5). */
static ALWAYS_INLINE __m512i load_pixels(const unsigned char *in, uint32_t channels)
{
    if (channels == 1)
        return _mm512_castsi128_si512(_mm_loadu_si128((const __m128i_u *)in));
    if (channels == 4)
        return _mm512_loadu_si512(in);
    const __m512i low = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i_u *)in));
    return channels == 2
               ? low
               : _mm512_inserti32x4(low, _mm_loadu_si128((const __m128i_u *)(in + 32)), 2);
}

static ALWAYS_INLINE void wide_put_vector(const struct wide_vector *vector, __m512i windows,
                                          unsigned char *out, struct pair pair)
{
    const __m512i numbers = _mm512_shuffle_epi8(windows, vector->order);
    pair.store(out + vector->to,
               _mm512_fmadd_ps(_mm512_cvtepi32_ps(numbers), vector->factor, vector->bias), false);
}

/* Converts the sixteen pixels at in, flipped or not. */
static ALWAYS_INLINE void wide_put(const struct wide *wide, const unsigned char *in,
                                   unsigned char *out, store_eight_fn *store, struct pair pair)
{
    (void)store; /* it stores eight */
    const __m512i pixels = load_pixels(in, wide->channels);
#pragma GCC unroll 4
    for (uint32_t number = 0; number < wide->channels; number++) {
        const struct wide_vector *vector = &wide->vectors[number];
        wide_put_vector(vector, _mm512_permutexvar_epi32(vector->groups, pixels), out, pair);
    }
}

/* Converts `blocks` adjacent blocks; step: bytes between two of them in the output. Planes are written one after
 * the other: 12.8 us for a photo, against 14.7 with three streams at once (measured in turn on a Zen 5). */
static ALWAYS_INLINE void wide_put_line(const struct wide *wide, const unsigned char *in,
                                        size_t blocks, unsigned char *out, ptrdiff_t step,
                                        store_eight_fn *store, struct pair pair)
{
    const size_t in_step = WIDE_PIXELS * wide->channels;
    if (!wide->planes) {
        for (size_t i = 0; i < blocks; i++, out += step)
            wide_put(wide, in + i * in_step, out, store, pair);
        return;
    }
#pragma GCC unroll 4
    for (uint32_t number = 0; number < wide->channels; number++) {
        const struct wide_vector *vector = &wide->vectors[number];
        unsigned char *to = out;
        for (size_t i = 0; i < blocks; i++, to += step) {
            const __m512i pixels = load_pixels(in + i * in_step, wide->channels);
            wide_put_vector(vector, _mm512_permutexvar_epi32(vector->groups, pixels), to, pair);
        }
    }
}

#endif
