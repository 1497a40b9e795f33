/* float16.h - binary16 and bfloat16 from and to float, by integer arithmetic.
 *
 *   float    s eeeeeeee mmmmmmmmmmmmmmmmmmmmmmm
 *   binary16 s    eeeee mmmmmmmmmm                bias 15, subnormals in steps of 2^-24
 *   bfloat16 s eeeeeeee mmmmmmm                   the upper half of a float
 *
 * Inline, because each variant of the converters is compiled with its own flags.
 * Gives the bits of vcvtps2ph and vcvtph2ps; a signalling NaN becomes quiet.
 */
#ifndef STK_KERNELS_FLOAT16_H
#define STK_KERNELS_FLOAT16_H

#include <stdint.h>
#include <string.h>

static inline uint32_t bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint16_t float16_of_float(float value)
{
    uint32_t bits = bits_of_float(value);
    uint32_t sign = bits >> 16 & 0x8000;
    uint32_t magnitude = bits & 0x7fffffff;

    if (magnitude > 0x7f800000) /* NaN: keep the upper payload, make it quiet */
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x47800000) /* 65536 and above */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000) { /* below 2^-14: the floats above 0.5 step by 2^-24 too */
        uint32_t steps = bits_of_float(float_of_bits(magnitude) + 0.5F) - bits_of_float(0.5F);
        return (uint16_t)(sign | steps);
    }
    /* A carry out of the mantissa correctly increments the exponent, up to infinity. */
    uint32_t odd = magnitude >> 13 & 1;
    magnitude += 0xfff + odd;
    magnitude -= (uint32_t)(127 - 15) << 23;
    return (uint16_t)(sign | magnitude >> 13);
}

static inline float float_of_float16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t magnitude = half & 0x7fff;

    if (magnitude > 0x7c00)
        return float_of_bits(sign | 0x7fc00000 | magnitude << 13);
    if (magnitude == 0x7c00)
        return float_of_bits(sign | 0x7f800000);
    if (magnitude < 0x0400) /* subnormal: a whole number of steps of 2^-24 */
        return float_of_bits(sign | bits_of_float((float)magnitude * 0x1p-24F));
    return float_of_bits(sign | ((magnitude << 13) + ((uint32_t)(127 - 15) << 23)));
}

static inline uint16_t bfloat16_of_float(float value)
{
    uint32_t bits = bits_of_float(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40); /* rounding could carry a NaN into infinity */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float float_of_bfloat16(uint16_t half)
{
    return float_of_bits((uint32_t)half << 16);
}

#endif
