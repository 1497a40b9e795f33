/* test_beta.c - numbers from Beta(alpha, alpha): mean, variance and shares of the distribution, and
 * the bits of some.
 *
 * Exact values: variance 1 / (4 (2 alpha + 1)); for alpha 1/2 P(x < t) = 2/pi asin(sqrt t), for 2
 * it is 3 t^2 - 2 t^3. Bounds are five deviations of the mean of N numbers.
 */
#include "loader/pipeline/batch/beta.h"

#include <criterion/criterion.h>
#include <math.h>

enum { N = 40000 };

static stoker_rng generator(uint64_t seed)
{
    stoker_rng rng;
    stoker_rng_init(&rng, seed, 0, 0, 1);
    return rng;
}

Test(beta, mean_and_variance_are_those_of_the_distribution)
{
    static const double alphas[] = { 0.01, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 8.0, 100.0 };
    for (size_t a = 0; a < sizeof(alphas) / sizeof(alphas[0]); a++) {
        stoker_rng rng = generator(a);
        const double variance = 1.0 / (4.0 * (2.0 * alphas[a] + 1.0));
        double sum = 0.0, squares = 0.0;
        for (int i = 0; i < N; i++) {
            const double x = stk_beta(&rng, alphas[a]);
            cr_assert(x >= 0.0 && x <= 1.0);
            sum += x;
            squares += (x - 0.5) * (x - 0.5);
        }
        cr_assert_lt(fabs(sum / N - 0.5), 5.0 * sqrt(variance / N), "alpha %g: mean %g", alphas[a],
                     sum / N);
        /* (x - 1/2)^2 is at most 1/4, so its deviation is at most half of sqrt(variance). */
        cr_assert_lt(fabs(squares / N - variance), 2.5 * sqrt(variance / N), "alpha %g: %g",
                     alphas[a], squares / N);
    }
}

static void check_share(double alpha, double most, double share)
{
    stoker_rng rng = generator(77);
    int below = 0;
    for (int i = 0; i < N; i++)
        below += stk_beta(&rng, alpha) < most;
    cr_assert_lt(fabs(below / (double)N - share), 5.0 * sqrt(share * (1.0 - share) / N),
                 "alpha %g: %d below %g", alpha, below, most);
}

Test(beta, shares_are_those_of_the_distribution)
{
    for (double t = 0.1; t < 0.95; t += 0.2) {
        check_share(0.5, t, 2.0 / 3.14159265358979323846 * asin(sqrt(t)));
        check_share(1.0, t, t);
        check_share(2.0, t, 3.0 * t * t - 2.0 * t * t * t);
    }
}

/* The same on every machine. */
Test(beta, bits_are_known)
{
    static const double alphas[] = { 0.2, 1.0, 3.0 };
    static const double expected[] = { 0x1.ff3dd2572b687p-1, 0x1.9293578febecdp-1,
                                       0x1.9d187510fa033p-2 };
    for (size_t a = 0; a < 3; a++) {
        stoker_rng rng = generator(5);
        const double x = stk_beta(&rng, alphas[a]);
        cr_assert_eq(x, expected[a], "alpha %g: %a", alphas[a], x);
    }
}
