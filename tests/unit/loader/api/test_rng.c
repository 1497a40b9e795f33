/* test_rng.c - stoker_rng draws known numbers, and they are distributed as documented.
 *
 * The known numbers come from the formulas in stoker/rng.h, written in Python with its own
 * integers.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include <stoker/rng.h>

#include "loader/base/exact_math.h"

enum { DRAWS = 200000 };

static stoker_rng rng_of(uint64_t seed, uint64_t epoch, uint64_t sample, uint64_t purpose)
{
    stoker_rng rng;
    stoker_rng_init(&rng, seed, epoch, sample, purpose);
    return rng;
}

Test(rng, numbers_are_known)
{
    static const struct {
        uint64_t seed, epoch, sample, purpose, numbers[4];
    } known[] = {
        { 0,
          0,
          0,
          0,
          { 0x1F139211B8F85535U, 0xF0B3CCEAB50F8485U, 0x7431660B9BDE7F80U, 0xB4F73663C5E24E04U } },
        { 1,
          2,
          3,
          4,
          { 0x505216E362762AC5U, 0xD6C1AE505B3165BAU, 0xD514708CB5ED4F4EU, 0x31F4C4E865BFC694U } },
        { UINT64_MAX,
          UINT64_MAX,
          UINT64_MAX,
          UINT64_MAX,
          { 0x50A82BA37240B98BU, 0x231099DE4BB60E1FU, 0x84038D15C33FCE68U, 0xCEDBAF6B26B24917U } },
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        stoker_rng rng = rng_of(known[i].seed, known[i].epoch, known[i].sample, known[i].purpose);
        for (size_t n = 0; n < 4; n++)
            cr_assert_eq(stoker_rng_u64(&rng), known[i].numbers[n]);
    }
}

Test(rng, every_function_gives_known_results)
{
    stoker_rng rng = rng_of(7, 1, 9, 0);
    cr_assert_eq(stoker_rng_double(&rng), 0x1.974cb2797d826p-1);
    cr_assert_eq(stoker_rng_float(&rng), 0x1.b0acb8p-3F);
    cr_assert_eq(stoker_rng_below(&rng, 10), 1);
    cr_assert_eq(stoker_rng_below(&rng, 12000000000000000000U), 8801397769451161367U);
    static const double normals[] = { 0x1.15f4630f4dcfdp-2, 0x1.4d523d642abbbp-1,
                                      0x1.2c8d0361e513cp-3 };
    for (size_t i = 0; i < 3;
         i++) { /* the logarithm of Python's libm may differ in its last bits */
        const double value = stoker_rng_normal(&rng);
        cr_assert_float_eq(value, normals[i], 1e-15);
    }
}

/* Later runs and other machines must give these very bits. */
Test(rng, normal_numbers_are_the_same_bits_everywhere)
{
    stoker_rng rng = rng_of(3, 1, 4, 1);
    uint64_t hash = 0;
    for (int i = 0; i < 1000; i++) {
        const double value = stoker_rng_normal(&rng);
        uint64_t bits;
        memcpy(&bits, &value, sizeof(bits));
        hash = hash * 31 + bits;
    }
    cr_assert_eq(hash, 0xF8A22C44D9722325U, "%llx", (unsigned long long)hash);
}

Test(rng, a_copy_repeats_what_follows)
{
    for (int before = 0; before < 3; before++) {
        stoker_rng rng = rng_of(5, 0, 1, 2);
        for (int i = 0; i < before; i++)
            (void)stoker_rng_u64(&rng);
        stoker_rng copy = rng;
        for (int i = 0; i < 5; i++)
            cr_assert_eq(stoker_rng_u64(&rng), stoker_rng_u64(&copy));
    }
}

