/* blend_neon.c - mixup in vectors of 16 bytes; float16 by the processor's conversions. */
#include <arm_neon.h>

#include "kernels/float16.h"
#include "kernels/transform/blend/blend.h"

static inline float32x4_t load_4(const uint16_t *at)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(at)));
}

static inline float32x4_t blend_4(const uint16_t *to, const uint16_t *from, float a, float b)
{
    return vaddq_f32(vmulq_n_f32(load_4(to), a), vmulq_n_f32(load_4(from), b));
}

static void blend_f16(uint16_t *restrict to, const uint16_t *restrict from, size_t count, float a,
                      float b)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const float16x4_t low = vcvt_f16_f32(blend_4(to + i, from + i, a, b));
        const float16x8_t both = vcvt_high_f16_f32(low, blend_4(to + i + 4, from + i + 4, a, b));
        vst1q_u16(to + i, vreinterpretq_u16_f16(both));
    }
    for (; i < count; i++)
        to[i] = float16_of_float(
            stk_mix_float(float_of_float16(to[i]), float_of_float16(from[i]), a, b));
}

#define MIX_HAS_F16
#define MIX_NAME(name) name##_neon
#include "kernels/transform/blend/blend_body.h"
