/* gray.h - converts color to gray, for all image codecs.
 *
 * ITU-R BT.601 luma in fixed point on 8-bit samples: exactly Pillow's convert("L") of an RGB image.
 * The luma stored in JPEG files is not used, since it is not that of the decoded RGB samples.
 */
#ifndef STK_CODEC_GRAY_H
#define STK_CODEC_GRAY_H

#include <stddef.h>
#include <stdint.h>

static inline uint8_t stk_gray(uint32_t red, uint32_t green, uint32_t blue)
{
    return (uint8_t)((19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16);
}

/* Convert `pixels` RGB pixels of 3 bytes to gray. gray may be equal to rgb. */
static inline void stk_gray_from_rgb(const uint8_t *rgb, size_t pixels, uint8_t *gray)
{
    for (size_t i = 0; i < pixels; i++)
        gray[i] = stk_gray(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]);
}

#endif
