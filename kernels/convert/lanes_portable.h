/* lanes_portable.h - one lane in plain C, for CPUs without a variant of their own.
 *
 * The compiler vectorizes it if the target has a fused multiply-add (all 64-bit ARM).
 */
#ifndef STK_KERNELS_CONVERT_LANES_PORTABLE_H
#define STK_KERNELS_CONVERT_LANES_PORTABLE_H

#include "kernels/float16.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 1 };
typedef float lanes;

#define LANES_FROM_NUMBER(name, type)                                                              \
    static inline lanes name(const unsigned char *at)                                              \
    {                                                                                              \
        type value;                                                                                \
        memcpy(&value, at, sizeof(value));                                                         \
        return (float)value;                                                                       \
    }
LANES_FROM_NUMBER(lanes_from_u8, uint8_t)
LANES_FROM_NUMBER(lanes_from_i8, int8_t)
LANES_FROM_NUMBER(lanes_from_i16, int16_t)
LANES_FROM_NUMBER(lanes_from_i32, int32_t)
LANES_FROM_NUMBER(lanes_from_i64, int64_t)
LANES_FROM_NUMBER(lanes_from_u16, uint16_t)
LANES_FROM_NUMBER(lanes_from_u32, uint32_t)
LANES_FROM_NUMBER(lanes_from_u64, uint64_t)
LANES_FROM_NUMBER(lanes_from_f32, float)
LANES_FROM_NUMBER(lanes_from_f64, double)
#undef LANES_FROM_NUMBER

static inline lanes lanes_from_f16(const unsigned char *at)
{
    uint16_t half;
    memcpy(&half, at, sizeof(half));
    return float_of_float16(half);
}

static inline lanes lanes_from_bf16(const unsigned char *at)
{
    uint16_t half;
    memcpy(&half, at, sizeof(half));
    return float_of_bfloat16(half);
}

static inline lanes lanes_of(float value)
{
    return value;
}

static inline lanes lanes_load(const float *at)
{
    return *at;
}

static inline lanes lanes_fma(lanes x, lanes factor, lanes bias)
{
    return fmaf(x, factor, bias);
}

static inline void lanes_to_f32(unsigned char *at, lanes v, bool may_be_nan)
{
    (void)may_be_nan;
    memcpy(at, &v, sizeof(v));
}

static inline void lanes_to_f16(unsigned char *at, lanes v, bool may_be_nan)
{
    (void)may_be_nan;
    uint16_t half = float16_of_float(v);
    memcpy(at, &half, sizeof(half));
}

static inline void lanes_to_bf16(unsigned char *at, lanes v, bool may_be_nan)
{
    (void)may_be_nan;
    uint16_t half = bfloat16_of_float(v);
    memcpy(at, &half, sizeof(half));
}

#endif
