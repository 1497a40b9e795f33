/* lanes_neon.h - sixteen floats in four NEON registers. Every 64-bit ARM has NEON with fused
 * multiply-adds and conversions of float16.
 */
#ifndef STK_KERNELS_CONVERT_LANES_NEON_H
#define STK_KERNELS_CONVERT_LANES_NEON_H

#include <arm_neon.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 16 };
typedef float32x4x4_t lanes;

static inline uint16x8_t load_8_words(const unsigned char *at)
{
    return vreinterpretq_u16_u8(vld1q_u8(at)); /* at any address */
}

static inline uint32x4_t load_4_numbers(const unsigned char *at)
{
    return vreinterpretq_u32_u8(vld1q_u8(at));
}

static inline lanes lanes_load(const float *at)
{
    return (lanes){ { vld1q_f32(at), vld1q_f32(at + 4), vld1q_f32(at + 8), vld1q_f32(at + 12) } };
}

static inline lanes lanes_of_words(uint16x8_t low, uint16x8_t high)
{
    return (lanes){
        { vcvtq_f32_u32(vmovl_u16(vget_low_u16(low))), vcvtq_f32_u32(vmovl_high_u16(low)),
          vcvtq_f32_u32(vmovl_u16(vget_low_u16(high))), vcvtq_f32_u32(vmovl_high_u16(high)) }
    };
}

static inline lanes lanes_of_signed_words(int16x8_t low, int16x8_t high)
{
    return (lanes){
        { vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_high_s16(low)),
          vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_high_s16(high)) }
    };
}

/* One table look-up widens four bytes, where extending takes two steps: an index past the table
 * gives 0. */
static inline float32x4_t four_of_bytes(uint8x16_t bytes, uint32_t first)
{
    const uint32_t none = 0xffffff00;
    const uint32x4_t order = { none | first, none | (first + 1), none | (first + 2),
                               none | (first + 3) };
    return vcvtq_f32_u32(vreinterpretq_u32_u8(vqtbl1q_u8(bytes, vreinterpretq_u8_u32(order))));
}

static inline lanes lanes_from_u8(const unsigned char *at)
{
    const uint8x16_t bytes = vld1q_u8(at);
    return (lanes){ { four_of_bytes(bytes, 0), four_of_bytes(bytes, 4), four_of_bytes(bytes, 8),
                      four_of_bytes(bytes, 12) } };
}

static inline lanes lanes_from_i8(const unsigned char *at)
{
    const int8x16_t bytes = vreinterpretq_s8_u8(vld1q_u8(at));
    return lanes_of_signed_words(vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes));
}

static inline lanes lanes_from_u16(const unsigned char *at)
{
    return lanes_of_words(load_8_words(at), load_8_words(at + 16));
}

static inline lanes lanes_from_i16(const unsigned char *at)
{
    return lanes_of_signed_words(vreinterpretq_s16_u16(load_8_words(at)),
                                 vreinterpretq_s16_u16(load_8_words(at + 16)));
}

static inline lanes lanes_from_u32(const unsigned char *at)
{
    return (lanes){ { vcvtq_f32_u32(load_4_numbers(at)), vcvtq_f32_u32(load_4_numbers(at + 16)),
                      vcvtq_f32_u32(load_4_numbers(at + 32)),
                      vcvtq_f32_u32(load_4_numbers(at + 48)) } };
}

static inline float32x4_t four_from_i32(const unsigned char *at)
{
    return vcvtq_f32_s32(vreinterpretq_s32_u8(vld1q_u8(at)));
}

static inline lanes lanes_from_i32(const unsigned char *at)
{
    return (lanes){ { four_from_i32(at), four_from_i32(at + 16), four_from_i32(at + 32),
                      four_from_i32(at + 48) } };
}

/* Scalar: vectors have only the conversion to double, after which a second one would round
 * again. */
static inline lanes lanes_from_i64(const unsigned char *at)
{
    int64_t whole[LANES];
    float value[LANES];
    memcpy(whole, at, sizeof(whole));
    for (int lane = 0; lane < LANES; lane++)
        value[lane] = (float)whole[lane];
    return lanes_load(value);
}

static inline lanes lanes_from_u64(const unsigned char *at)
{
    uint64_t whole[LANES];
    float value[LANES];
    memcpy(whole, at, sizeof(whole));
    for (int lane = 0; lane < LANES; lane++)
        value[lane] = (float)whole[lane];
    return lanes_load(value);
}

static inline float32x4_t four_from_f32(const unsigned char *at)
{
    return vreinterpretq_f32_u8(vld1q_u8(at));
}

