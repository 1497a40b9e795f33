/* test_float16.c - binary16 and bfloat16 against their definition, all 65536 values.
 *
 * Method: a reference based on ldexp() widens every half. Three points between two neighboring
 * halves decide the rounding: the tie, and the floats just below and above it. That covers
 * subnormals, overflow and each carry.
 */
#include "kernels/convert/convert.h"
#include "support/leaks.h"
#include <math.h>

enum { HALVES = 65536 };

struct half_type {
    const char *name;
    int mantissa_bits, bias;
    uint16_t infinity, quiet_bit;
    uint16_t (*from_float)(float value);
    float (*to_float)(uint16_t bits);
};

static const struct half_type float16 = {
    "float16", 10, 15, 0x7c00, 0x0200, stk_float16_from_float, stk_float_from_float16,
};
static const struct half_type bfloat16 = {
    "bfloat16", 7, 127, 0x7f80, 0x0040, stk_bfloat16_from_float, stk_float_from_bfloat16,
};

/* Returns the value of a finite half, or what infinity's code would be worth. */
static double value_of(const struct half_type *type, uint32_t magnitude)
{
    int exponent = (int)(magnitude >> type->mantissa_bits);
    double mantissa = magnitude & ((1U << type->mantissa_bits) - 1);
    if (exponent > 0)
        mantissa += (double)(1U << type->mantissa_bits);
    else
        exponent = 1;
    return ldexp(mantissa, exponent - type->bias - type->mantissa_bits);
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static void check_widening(const struct half_type *type)
{
    for (uint32_t half = 0; half < HALVES; half++) {
        float value = type->to_float((uint16_t)half);
        uint32_t magnitude = half & 0x7fff;
        cr_assert_eq(signbit(value) != 0, half >> 15, "%s %04x: sign", type->name, half);
        if (magnitude > type->infinity)
            cr_assert(isnan(value), "%s %04x is NaN", type->name, half);
        else if (magnitude == type->infinity)
            cr_assert(isinf(value), "%s %04x is infinite", type->name, half);
        else
            cr_assert_eq((double)fabsf(value), value_of(type, magnitude), "%s %04x", type->name,
                         half);
    }
}

static void check_round_trip(const struct half_type *type)
{
    for (uint32_t half = 0; half < HALVES; half++) {
        uint32_t back = type->from_float(type->to_float((uint16_t)half));
        bool is_nan = (half & 0x7fff) > type->infinity;
        cr_assert_eq(back, is_nan ? half | type->quiet_bit : half, "%s %04x came back as %04x",
                     type->name, half, back);
    }
}

static void check_near(const struct half_type *type, float value, uint32_t expected)
{
    cr_assert_eq(type->from_float(value), expected, "%s of %a", type->name, (double)value);
    cr_assert_eq(type->from_float(-value), expected | 0x8000, "%s of %a", type->name,
                 (double)-value);
}

/* Checks around the middle between `half` and its upper neighbor, infinity included. */
static void check_ties(const struct half_type *type)
{
    for (uint32_t half = 0; half < type->infinity; half++) {
        double middle = (value_of(type, half) + value_of(type, half + 1)) / 2;
        float tie = (float)middle;
        cr_assert_eq((double)tie, middle, "a tie of %s is a float", type->name);
        check_near(type, tie, half + (half & 1));
        check_near(type, nextafterf(tie, 0.0F), half);
        check_near(type, nextafterf(tie, INFINITY), half + 1);
    }
}

static void check_extremes(const struct half_type *type)
{
    check_near(type, 0.0F, 0);
    check_near(type, 0x1p-149F, 0);
    check_near(type, 0x1.fffffep127F, type->infinity);
    check_near(type, INFINITY, type->infinity);
    for (uint32_t payload = 1; payload < 0x800000; payload = payload * 2 + 1) {
        uint32_t half = type->from_float(float_of(0x7f800000 | payload));
        cr_assert_gt(half, type->infinity, "%s: NaN %06x stays one", type->name, payload);
        cr_assert_leq(half, 0x7fff, "%s: NaN %06x keeps its sign", type->name, payload);
        half = type->from_float(float_of(0xff800000 | payload));
        cr_assert_gt(half, 0x8000U | type->infinity, "%s: NaN -%06x", type->name, payload);
    }
    cr_assert_eq(bits_of(type->to_float(0x8000)), 0x80000000);
}

static void check_all(const struct half_type *type)
{
    check_widening(type);
    check_round_trip(type);
    check_ties(type);
    check_extremes(type);
}

CleanTest(float16, rounds_to_nearest_even_everywhere)
{
    check_all(&float16);
}

CleanTest(float16, bfloat16_rounds_to_nearest_even_everywhere)
{
    check_all(&bfloat16);
}
