/* block_avx2.h - eight pixels at a time: straight or turned round, channels last or in planes.
 *
 *   24 bytes of the picture    r g b r g b r g b r g b r g b r g b r g b r g b     3 channels
 *                              └── window ────────────┘                            16 bytes
 *                                     │ order: any 8 of them, as 32-bit numbers
 *                                     ▼
 *                              [ 8 elements ] ─▶ fma ─▶ stored                     3 times
 *
 * To widen bytes takes a shuffle anyway, and vpshufb takes them in any order: so pixels that are turned
 * round, or taken apart into planes, cost what plain ones do. A block reads and writes its own eight pixels
 * and nothing beside them. With n channels it makes n vectors of eight elements; where they come from
 * and go to is worked out once for a picture and stays in registers.
 */
#ifndef STK_KERNELS_BLOCK_AVX2_H
#define STK_KERNELS_BLOCK_AVX2_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/transform.h>

#include "kernels/span_body.h"
#include "kernels/transform.h"

enum {
    BLOCK_PIXELS = 8,
    WINDOW_BYTES = 16, /* that a shuffle takes from: eight where a block has no more */
    VECTORS_MAX = STOKER_TRANSFORM_CHANNELS_MAX
};

/* One vector of a block. */
struct vector {
    __m256i bytes; /* of the block's, that become its elements */
    __m256i order; /* the same, as bytes of the windows, for vpshufb */
    __m256 factor, bias;
    __m256 fill;       /* what it is where there is no picture */
    int32_t low, high; /* windows of its first and last four elements: bytes from the block's */
    size_t to;         /* bytes from the block's place in the output */
};

/* How a block is made. channels and planes are constant. */
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

/* As bfloat16_of_float(), of what is no NaN: add half a step, less one if even. */
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

static ALWAYS_INLINE void block_vector(struct vector *vector, const struct stk_transform_plan *plan,
                                       bool planes, bool flip, uint32_t number)
{
    /* Not by a branch: every other picture is turned round. */
    const struct stk_pick *pick = &plan->picks[flip][number];
    const int32_t low = pick->low, high = pick->high;
    vector->low = low;
    vector->high = high;
    const __m256i windows = _mm256_setr_epi32(low, low, low, low, high, high, high, high);
    const __m256i bytes = _mm256_loadu_si256((const __m256i_u *)pick->bytes);
    vector->bytes = bytes;
    vector->order = _mm256_or_si256(_mm256_sub_epi32(bytes, windows), _mm256_set1_epi32(-256));
    const uint32_t first = planes ? number : number * BLOCK_PIXELS;
    vector->factor =
        planes ? _mm256_set1_ps(plan->factor[first]) : _mm256_loadu_ps(plan->factor + first);
    vector->bias = planes ? _mm256_set1_ps(plan->bias[first]) : _mm256_loadu_ps(plan->bias + first);
    const __m128i fill = planes ? _mm_set1_epi8((char)plan->fill[first])
                                : _mm_loadl_epi64((const __m128i_u *)(plan->fill + first));
    vector->fill = _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(fill)), vector->factor,
                                   vector->bias);
}

/* plane_bytes: from one channel's plane to the next's in the output. */
static ALWAYS_INLINE void block_init(struct block *block, const struct stk_transform_plan *plan,
                                     uint32_t channels, bool planes, bool flip,
                                     size_t element_bytes, size_t plane_bytes)
{
    block->channels = channels;
    block->planes = planes;
#pragma GCC unroll 4
    for (uint32_t number = 0; number < channels; number++) {
        block_vector(&block->vectors[number], plan, planes, flip, number);
        block->vectors[number].to = number * (planes ? plane_bytes : BLOCK_PIXELS * element_bytes);
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

/* The eight pixels whose bytes lie at in, whichever way round. */
static ALWAYS_INLINE void block_put(const struct block *block, const unsigned char *in,
                                    unsigned char *out, store_eight_fn *store)
{
    __m256i windows = _mm256_setzero_si256(); /* with planes those of all vectors */
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

static ALWAYS_INLINE void block_fill(const struct block *block, unsigned char *out,
                                     store_eight_fn *store)
{
#pragma GCC unroll 4
    for (uint32_t number = 0; number < block->channels; number++)
        store(out + block->vectors[number].to, block->vectors[number].fill);
}

/* ---- blocks that lie partly, or wholly, beside the picture -------------------------- */

/* A vector with fill mixed in: its windows, moved inwards where they would lie beside the picture. */
struct placed {
    __m256i order, fill; /* numbers: 0 where there is a picture */
    int32_t low, high;   /* bytes from the line on */
};

static ALWAYS_INLINE int32_t within(int32_t at, int32_t last)
{
    return at < 0 ? 0 : at > last ? last : at;
}

/* Vector `number` of a block whose bytes are taken from `begin` on, as it lies `moved` bytes beside that:
 * before it (below 0), or behind it. */
static ALWAYS_INLINE void place_vector(struct placed *placed, const struct block *block,
                                       uint32_t number, const uint8_t *fill, int32_t begin,
                                       int32_t moved)
{
    const struct vector *vector = &block->vectors[number];
    const int32_t block_bytes = (int32_t)(BLOCK_PIXELS * block->channels);
    const int32_t room = block_bytes < WINDOW_BYTES ? 0 : block_bytes - WINDOW_BYTES;
    const int32_t low = within(vector->low + moved, room);
    const int32_t high = within(vector->high + moved, room);
    const __m256i windows = _mm256_setr_epi32(low, low, low, low, high, high, high, high);
    const __m256i at = _mm256_add_epi32(vector->bytes, _mm256_set1_epi32(moved));
    const __m256i beside = _mm256_or_si256(
        _mm256_srai_epi32(at, 31), _mm256_cmpgt_epi32(at, _mm256_set1_epi32(block_bytes - 1)));
    const __m256i order = _mm256_or_si256(_mm256_sub_epi32(at, windows), _mm256_set1_epi32(-256));
    const __m128i fills = block->planes
                              ? _mm_set1_epi8((char)fill[number])
                              : _mm_loadl_epi64((const __m128i_u *)(fill + number * BLOCK_PIXELS));
    placed->order = _mm256_or_si256(order, beside);
    placed->fill = _mm256_and_si256(beside, _mm256_cvtepu8_epi32(fills));
    placed->low = begin + low;
    placed->high = begin + high;
}

/* One block of a line: its vectors. */
static ALWAYS_INLINE void placed_put(const struct placed *placed, const struct block *block,
                                     const unsigned char *line, unsigned char *out,
                                     store_eight_fn *store)
{
    __m256i windows = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (uint32_t number = 0; number < block->channels; number++) {
        const struct placed *one = &placed[number];
        const struct vector *vector = &block->vectors[number];
        if (!block->planes || number == 0)
            windows = block_windows(block, line, one->low, one->high);
        const __m256i numbers =
            _mm256_or_si256(_mm256_shuffle_epi8(windows, one->order), one->fill);
        store(out + vector->to,
              _mm256_fmadd_ps(_mm256_cvtepi32_ps(numbers), vector->factor, vector->bias));
    }
}

#endif
