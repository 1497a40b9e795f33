/* convert.h - converts rows as stored into rows as trained on: type, scale, layout.
 *
 * A plan is made once per loader; running it allocates nothing and is safe from any number of
 * threads. The result is defined to the bit and the same on every CPU: y = fmaf((float)x, scale /
 * std[c], -mean[c] / std[c]), the two factors computed in double and rounded once to float; float16
 * and bfloat16 are y rounded to nearest, ties to even. Equal types are copied; equal float types
 * (FLOAT64 excepted) are converted if scale, mean or std change values.
 */
#ifndef STK_KERNELS_CONVERT_H
#define STK_KERNELS_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/tensor.h>

#include "kernels/convert/elements.h"

enum { STK_CHANNELS_MAX = 64 };
enum { STK_TABLE_CHANNELS_MAX = 4 }; /* most channels that have lookup tables */

struct stk_convert_options {
    stoker_dtype from;
    /* equal to from; FLOAT32, FLOAT16 or BFLOAT16; or, channels last, a wider integer type: scale,
     * mean and std are then unused */
    stoker_dtype to;
    stoker_layout layout; /* the output's; the input is channels-last */
    size_t elements;      /* per row: height x width x channels, >= 1 */
    uint32_t channels;    /* last axis, 1..STK_CHANNELS_MAX if mean or NCHW is used */
    float scale;
    const float *mean;   /* mean_count values, NULL = 0 */
    const float *std;    /* mean_count values, NULL = 1 */
    uint32_t mean_count; /* 0, 1 or channels */
};

struct stk_convert_plan;

/* Write `count` rows, out[k] = convert(rows[k]), to consecutive rows of out.
 * rows[count .. count + ahead) are only prefetched, to warm the next call. */
typedef void stk_convert_rows_fn(const struct stk_convert_plan *plan, const void *const *rows,
                                 uint32_t count, uint32_t ahead, void *out);

struct stk_convert_plan {
    stk_convert_rows_fn *rows; /* best variant for this CPU and these types */
    size_t elements;
    size_t from_bytes; /* per row */
    size_t to_bytes;   /* per row */
    uint32_t channels;
    uint32_t prefetch_rows; /* distance of prefetches, in rows; 0 = none */
    stoker_dtype from, to;
    stoker_layout layout;
    uint32_t period; /* elements after which factor and bias repeat; NHWC: a multiple of channels */
    float factor[16 * STK_CHANNELS_MAX]; /* per element of the period; NCHW: per channel */
    float bias[16 * STK_CHANNELS_MAX];
    bool copies;             /* values are unchanged; only the layout may differ */
    stk_elements_fn *widen;  /* integers to a wider type; NULL = no such plan */
    uint32_t table_channels; /* rows of table in use; 0 = no table */
    uint32_t table[STK_TABLE_CHANNELS_MAX][256]; /* UINT8 input, CPU without fma: output bits */
};

/* Returns STOKER_EINVAL (bad sizes) or STOKER_ETYPE (no such conversion). Any thread. */
int stk_convert_plan_init(struct stk_convert_plan *plan, const struct stk_convert_options *options);

/* The same by plain loops, one element at a time: the tests' reference. */
void stk_convert_rows_reference(const struct stk_convert_plan *plan, const void *const *rows,
                                uint32_t count, uint32_t ahead, void *out);

/* IEEE 754 binary16 and bfloat16, round to nearest, ties to even; NaN stays NaN. */
uint16_t stk_float16_from_float(float value);
uint16_t stk_bfloat16_from_float(float value);
float stk_float_from_float16(uint16_t bits);
float stk_float_from_bfloat16(uint16_t bits);

#endif
