/* exact_math.h - logarithm and exponential with the same bits on every machine.
 *
 * libm's differ between libraries in the last bit. These use only operations that IEEE 754 defines,
 * in a fixed order; the files that include this are compiled with -ffp-contract=off.
 */
#ifndef STK_BASE_EXACT_MATH_H
#define STK_BASE_EXACT_MATH_H

#include <stdint.h>
#include <string.h>

/* Natural logarithm of a normal x > 0, relative error below 1e-15 (absolute near x = 1). x = m 2^e
 * with m in [sqrt(1/2), sqrt(2)); log m = 2 artanh((m - 1) / (m + 1)) as a series. */
static inline double stk_exact_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    int exponent = (int)(bits >> 52) - 1023;
    bits = (bits & 0x000FFFFFFFFFFFFFU) | 0x3FF0000000000000U;
    double m;
    memcpy(&m, &bits, sizeof(m));
    if (m > 1.4142135623730951) {
        m *= 0.5;
        exponent++;
    }
    const double t = (m - 1.0) / (m + 1.0), square = t * t;
    double sum = 0.0;
    for (int n = 23; n >= 1; n -= 2)
        sum = sum * square + 1.0 / (double)n;
    return 2.0 * t * sum + (double)exponent * 0.6931471805599453;
}

/* e to the x, relative error below 1e-13; 0 below -700. x <= 700. x = k log 2 + r with |r| <= 0.35;
 * the Taylor series of r, times 2^k. */
static inline double stk_exact_exp(double x)
{
    if (x < -700.0)
        return 0.0;
    const double scaled = x * 1.4426950408889634;
    const int k = (int)(scaled + (scaled < 0.0 ? -0.5 : 0.5));
    const double r = x - (double)k * 0.6931471805599453;
    double sum = 1.0;
    for (int n = 14; n >= 1; n--)
        sum = 1.0 + r / (double)n * sum;
    const uint64_t bits = (uint64_t)(k + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof(power));
    return sum * power;
}

#endif
