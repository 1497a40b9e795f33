/* split_neon.h - splits sixteen pixels of three or four bytes into planes: a load that separates
 * them. */
#ifndef STK_KERNELS_CONVERT_SPLIT_NEON_H
#define STK_KERNELS_CONVERT_SPLIT_NEON_H

#include <arm_neon.h>
#include <stddef.h>

enum { SPLIT_PIXELS = 16 };

static inline void split_3_bytes(unsigned char *planes, size_t plane_bytes, const unsigned char *in)
{
    const uint8x16x3_t channels = vld3q_u8(in);
    for (size_t channel = 0; channel < 3; channel++)
        vst1q_u8(planes + channel * plane_bytes, channels.val[channel]);
}

static inline void split_4_bytes(unsigned char *planes, size_t plane_bytes, const unsigned char *in)
{
    const uint8x16x4_t channels = vld4q_u8(in);
    for (size_t channel = 0; channel < 4; channel++)
        vst1q_u8(planes + channel * plane_bytes, channels.val[channel]);
}

#endif
