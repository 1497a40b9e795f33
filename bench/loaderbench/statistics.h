/* statistics.h - median, extremes and spread of repeated measurements. */
#ifndef BENCH_STATISTICS_H
#define BENCH_STATISTICS_H

#include <stddef.h>

struct bench_statistics {
    size_t count;  /* values; with 0 all others are NaN */
    double median; /* the mean of the two middle values when count is even */
    double min;
    double max;
    double p99;         /* nearest rank: the smallest value with 99 % at or below it */
    double spread;      /* (max - min) / median; 0 = all equal */
    double half_spread; /* the same of the middle half; of fewer than five values, of all */
    /* Where the middle four fifths lie; of fewer than ten values, all of them, and of fewer than
     * five, which say little, a quarter more at both ends. Rates whose intervals overlap are not
     * measurably different. */
    double low;
    double high;
};

/* Sorts values in place. */
struct bench_statistics bench_statistics_of(double *values, size_t count);

#endif
