/* test_alias.c - the table of weights is exact: each id has its mass of the columns, to the last
 * unit; draws are spread as the weights say; and the ids drawn are the same for ever.
 */
#include <math.h>

#include "loader/base/fault.h"
#include "loader/base/rng.h"
#include "loader/sampler/alias.h"
#include "loader/sampler/draws.h"
#include "support/leaks.h"

__extension__ typedef unsigned __int128 wide;

enum { COUNT_MAX = 5000 };

static double weights[COUNT_MAX];
static wide held[COUNT_MAX];

/* Add up the columns by id. Every id has a multiple of `count`: its mass, times the columns. */
static void check_columns(const struct stk_alias *alias)
{
    wide sum = 0;
    for (uint64_t i = 0; i < alias->count; i++)
        held[i] = 0;
    for (uint64_t i = 0; i < alias->count; i++) {
        const struct stk_alias_column *column = &alias->columns[i];
        cr_assert_leq(column->threshold, alias->height);
        cr_assert_lt(column->other, alias->count);
        held[i] += column->threshold;
        held[column->other] += alias->height - column->threshold;
    }
    for (uint64_t i = 0; i < alias->count; i++) {
        cr_assert((uint64_t)(held[i] % alias->count) == 0, "id %u", (unsigned)i);
        sum += held[i] / alias->count;
    }
    cr_assert(sum == alias->height);
    cr_assert_leq(alias->height, UINT64_C(1) << 62);
}

/* The mass of an id is its weight, scaled by one power of two for all and cut to an integer. */
static void check_masses(const struct stk_alias *alias)
{
    uint64_t largest = 0;
    int of_mass, of_weight;
    for (uint64_t i = 0; i < alias->count; i++)
        largest = weights[i] > weights[largest] ? i : largest;
    (void)frexp((double)(uint64_t)(held[largest] / alias->count), &of_mass);
    (void)frexp(weights[largest], &of_weight);
    for (uint64_t i = 0; i < alias->count; i++)
        cr_assert_eq((uint64_t)(held[i] / alias->count),
                     (uint64_t)ldexp(weights[i], of_mass - of_weight), "id %u of %u, weight %g",
                     (unsigned)i, (unsigned)alias->count, weights[i]);
}

static void check(uint64_t count)
{
    struct stk_alias alias;
    cr_assert_eq(stk_alias_make(&alias, weights, count), 0);
    check_columns(&alias);
    check_masses(&alias);
    stk_alias_free(&alias);
}

CleanTest(alias, every_id_has_exactly_its_mass)
{
    static const uint64_t counts[] = { 1, 2, 3, 7, 64, 100, 1000, COUNT_MAX };
    for (int c = 0; c < 8; c++)
        for (int kind = 0; kind < 6; kind++) {
            for (uint64_t i = 0; i < counts[c]; i++) {
                const double random = (double)(stk_mix64(i) >> 11) * 0x1p-53;
                weights[i] = kind == 0   ? 1.0                              /* equal */
                             : kind == 1 ? random                           /* any */
                             : kind == 2 ? (i == counts[c] / 2 ? 1.0 : 0.0) /* only one */
                             : kind == 3 ? ldexp(1.0, -(int)(i % 60))       /* far apart */
                             : kind == 4 ? (1.0 + random) * 0x1p1000        /* huge */
                                         : (1.0 + random) * 0x1p-1070;      /* subnormal */
            }
            check(counts[c]);
        }
}

/* The largest sum of masses that is sure: equal weights of a power of two fill it to a quarter at
 * least. */
CleanTest(alias, masses_are_as_fine_as_they_can_be)
{
    struct stk_alias alias;
    for (uint64_t count = 1; count <= 4096; count *= 2) {
        for (uint64_t i = 0; i < count; i++)
            weights[i] = 3.0;
        cr_assert_eq(stk_alias_make(&alias, weights, count), 0);
        cr_assert_gt(alias.height, UINT64_C(1) << 60);
        stk_alias_free(&alias);
    }
}

