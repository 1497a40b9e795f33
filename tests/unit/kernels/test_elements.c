/* test_elements.c - elements of fields from one type to another: every pair of types against plain
 * arithmetic, and the pairs that are refused.
 */
#include <math.h>
#include <stdint.h>

#include "kernels/convert/convert.h"
#include "kernels/convert/elements.h"
#include "support/leaks.h"

enum { COUNT = 70001, TYPES = STOKER_DTYPE_BOOL + 1 };

static const struct type {
    size_t bytes;
    bool is_float, is_signed;
    unsigned bits; /* integers: bits of a value */
} types[TYPES] = {
    [STOKER_DTYPE_UINT8] = { 1, false, false, 8 },   [STOKER_DTYPE_INT8] = { 1, false, true, 7 },
    [STOKER_DTYPE_UINT16] = { 2, false, false, 16 }, [STOKER_DTYPE_INT16] = { 2, false, true, 15 },
    [STOKER_DTYPE_UINT32] = { 4, false, false, 32 }, [STOKER_DTYPE_INT32] = { 4, false, true, 31 },
    [STOKER_DTYPE_UINT64] = { 8, false, false, 64 }, [STOKER_DTYPE_INT64] = { 8, false, true, 63 },
    [STOKER_DTYPE_BOOL] = { 1, false, false, 1 },    [STOKER_DTYPE_FLOAT16] = { 2, true, true, 0 },
    [STOKER_DTYPE_BFLOAT16] = { 2, true, true, 0 },  [STOKER_DTYPE_FLOAT32] = { 4, true, true, 0 },
    [STOKER_DTYPE_FLOAT64] = { 8, true, true, 0 },
};

static unsigned char in[COUNT * 8 + 1], out[COUNT * 8 + 9];

/* Every pattern of 16 bits, then random ones. */
static void fill(stoker_dtype from)
{
    uint64_t state = (uint64_t)from;
    for (size_t i = 0; i < COUNT; i++) {
        uint64_t bits = i;
        if (i >= 65536 || types[from].bytes > 2) {
            state = state * 6364136223846793005U + 1442695040888963407U;
            bits = state >> (i % 48);
        }
        if (from == STOKER_DTYPE_BOOL)
            bits = i % 3;                                                 /* 2 counts as true */
        memcpy(&in[1 + i * types[from].bytes], &bits, types[from].bytes); /* not aligned */
    }
}

/* Sign and magnitude of an integer element. */
static void load_integer(stoker_dtype from, const unsigned char *at, uint64_t *bits, bool *negative)
{
    *bits = 0;
    memcpy(bits, at, types[from].bytes);
    if (from == STOKER_DTYPE_BOOL)
        *bits = *bits != 0;
    *negative = types[from].is_signed && *bits >> types[from].bits != 0;
    if (*negative && types[from].bytes < 8) /* extend the sign */
        *bits |= UINT64_MAX << (8 * types[from].bytes);
}

static float load_float(stoker_dtype from, const unsigned char *at, double *wide)
{
    uint16_t half;
    float value;
    memcpy(&half, at, sizeof(half));
    if (from == STOKER_DTYPE_FLOAT16)
        value = stk_float_from_float16(half);
    else if (from == STOKER_DTYPE_BFLOAT16)
        value = stk_float_from_bfloat16(half);
    else
        memcpy(&value, at, sizeof(value));
    *wide = (double)value;
    if (from == STOKER_DTYPE_FLOAT64) {
        memcpy(wide, at, sizeof(*wide));
        value = (float)*wide;
    }
    return value;
}

static void load_number(stoker_dtype from, const unsigned char *at, float *single, double *wide)
{
    uint64_t bits;
    bool negative;
    if (types[from].is_float) {
        *single = load_float(from, at, wide);
        return;
    }
    load_integer(from, at, &bits, &negative);
    *single = negative ? (float)(int64_t)bits : (float)bits;
    *wide = negative ? (double)(int64_t)bits : (double)bits;
}

