/* reverse_neon.h - reverses sixteen pixels of 1, 3 or 4 bytes. Pixels of 3 are separated into
 * channels on loading, and joined on storing.
 */
#ifndef STK_KERNELS_TRANSFORM_REVERSE_NEON_H
#define STK_KERNELS_TRANSFORM_REVERSE_NEON_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

enum { REVERSE_PIXELS = 16 };

static inline uint8x16_t reversed(uint8x16_t bytes)
{
    const uint8x16_t halves = vrev64q_u8(bytes);
    return vextq_u8(halves, halves, 8);
}

static inline void reverse_16_of_1(const uint8_t *in, uint8_t *out)
{
    vst1q_u8(out, reversed(vld1q_u8(in)));
}

static inline void reverse_16_of_4(const uint8_t *in, uint8_t *out)
{
    for (size_t i = 0; i < 4; i++) {
        const uint32x4_t pairs = vrev64q_u32(vreinterpretq_u32_u8(vld1q_u8(in + 16 * i)));
        vst1q_u8(out + 48 - 16 * i, vreinterpretq_u8_u32(vextq_u32(pairs, pairs, 2)));
    }
}

static inline void reverse_16_of_3(const uint8_t *in, uint8_t *out)
{
    const uint8x16x3_t pixels = vld3q_u8(in);
    const uint8x16x3_t turned = { { reversed(pixels.val[0]), reversed(pixels.val[1]),
                                    reversed(pixels.val[2]) } };
    vst3q_u8(out, turned);
}

#endif