Test(rng, each_part_of_the_key_gives_other_numbers)
{
    uint64_t first[6];
    const uint64_t keys[6][4] = { { 1, 1, 1, 1 }, { 2, 1, 1, 1 }, { 1, 2, 1, 1 },
                                  { 1, 1, 2, 1 }, { 1, 1, 1, 2 }, { 0, 0, 0, 0 } };
    for (int i = 0; i < 6; i++) {
        stoker_rng rng = rng_of(keys[i][0], keys[i][1], keys[i][2], keys[i][3]);
        first[i] = stoker_rng_u64(&rng);
        for (int k = 0; k < i; k++)
            cr_assert_neq(first[i], first[k]);
    }
}

Test(rng, below_stays_below_and_has_no_favorite)
{
    enum { SIDES = 7 };
    uint32_t seen[SIDES] = { 0 };
    stoker_rng rng = rng_of(1, 2, 3, 4);
    cr_assert_eq(stoker_rng_below(&rng, 0), 0);
    cr_assert_eq(stoker_rng_below(&rng, 1), 0);
    cr_assert_eq(rng.drawn, 0);
    for (int i = 0; i < DRAWS; i++)
        seen[stoker_rng_below(&rng, SIDES)]++;
    double chi = 0;
    for (int side = 0; side < SIDES; side++) {
        const double expected = (double)DRAWS / SIDES, away = seen[side] - expected;
        chi += away * away / expected;
    }
    cr_assert_lt(chi, 22.5); /* 6 degrees of freedom: one in a thousand is above */
    for (int i = 0; i < 1000; i++)
        cr_assert_lt(stoker_rng_below(&rng, (UINT64_C(1) << 63) + 1), (UINT64_C(1) << 63) + 1);
}

Test(rng, uniform_numbers_fill_the_interval)
{
    double sum = 0, squares = 0, float_sum = 0;
    stoker_rng rng = rng_of(9, 9, 9, 9);
    for (int i = 0; i < DRAWS; i++) {
        const double value = stoker_rng_double(&rng);
        const float narrow = stoker_rng_float(&rng);
        cr_assert(value >= 0.0 && value < 1.0);
        cr_assert(narrow >= 0.0F && narrow < 1.0F);
        sum += value;
        squares += value * value;
        float_sum += (double)narrow;
    }
    cr_assert_float_eq(sum / DRAWS, 0.5, 0.003); /* deviation of the mean: 0.00065 */
    cr_assert_float_eq(float_sum / DRAWS, 0.5, 0.003);
    cr_assert_float_eq(squares / DRAWS, 1.0 / 3.0, 0.003);
}

Test(rng, normal_numbers_have_their_moments)
{
    double sums[4] = { 0 };
    stoker_rng rng = rng_of(2, 7, 1, 8);
    for (int i = 0; i < DRAWS; i++) {
        const double x = stoker_rng_normal(&rng);
        sums[0] += x;
        sums[1] += x * x;
        sums[2] += x * x * x;
        sums[3] += x * x * x * x;
    }
    cr_assert_float_eq(sums[0] / DRAWS, 0.0, 0.01);
    cr_assert_float_eq(sums[1] / DRAWS, 1.0, 0.015);
    cr_assert_float_eq(sums[2] / DRAWS, 0.0, 0.04);
    cr_assert_float_eq(sums[3] / DRAWS, 3.0, 0.12);
}

Test(rng, logarithm_and_exponential_are_close_to_libm)
{
    stoker_rng rng = rng_of(0, 0, 0, 1);
    for (int i = 0; i < 20000; i++) {
        const double x = 1400.0 * stoker_rng_double(&rng) - 700.0, power = exp(x);
        cr_assert_lt(fabs(stk_exact_exp(x) - power), 1e-13 * power);
        cr_assert_lt(fabs(stk_exact_log(power) - x), 1e-15 * fabs(x) + 1e-15);
    }
    cr_assert_eq(stk_exact_exp(0.0), 1.0);
    cr_assert_eq(stk_exact_exp(-1000.0), 0.0);
    cr_assert_eq(stk_exact_log(1.0), 0.0);
}