CleanTest(alias, weights_that_are_all_zero_are_refused)
{
    struct stk_alias alias;
    for (uint64_t i = 0; i < 10; i++)
        weights[i] = 0.0;
    cr_assert_eq(stk_alias_make(&alias, weights, 10), STOKER_EINVAL);
    cr_assert_null(alias.columns);
}

CleanTest(alias, each_allocation_may_fail)
{
    struct stk_alias alias;
    for (uint64_t i = 0; i < 10; i++)
        weights[i] = 1.0;
    for (uint64_t nth = 1; nth <= 3; nth++) {
        stk_fault_arm(STK_FAULT_MEMORY, nth);
        cr_assert_eq(stk_alias_make(&alias, weights, 10), STOKER_ENOMEM);
        cr_assert(stk_fault_disarm());
        cr_assert_eq(stk_fault_live_bytes(), 0);
    }
}

/* Pearson's chi-square over fixed seeds: the same figures on every machine. 999 degrees of freedom:
 * mean 999, standard deviation 45. */
CleanTest(alias, draws_are_spread_as_the_weights_say)
{
    enum { IDS = 1000, DRAWS = 1000000 };
    static uint64_t ids[DRAWS];
    static uint32_t seen[IDS];
    struct stk_draws draws = { .own = NULL };
    double sum = 0.0;
    for (uint64_t i = 0; i < IDS; i++) {
        weights[i] = 1.0 + (double)(i % 10);
        sum += weights[i];
    }
    cr_assert_eq(stk_alias_make(&draws.alias, weights, IDS), 0);
    for (uint64_t seed = 0; seed < 4; seed++) {
        double chi_square = 0.0;
        for (int i = 0; i < IDS; i++)
            seen[i] = 0;
        cr_assert_eq(stk_draws_ids(&draws, IDS, seed, seed, 0, 1, DRAWS, ids, NULL), 0);
        for (uint32_t i = 0; i < DRAWS; i++)
            seen[ids[i]]++;
        for (int i = 0; i < IDS; i++) {
            const double expected = weights[i] / sum * DRAWS;
            chi_square += (seen[i] - expected) * (seen[i] - expected) / expected;
        }
        cr_assert(chi_square > 999 - 4 * 45 && chi_square < 999 + 4 * 45, "%g", chi_square);
    }
    stk_alias_free(&draws.alias);
}

/* Positions that are taken apart or together are the same ones. */
CleanTest(alias, a_draw_depends_on_seed_epoch_and_position_only)
{
    static const uint64_t expected[] = { 53, 59, 67, 70, 34, 96, 88, 87 };
    uint64_t ids[100], one;
    struct stk_draws draws = { .own = NULL };
    for (uint64_t i = 0; i < 100; i++)
        weights[i] = (double)i;
    cr_assert_eq(stk_alias_make(&draws.alias, weights, 100), 0);
    cr_assert_eq(stk_draws_ids(&draws, 100, 7, 3, 1000, 1, 100, ids, NULL), 0);
    for (uint64_t i = 0; i < 100; i++) {
        cr_assert_eq(stk_draws_ids(&draws, 100, 7, 3, 1000 + i, 5, 1, &one, NULL), 0);
        cr_assert_eq(one, ids[i]);
        cr_assert_neq(one, 0, "an id without weight");
    }
    for (int i = 0; i < 8; i++)
        cr_assert_eq(ids[i], expected[i], "%d: %u", i, (unsigned)ids[i]);
    cr_assert_eq(stk_draws_ids(&draws, 100, 7, 3, 1000, 3, 33, ids + 50, NULL), 0);
    for (uint64_t i = 0; 3 * i < 50; i++)
        cr_assert_eq(ids[50 + i], ids[3 * i]);
    stk_alias_free(&draws.alias);
}
