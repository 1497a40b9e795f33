/* resize_neon.c - resampling for 64-bit ARM: a table look-up widens four elements to 32 bits, and a
 * multiply-add takes them.
 *
 *   16 bytes of the line    r g b r g b r g b r g b . . . .         four taps of three channels
 *                           └─┬─┘ └─┬─┘
 *   tap 0, tap 1, ...       r g b .   r g b .                       each times its weight, added up
 *
 * Sums of 8-bit pixels times 22-bit weights are exact in 32 bits.
 */
#include <arm_neon.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/transform/resize/taps.h"
#include "kernels/transform/variants.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

enum { TAPS = 4 }; /* taps of a group */

/* The four weights of a group. */
static ALWAYS_INLINE int32x4_t weights_of(const struct stk_tap_group *group)
{
    const int32x4_t high = vmovl_s16(vld1_s16(group->high));
    return vaddw_s16(vshlq_n_s32(high, 11), vld1_s16(group->low));
}

static ALWAYS_INLINE int32x4_t begun(void)
{
    return vdupq_n_s32(STK_TAP_HALF);
}

/* Four sums rounded, 0..255 or slightly above. */
static ALWAYS_INLINE uint16x4_t settled(int32x4_t sum)
{
    return vqmovun_s32(vshrq_n_s32(sum, STK_TAP_BITS));
}

static ALWAYS_INLINE uint8x16_t settled_16(const int32x4_t sums[4])
{
    const uint16x8_t low = vcombine_u16(settled(sums[0]), settled(sums[1]));
    const uint16x8_t high = vcombine_u16(settled(sums[2]), settled(sums[3]));
    return vcombine_u8(vqmovn_u16(low), vqmovn_u16(high));
}

/* Four bytes as numbers; an index past the table gives 0. */
static ALWAYS_INLINE int32x4_t numbers_at(uint8x16_t bytes, uint8x16_t places)
{
    return vreinterpretq_s32_u8(vqtbl1q_u8(bytes, places));
}

/* Places of four adjacent bytes from `first` on, of which `count` are used. */
static ALWAYS_INLINE uint8x16_t places_from(uint32_t first, uint32_t count)
{
    uint32_t places[4];
    for (uint32_t i = 0; i < 4; i++)
        places[i] = i < count ? 0xffffff00U | (first + i) : 0xffffffffU;
    return vreinterpretq_u8_u32(vld1q_u32(places));
}

/* ---- along the line, 2 to 4 channels -------------------------------------------- */

static ALWAYS_INLINE int32x4_t add_taps(int32x4_t sum, const uint8_t *at, int32x4_t weights,
                                        const uint8x16_t places[TAPS])
{
    const uint8x16_t bytes = vld1q_u8(at);
    sum = vmlaq_laneq_s32(sum, numbers_at(bytes, places[0]), weights, 0);
    sum = vmlaq_laneq_s32(sum, numbers_at(bytes, places[1]), weights, 1);
    sum = vmlaq_laneq_s32(sum, numbers_at(bytes, places[2]), weights, 2);
    return vmlaq_laneq_s32(sum, numbers_at(bytes, places[3]), weights, 3);
}

/* One pixel of both lines: its channels as four numbers. */
static ALWAYS_INLINE void sum_pixel(const struct stk_axis *axis, uint32_t i, uint32_t channels,
                                    const uint8_t *const in[2], const uint8x16_t places[TAPS],
                                    int32x4_t *first, int32x4_t *second)
{
    size_t at = (size_t)axis->first[i] * channels;
    const struct stk_tap_group *group = &axis->weights[(size_t)i * axis->groups];
    int32x4_t a = begun(), b = begun();
    for (uint32_t g = 0; g < axis->groups; g++, group++, at += (size_t)TAPS * channels) {
        const int32x4_t weights = weights_of(group);
        a = add_taps(a, in[0] + at, weights, places);
        b = add_taps(b, in[1] + at, weights, places);
    }
    *first = a;
    *second = b;
}

/* Stores four pixels at once, in 16 bytes of which 4 x channels count: the next four overwrite the
 * rest, or it lies in the slack. */
