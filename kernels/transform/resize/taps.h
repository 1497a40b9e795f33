/* taps.h - the pixels of a line that make one resampled pixel, and their weights.
 *
 * Antialiased bilinear as in Pillow (up to 9.4 to the bit; 13.0 rounds its weights differently: one
 * byte in twenty differs by one level): a triangle around the output pixel's center, two output
 * pixels wide if the line shrinks and two input pixels wide if it grows; weights that add up to 1,
 * in steps of 2^-22; one axis after the other, first along the lines, rounded to 8 bits in between.
 * Compiled as C and by nvcc (see frame.h).
 */
#ifndef STK_KERNELS_TRANSFORM_TAPS_H
#define STK_KERNELS_TRANSFORM_TAPS_H

#include <stdint.h>

#include "loader/base/rng.h"

enum { STK_TAP_BITS = 22, STK_TAP_HALF = 1 << 21, STK_TAP_ONE = 1 << 22 };

struct stk_taps {
    double center;  /* center of the output pixel, in input pixels */
    double inverse; /* 2 / width of the triangle */
    double sum;     /* sum of the triangle's heights at all taps */
    uint32_t first; /* input pixel */
    uint32_t count; /* >= 1 */
};

/* Returns the triangle's height at a tap, not yet divided by the sum. */
STK_RNG double stk_tap_height(const struct stk_taps *taps, uint32_t tap)
{
    double x = ((double)(taps->first + tap) - taps->center + 0.5) * taps->inverse;
    if (x < 0.0)
        x = -x;
    return x < 1.0 ? 1.0 - x : 0.0;
}

/* Returns the taps of output pixel `at` if `size` pixels from `offset` on, of a line of `in`,
 * become `out`. */
STK_RNG struct stk_taps stk_taps_within(double offset, double size, uint32_t in, uint32_t out,
                                        uint32_t at)
{
    const double scale = size / (double)out;
    const double support = scale < 1.0 ? 1.0 : scale;
    struct stk_taps taps;
    taps.center = offset + ((double)at + 0.5) * scale;
    taps.inverse = 1.0 / support;
    const double from = taps.center - support + 0.5;
    const double to = taps.center + support + 0.5;
    taps.first = from < 0.0 ? 0 : (uint32_t)from;
    taps.count = (to > (double)in ? in : (uint32_t)to) - taps.first;
    taps.sum = 0.0;
    for (uint32_t tap = 0; tap < taps.count; tap++)
        taps.sum += stk_tap_height(&taps, tap);
    return taps;
}

/* Returns the taps of output pixel `at` if `in` pixels become `out`. */
STK_RNG struct stk_taps stk_taps_at(uint32_t in, uint32_t out, uint32_t at)
{
    return stk_taps_within(0.0, (double)in, in, out, at);
}

/* Returns the weight of a tap, in steps of 2^-22. */
STK_RNG int32_t stk_tap_weight(const struct stk_taps *taps, uint32_t tap)
{
    return (int32_t)(0.5 + stk_tap_height(taps, tap) / taps->sum * (double)STK_TAP_ONE);
}

/* Returns the most taps that any pixel can have. */
STK_RNG uint32_t stk_taps_max(uint32_t in, uint32_t out)
{
    const uint32_t support = in > out ? (in + out - 1) / out : 1;
    const uint32_t most = 2 * support + 1;
    return most < in ? most : in;
}

#endif
