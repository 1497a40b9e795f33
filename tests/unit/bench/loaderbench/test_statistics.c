/* test_statistics.c - what a few repeats amount to. */
#include <math.h>

#include "bench/loaderbench/statistics.h"
#include "support/leaks.h"

CleanTest(bench_statistics, odd_and_even_counts)
{
    double odd[] = { 5, 1, 3 };
    double even[] = { 4, 1, 3, 2 };

    struct bench_statistics three = bench_statistics_of(odd, 3);
    cr_assert_eq(three.count, 3);
    cr_assert_eq(three.median, 3);
    cr_assert_eq(three.min, 1);
    cr_assert_eq(three.max, 5);
    cr_assert_eq(three.p99, 5);
    cr_assert_float_eq(three.spread, 4.0 / 3.0, 1e-12);

    struct bench_statistics four = bench_statistics_of(even, 4);
    cr_assert_eq(four.median, 2.5);
    cr_assert_eq(four.min, 1);
    cr_assert_eq(four.max, 4);
}

CleanTest(bench_statistics, one_value_is_all_of_them)
{
    double one[] = { 7 };
    struct bench_statistics found = bench_statistics_of(one, 1);
    cr_assert_eq(found.median, 7);
    cr_assert_eq(found.min, 7);
    cr_assert_eq(found.max, 7);
    cr_assert_eq(found.p99, 7);
    cr_assert_eq(found.spread, 0);
}

CleanTest(bench_statistics, nothing_measured_is_no_number)
{
    struct bench_statistics found = bench_statistics_of(NULL, 0);
    cr_assert_eq(found.count, 0);
    cr_assert(isnan(found.median));
    cr_assert(isnan(found.min));
    cr_assert(isnan(found.max));
    cr_assert(isnan(found.p99));
    cr_assert(isnan(found.spread));

    double zeros[] = { 0, 0 };
    cr_assert(isnan(bench_statistics_of(zeros, 2).spread)); /* not 0 / 0 in disguise */
}

CleanTest(bench_statistics, p99_is_the_nearest_rank)
{
    double values[200];
    for (size_t count = 1; count <= 200; count++) {
        for (size_t index = 0; index < count; index++)
            values[index] = (double)(count - index); /* count .. 1 */
        double p99 = bench_statistics_of(values, count).p99;
        size_t below = 0;
        for (size_t index = 0; index < count; index++)
            below += values[index] <= p99;
        cr_assert_geq(below * 100, count * 99, "of %zu", count);
        cr_assert_lt((below - 1) * 100, count * 99, "of %zu: a smaller value would do", count);
    }
}

/* Of ten values and more, the outer tenths do not count; of few, a quarter more does. */
CleanTest(bench_statistics, the_interval_ignores_outliers_if_there_are_enough_values)
{
    double values[20];
    for (size_t count = 1; count <= 20; count++) {
        for (size_t index = 0; index < count; index++)
            values[index] = 100 + (double)index;
        const struct bench_statistics found = bench_statistics_of(values, count);
        const double skip = (double)(count / 10);
        const double wider = count < 5 ? 1.25 : 1;
        const double quarter = count < 5 ? 0 : (double)(count / 4);
        cr_assert_float_eq(found.low, (100 + skip) / wider, 1e-9, "of %zu", count);
        cr_assert_float_eq(found.high, (100 + (double)(count - 1) - skip) * wider, 1e-9, "of %zu",
                           count);
        cr_assert_float_eq(found.half_spread * found.median, (double)(count - 1) - 2 * quarter,
                           1e-9, "of %zu", count);
    }
    cr_assert(isnan(bench_statistics_of(NULL, 0).low));
}