static ALWAYS_INLINE void lines_of(const struct stk_axis *axis, const uint32_t channels,
                                   const uint8_t *const in[2], uint8_t *const out[2])
{
    const uint8x16_t places[TAPS] = { places_from(0, channels), places_from(channels, channels),
                                      places_from(2 * channels, channels),
                                      places_from(3 * channels, channels) };
    uint8_t order[16];
    for (uint32_t i = 0; i < 16; i++)
        order[i] = (uint8_t)(i < 4 * channels ? i / channels * 4 + i % channels : 0xff);
    const uint8x16_t squeeze = vld1q_u8(order);
    const uint32_t last = axis->count - 1;
    for (uint32_t i = 0; i < axis->count; i += 4) {
        int32x4_t first[4], second[4];
        for (uint32_t k = 0; k < 4; k++)
            sum_pixel(axis, i + k < last ? i + k : last, channels, in, places, &first[k],
                      &second[k]);
        vst1q_u8(out[0] + (size_t)i * channels, vqtbl1q_u8(settled_16(first), squeeze));
        vst1q_u8(out[1] + (size_t)i * channels, vqtbl1q_u8(settled_16(second), squeeze));
    }
}

/* ---- along the line, 1 channel -------------------------------------------------- */

/* Four taps of a pixel. */
static ALWAYS_INLINE int32x4_t load_taps(const uint8_t *at, uint8x16_t places)
{
    uint32_t bytes;
    memcpy(&bytes, at, sizeof(bytes));
    return numbers_at(vreinterpretq_u8_u32(vsetq_lane_u32(bytes, vdupq_n_u32(0), 0)), places);
}

/* One pixel: four sums that are yet to be added. */
static ALWAYS_INLINE int32x4_t gray_sums(const struct stk_axis *axis, uint32_t i, const uint8_t *in,
                                         uint8x16_t places)
{
    const struct stk_tap_group *group = &axis->weights[(size_t)i * axis->groups];
    const uint8_t *at = in + axis->first[i];
    int32x4_t sums = vdupq_n_s32(0);
    for (uint32_t g = 0; g < axis->groups; g++, group++, at += TAPS)
        sums = vmlaq_s32(sums, load_taps(at, places), weights_of(group));
    return sums;
}

static void gray_line(const struct stk_axis *axis, const uint8_t *in, uint8_t *out)
{
    const uint8x16_t places = places_from(0, 4);
    const uint32_t last = axis->count - 1;
    for (uint32_t i = 0; i < axis->count; i += 4) {
        int32x4_t sums[4];
        for (uint32_t k = 0; k < 4; k++)
            sums[k] = gray_sums(axis, i + k < last ? i + k : last, in, places);
        const int32x4_t pixels =
            vpaddq_s32(vpaddq_s32(sums[0], sums[1]), vpaddq_s32(sums[2], sums[3]));
        const uint16x4_t words = settled(vaddq_s32(pixels, begun()));
        const uint8x8_t bytes = vqmovn_u16(vcombine_u16(words, words));
        const uint32_t four = vget_lane_u32(vreinterpret_u32_u8(bytes), 0);
        memcpy(out + i, &four, sizeof(four));
    }
}

void stk_resize_lines_neon(const struct stk_axis *axis, uint32_t channels,
                           const uint8_t *const in[2], uint8_t *const out[2])
{
    if (channels == 3) {
        lines_of(axis, 3, in, out);
    } else if (channels == 4) {
        lines_of(axis, 4, in, out);
    } else if (channels == 2) {
        lines_of(axis, 2, in, out);
    } else {
        gray_line(axis, in[0], out[0]);
        if (in[1] != in[0])
            gray_line(axis, in[1], out[1]);
    }
}

/* ---- across the lines ----------------------------------------------------------- */

/* Makes 16 bytes of an output line from the same 16 of each line. */
static ALWAYS_INLINE uint8x16_t column_of(const struct stk_tap_group *groups, uint32_t taps,
                                          const uint8_t *const *lines, size_t at)
{
    const uint8x16_t places[4] = { places_from(0, 4), places_from(4, 4), places_from(8, 4),
                                   places_from(12, 4) };
    int32x4_t sums[4] = { begun(), begun(), begun(), begun() };
    for (uint32_t tap = 0; tap < taps; tap++) {
        const struct stk_tap_group *group = &groups[tap / TAPS];
        const int32_t weight = group->high[tap % TAPS] * 2048 + group->low[tap % TAPS];
        const uint8x16_t bytes = vld1q_u8(lines[tap] + at);
        for (int i = 0; i < 4; i++)
            sums[i] = vmlaq_n_s32(sums[i], numbers_at(bytes, places[i]), weight);
    }
    return settled_16(sums);
}

void stk_resize_column_neon(const struct stk_tap_group *weights, uint32_t taps,
                            const uint8_t *const *lines, size_t bytes, uint8_t *out)
{
    size_t at = 0;
    for (; at + 16 <= bytes; at += 16)
        vst1q_u8(out + at, column_of(weights, taps, lines, at));
    if (at < bytes) { /* the ring's lines have slack, the output may have none */
        uint8_t tail[16];
        vst1q_u8(tail, column_of(weights, taps, lines, at));
        memcpy(out + at, tail, bytes - at);
    }
}
