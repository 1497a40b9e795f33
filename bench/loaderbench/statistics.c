/* statistics.c - see statistics.h. */
#include "bench/loaderbench/statistics.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median_of_sorted(const double *values, size_t count)
{
    size_t middle = count / 2;
    if (count % 2 == 1)
        return values[middle];
    return (values[middle - 1] + values[middle]) / 2;
}

static size_t rank_of_p99(size_t count)
{
    size_t below = (count * 99 + 99) / 100; /* rounded up */
    return below - 1;
}

struct bench_statistics bench_statistics_of(double *values, size_t count)
{
    if (count == 0)
        return (struct bench_statistics){ 0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN };
    assert(values != NULL);
    qsort(values, count, sizeof(values[0]), compare_doubles);

    struct bench_statistics out = { .count = count,
                                    .median = median_of_sorted(values, count),
                                    .min = values[0],
                                    .max = values[count - 1],
                                    .p99 = values[rank_of_p99(count)] };
    out.spread = out.median > 0 ? (out.max - out.min) / out.median : NAN;
    const bool few = count < 5;
    const size_t quarter = few ? 0 : count / 4;
    const size_t skip = count / 10;
    out.half_spread =
        out.median > 0 ? (values[count - 1 - quarter] - values[quarter]) / out.median : NAN;
    out.low = values[skip] / (few ? 1.25 : 1);
    out.high = values[count - 1 - skip] * (few ? 1.25 : 1);
    return out;
}