static void expect_float(stoker_dtype from, stoker_dtype to, size_t i)
{
    float single;
    double wide;
    unsigned char expected[8];
    load_number(from, &in[1 + i * types[from].bytes], &single, &wide);
    const uint16_t half = to == STOKER_DTYPE_FLOAT16 ? stk_float16_from_float(single)
                                                     : stk_bfloat16_from_float(single);
    memcpy(expected, &half, sizeof(half));
    if (to == STOKER_DTYPE_FLOAT32)
        memcpy(expected, &single, sizeof(single));
    if (to == STOKER_DTYPE_FLOAT64)
        memcpy(expected, &wide, sizeof(wide));
    if (isnan(single))
        return; /* the payload is the CPU's */
    cr_assert_eq(memcmp(&out[1 + i * types[to].bytes], expected, types[to].bytes), 0,
                 "element %zu of %d to %d", i, (int)from, (int)to);
}

static void expect_integer(stoker_dtype from, stoker_dtype to, size_t i)
{
    uint64_t before, after;
    bool was_negative, is_negative;
    load_integer(from, &in[1 + i * types[from].bytes], &before, &was_negative);
    load_integer(to, &out[1 + i * types[to].bytes], &after, &is_negative);
    cr_assert_eq(before, after, "element %zu of %d to %d", i, (int)from, (int)to);
    cr_assert_eq(was_negative, is_negative);
}

static bool is_possible(stoker_dtype from, stoker_dtype to)
{
    if (from == STOKER_DTYPE_NONE || to == STOKER_DTYPE_NONE)
        return false;
    if (from == to || types[to].is_float)
        return true;
    return !types[from].is_float && to != STOKER_DTYPE_BOOL && types[from].bits <= types[to].bits &&
           (!types[from].is_signed || types[to].is_signed);
}

CleanTest(elements, every_pair_of_types_is_right_or_refused)
{
    for (stoker_dtype from = STOKER_DTYPE_NONE; from <= STOKER_DTYPE_BOOL; from++)
        for (stoker_dtype to = STOKER_DTYPE_NONE; to <= STOKER_DTYPE_BOOL; to++) {
            stk_elements_fn *convert = stk_elements_choose(from, to);
            cr_assert_eq(convert != NULL, is_possible(from, to), "%d to %d", (int)from, (int)to);
            if (convert == NULL)
                continue;
            fill(from);
            memset(out, 0xEE, sizeof(out));
            convert(&in[1], &out[1], COUNT);
            for (size_t i = 0; i < COUNT; i++)
                if (from == to)
                    cr_assert_eq(memcmp(&out[1 + i * types[to].bytes], &in[1 + i * types[to].bytes],
                                        types[to].bytes),
                                 0);
                else if (types[to].is_float)
                    expect_float(from, to, i);
                else
                    expect_integer(from, to, i);
            cr_assert_eq(out[0], 0xEE);
            cr_assert_eq(out[1 + COUNT * types[to].bytes], 0xEE);
        }
    cr_assert_null(stk_elements_choose((stoker_dtype)1000, STOKER_DTYPE_INT8));
    cr_assert_null(stk_elements_choose(STOKER_DTYPE_INT8, (stoker_dtype)1000));
}

/* Rows of field 0 go by a plan. */
CleanTest(elements, a_plan_widens_integers)
{
    struct stk_convert_plan plan;
    struct stk_convert_options options = { .from = STOKER_DTYPE_UINT16,
                                           .to = STOKER_DTYPE_INT64,
                                           .elements = 5,
                                           .channels = 5,
                                           .scale = 1.0F };
    static const uint16_t rows[2][5] = { { 0, 1, 32767, 32768, 65535 }, { 7, 6, 5, 4, 3 } };
    const void *const pointers[] = { rows[1], rows[0] };
    int64_t wide[2][5];
    cr_assert_eq(stk_convert_plan_init(&plan, &options), STOKER_OK);
    cr_assert_eq(plan.to_bytes, 40U);
    plan.rows(&plan, pointers, 2, 0, wide);
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(wide[0][i], rows[1][i]);
        cr_assert_eq(wide[1][i], rows[0][i]);
    }
    options.layout = STOKER_LAYOUT_NCHW;
    cr_assert_eq(stk_convert_plan_init(&plan, &options), STOKER_ETYPE);
    options.layout = STOKER_LAYOUT_NHWC;
    options.to = STOKER_DTYPE_INT16;
    cr_assert_eq(stk_convert_plan_init(&plan, &options), STOKER_ETYPE);
    options.from = STOKER_DTYPE_FLOAT32;
    options.to = STOKER_DTYPE_INT64;
    cr_assert_eq(stk_convert_plan_init(&plan, &options), STOKER_ETYPE);
}
