/* blend_body.h - blends runs of elements: written once, compiled by each variant. The loops have no
 * branches, so the compiler makes vectors of them. The including file defines MIX_NAME(name), and
 * may bring its own loop for float16.
 */
#ifndef STK_KERNELS_TRANSFORM_BLEND_BODY_H
#define STK_KERNELS_TRANSFORM_BLEND_BODY_H

#include "kernels/float16.h"
#include "kernels/transform/blend/blend.h"

static inline float weight_of(uint32_t steps)
{
    return (float)steps / (float)STK_MIX_STEPS;
}

void MIX_NAME(stk_blend_u8)(void *own, const void *other, size_t count, uint32_t steps)
{
    uint8_t *restrict to = own;
    const uint8_t *restrict from = other;
    for (size_t i = 0; i < count; i++)
        to[i] = stk_mix_byte(to[i], from[i], steps);
}

#ifndef MIX_HAS_F16
static void blend_f16(uint16_t *restrict to, const uint16_t *restrict from, size_t count, float a,
                      float b)
{
    for (size_t i = 0; i < count; i++)
        to[i] = float16_of_float(
            stk_mix_float(float_of_float16(to[i]), float_of_float16(from[i]), a, b));
}
#endif

void MIX_NAME(stk_blend_f16)(void *own, const void *other, size_t count, uint32_t steps)
{
    const float weight = weight_of(steps);
    blend_f16(own, other, count, weight, 1.0F - weight);
}

void MIX_NAME(stk_blend_bf16)(void *own, const void *other, size_t count, uint32_t steps)
{
    const float weight = weight_of(steps), rest = 1.0F - weight;
    uint16_t *restrict to = own;
    const uint16_t *restrict from = other;
    for (size_t i = 0; i < count; i++)
        to[i] = bfloat16_of_float(
            stk_mix_float(float_of_bfloat16(to[i]), float_of_bfloat16(from[i]), weight, rest));
}

void MIX_NAME(stk_blend_f32)(void *own, const void *other, size_t count, uint32_t steps)
{
    const float weight = weight_of(steps), rest = 1.0F - weight;
    float *restrict to = own;
    const float *restrict from = other;
    for (size_t i = 0; i < count; i++)
        to[i] = stk_mix_float(to[i], from[i], weight, rest);
}

#endif
