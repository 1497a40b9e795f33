/* cell_run.h - one cell while it runs: what cell.c and cell_ceilings.c share. */
#ifndef BENCH_CELL_RUN_H
#define BENCH_CELL_RUN_H

#include "cell.h"
#include "consumer.h"

#include <stddef.h>

enum { BENCH_SERIES_MAX = 4 * BENCH_REPEATS_MAX }; /* a cold repeat evicts up to three times */

struct bench_series {
    double values[BENCH_SERIES_MAX];
    size_t count;
};

/* Everything one cell needs while it runs. */
struct bench_run {
    struct bench_bench *bench;
    struct bench_choice choice;
    struct bench_cell *out;
    stoker_loader_options options;
    stoker_error error;
    struct stk_convert_plan plan;
    struct stk_convert_plan stored_plan; /* nothing is converted */
    struct stk_convert_plan bytes_plan;  /* of encoded samples as they are read */
    struct bench_consumer consumer;
    stoker_stats stats;
    struct bench_window_limits limits;
    int rc;   /* of the repeats: the first failure ends them */
    bool cut; /* epochs are too long to be timed whole */
    enum bench_ceiling_kind fitting;
    bool has_fitting;
    enum bench_ceiling_kind copying; /* on a GPU, where batches are copied: how fast that can go */
    bool has_copying;
    struct bench_series rates, byte_rates, cpus, stalls, gaps, fitting_rates, shares, best_shares,
        resident, crews;
    struct bench_series ceiling_shares[BENCH_CEILING_COUNT];
};

/* Add a value; NaN and infinity are left out. */
void bench_series_push(struct bench_series *series, double value);
double bench_series_median(struct bench_series *series);

/* Which bare loop does the same work as this cell, by what its loader says of itself? */
bool bench_run_find_fitting(const struct bench_run *run, enum bench_ceiling_kind *kind);

/* Fill in the medians against each ceiling that was measured. */
void bench_run_conclude_shares(struct bench_run *run);

/* The ceiling that counts: the one that fits or, on a GPU, that of the way there if it is lower. */
enum bench_ceiling_kind bench_run_lowest(struct bench_run *run);

/* Measure each ceiling of this cell once. */
int bench_run_ceilings(struct bench_run *run);

/* Take the file out of the page cache, and note what stayed. */
int bench_run_evict(struct bench_run *run);

#endif