static inline lanes lanes_from_f32(const unsigned char *at)
{
    return (lanes){ { four_from_f32(at), four_from_f32(at + 16), four_from_f32(at + 32),
                      four_from_f32(at + 48) } };
}

static inline float32x4_t four_from_f64(const unsigned char *at)
{
    const float32x2_t low = vcvt_f32_f64(vreinterpretq_f64_u8(vld1q_u8(at)));
    return vcvt_high_f32_f64(low, vreinterpretq_f64_u8(vld1q_u8(at + 16)));
}

static inline lanes lanes_from_f64(const unsigned char *at)
{
    return (lanes){ { four_from_f64(at), four_from_f64(at + 32), four_from_f64(at + 64),
                      four_from_f64(at + 96) } };
}

static inline float32x4_t four_from_f16(const unsigned char *at)
{
    return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(at)));
}

static inline lanes lanes_from_f16(const unsigned char *at)
{
    return (lanes){ { four_from_f16(at), four_from_f16(at + 8), four_from_f16(at + 16),
                      four_from_f16(at + 24) } };
}

static inline float32x4_t four_from_bf16(const unsigned char *at)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(at)), 16));
}

static inline lanes lanes_from_bf16(const unsigned char *at)
{
    return (lanes){ { four_from_bf16(at), four_from_bf16(at + 8), four_from_bf16(at + 16),
                      four_from_bf16(at + 24) } };
}

static inline lanes lanes_of(float value)
{
    const float32x4_t four = vdupq_n_f32(value);
    return (lanes){ { four, four, four, four } };
}

static inline lanes lanes_fma(lanes x, lanes factor, lanes bias)
{
    return (lanes){ { vfmaq_f32(bias.val[0], x.val[0], factor.val[0]),
                      vfmaq_f32(bias.val[1], x.val[1], factor.val[1]),
                      vfmaq_f32(bias.val[2], x.val[2], factor.val[2]),
                      vfmaq_f32(bias.val[3], x.val[3], factor.val[3]) } };
}

static inline void lanes_to_f32(unsigned char *at, lanes v, bool may_be_nan)
{
    (void)may_be_nan;
    for (int i = 0; i < 4; i++)
        vst1q_u8(at + 16 * i, vreinterpretq_u8_f32(v.val[i]));
}

static inline uint8x16_t eight_f16(float32x4_t low, float32x4_t high)
{
    return vreinterpretq_u8_f16(vcvt_high_f16_f32(vcvt_f16_f32(low), high));
}

static inline void lanes_to_f16(unsigned char *at, lanes v, bool may_be_nan)
{
    (void)may_be_nan;
    vst1q_u8(at, eight_f16(v.val[0], v.val[1]));
    vst1q_u8(at + 16, eight_f16(v.val[2], v.val[3]));
}

/* As bfloat16_of_float(): adds half a step, less one if even. */
static inline uint32x4_t half_step(uint32x4_t bits)
{
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    return vaddq_u32(odd, vdupq_n_u32(0x7fff));
}

/* Numbers only. */
static inline uint8x16_t eight_bf16(float32x4_t low, float32x4_t high)
{
    const uint32x4_t a = vreinterpretq_u32_f32(low), b = vreinterpretq_u32_f32(high);
    const uint16x4_t below = vaddhn_u32(a, half_step(a)); /* the upper half of each sum */
    return vreinterpretq_u8_u16(vaddhn_high_u32(below, b, half_step(b)));
}

/* Rounding could carry a NaN into infinity. All are quiet: they come from a multiplication. */
static inline uint8x16_t eight_bf16_or_nan(float32x4_t low, float32x4_t high)
{
    const uint16x8_t rounded = vreinterpretq_u16_u8(eight_bf16(low, high));
    const uint16x8_t upper = vuzp2q_u16(vreinterpretq_u16_f32(low), vreinterpretq_u16_f32(high));
    const uint16x8_t is_number = vuzp1q_u16(vreinterpretq_u16_u32(vceqq_f32(low, low)),
                                            vreinterpretq_u16_u32(vceqq_f32(high, high)));
    return vreinterpretq_u8_u16(vbslq_u16(is_number, rounded, upper));
}

static inline void lanes_to_bf16(unsigned char *at, lanes v, bool may_be_nan)
{
    if (may_be_nan) {
        vst1q_u8(at, eight_bf16_or_nan(v.val[0], v.val[1]));
        vst1q_u8(at + 16, eight_bf16_or_nan(v.val[2], v.val[3]));
        return;
    }
    vst1q_u8(at, eight_bf16(v.val[0], v.val[1]));
    vst1q_u8(at + 16, eight_bf16(v.val[2], v.val[3]));
}

#endif
