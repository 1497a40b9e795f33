/* beta.c - see beta.h. */
#include "loader/pipeline/batch/beta.h"

#include <assert.h>
#include <math.h>

#include "loader/base/exact_math.h"

/* A number in (0, 1): a logarithm follows. */
static double between(stoker_rng *rng)
{
    return ((double)(stoker_rng_u64(rng) >> 11) + 0.5) * 0x1p-53;
}

/* e to the x, also where stk_exact_exp() ends; infinity above. */
static double power(double x)
{
    return x > 700.0 ? INFINITY : stk_exact_exp(x);
}

/* X = u^(1 / alpha), Y = v^(1 / alpha), kept if X + Y <= 1: X / (X + Y). In logarithms, because
 * both may be smaller than any double. */
static double by_powers(stoker_rng *rng, double alpha)
{
    for (;;) {
        const double x = stk_exact_log(between(rng)) / alpha;
        const double y = stk_exact_log(between(rng)) / alpha;
        if (power(x) + power(y) <= 1.0)
            return 1.0 / (1.0 + power(y - x));
    }
}

static double gamma_of(stoker_rng *rng, double alpha)
{
    const double d = alpha - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        const double x = stoker_rng_normal(rng);
        const double root = 1.0 + c * x;
        const double v = root * root * root;
        if (v > 0.0 && stk_exact_log(between(rng)) < 0.5 * x * x + d - d * v + d * stk_exact_log(v))
            return d * v;
    }
}

double stk_beta(stoker_rng *rng, double alpha)
{
    assert(alpha > 0.0);
    if (alpha <= 1.0)
        return by_powers(rng, alpha);
    const double first = gamma_of(rng, alpha), second = gamma_of(rng, alpha);
    return first / (first + second);
}
