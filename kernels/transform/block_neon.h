/* block_neon.h - converts eight pixels at a time with NEON: what block_avx2.h does, where its layout is drawn.
 *
 * A table look-up (tbl) reads the window where AVX2 shuffles it. An index past the window gives 0, so the plan's shuffles
 * serve both.
 */
#ifndef STK_KERNELS_TRANSFORM_BLOCK_NEON_H
#define STK_KERNELS_TRANSFORM_BLOCK_NEON_H

#include <arm_neon.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/transform.h>

#include "kernels/convert/lanes_neon.h"
#include "kernels/convert/span_body.h"
#include "kernels/transform/transform.h"

enum { BLOCK_PIXELS = STK_BLOCK_PIXELS, VECTORS_MAX = STOKER_TRANSFORM_CHANNELS_MAX };

/* One vector of a block: eight elements, four in each half. */
struct vector {
    uint8x16_t low_order, high_order; /* bytes of the windows, for tbl */
    float32x4_t low_factor, high_factor, low_bias, high_bias;
    /* Windows of the halves: bytes from the block's first. */
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

typedef void store_eight_fn(unsigned char *at, float32x4x2_t v);

static inline void eight_to_f32(unsigned char *at, float32x4x2_t v)
{
    vst1q_u8(at, vreinterpretq_u8_f32(v.val[0]));
    vst1q_u8(at + 16, vreinterpretq_u8_f32(v.val[1]));
}

static inline void eight_to_f16(unsigned char *at, float32x4x2_t v)
{
    vst1q_u8(at, eight_f16(v.val[0], v.val[1]));
}

static inline void eight_to_bf16(unsigned char *at, float32x4x2_t v)
{
    vst1q_u8(at, eight_bf16(v.val[0], v.val[1]));
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
        const struct stk_shuffle *shuffle = &shuffles[number];
        const float *factor = plan->factor + number * BLOCK_PIXELS;
        vector->low_order = vreinterpretq_u8_s32(vld1q_s32(shuffle->order));
        vector->high_order = vreinterpretq_u8_s32(vld1q_s32(shuffle->order + 4));
        vector->low_factor = planes ? vdupq_n_f32(plan->factor[number]) : vld1q_f32(factor);
        vector->high_factor = planes ? vector->low_factor : vld1q_f32(factor + 4);
        vector->low_bias = vld1q_f32(shuffle->bias);
        vector->high_bias = vld1q_f32(shuffle->bias + 4);
        vector->low = shuffle->low;
        vector->high = shuffle->high;
        vector->to = number * (planes ? plane_bytes : BLOCK_PIXELS * element_bytes);
    }
}

/* A block of one channel has only eight bytes. */
static ALWAYS_INLINE uint8x16_t block_window(const struct block *block, const unsigned char *at)
{
    if (block->channels == 1)
        return vcombine_u8(vld1_u8(at), vdup_n_u8(0));
    return vld1q_u8(at);
}

static ALWAYS_INLINE float32x4_t numbers_of(uint8x16_t window, uint8x16_t order)
{
    return vcvtq_f32_u32(vreinterpretq_u32_u8(vqtbl1q_u8(window, order)));
}

/* Converts the eight pixels at in, flipped or not. */
static ALWAYS_INLINE void block_put(const struct block *block, const unsigned char *in,
                                    unsigned char *out, store_eight_fn *store)
{
    uint8x16_t low = vdupq_n_u8(0), high = low; /* planes: shared by all vectors */
#pragma GCC unroll 4
    for (uint32_t number = 0; number < block->channels; number++) {
        const struct vector *vector = &block->vectors[number];
        if (!block->planes || number == 0)
            low = high = block_window(block, in + vector->low);
        if (block->planes && number == 0)
            high = block_window(block, in + vector->high);
        const float32x4_t first = numbers_of(low, vector->low_order);
        const float32x4_t last = numbers_of(high, vector->high_order);
        const float32x4x2_t values = { { vfmaq_f32(vector->low_bias, first, vector->low_factor),
                                         vfmaq_f32(vector->high_bias, last,
                                                   vector->high_factor) } };
        store(out + vector->to, values);
    }
}

#endif
