/* run.h - one cell while it runs: what cell.c and cell_ceilings.c share. */
#ifndef BENCH_CELL_RUN_H
#define BENCH_CELL_RUN_H

#include "bench/cell/cell.h"
#include "bench/cell/consumer.h"

#include <stddef.h>

enum { BENCH_SERIES_MAX = 4 * BENCH_REPEATS_MAX }; /* a cold repeat evicts up to three times */

struct bench_series {
    double values[BENCH_SERIES_MAX];
    size_t count;
};

/* The rate of one kind of epoch, with the ceilings that belong to it. */
struct bench_figure {
    struct bench_series rates, byte_rates;
    stoker_stats total; /* counts and times of all its stretches together */
    enum bench_ceiling_kind fitting;
    bool has_fitting;
    struct bench_series fitting_rates, shares;
    struct bench_series ceiling_shares[BENCH_CEILING_COUNT];
};

/* Everything one cell needs while it runs. */
struct bench_run {
    struct bench_bench *bench;
    struct bench_choice choice;
    struct bench_cell *out;
    stoker_loader_options options;
    stoker_error error;
    /* Conversion to the rows that are delivered; with transforms, for the output's shape. */
    struct stk_convert_plan plan;
    struct bench_transform transform;
    bool transforms;                     /* something is asked for */
    struct stk_convert_plan stored_plan; /* nothing is converted */
    struct stk_convert_plan bytes_plan;  /* of encoded samples as they are read */
    struct bench_consumer consumer;
    stoker_stats stats;
    struct bench_window_limits limits;
    int rc;   /* of the repeats: the first failure ends them */
    bool cut; /* epochs are too long to be timed whole */
    /* Epochs: the first one of a loader with a cache, and all others. */
    struct bench_figure first, later;
    struct bench_figure *figure;     /* of these the one that is being measured */
    enum bench_ceiling_kind copying; /* on a GPU, where batches are copied: how fast that can go */
    bool has_copying;
    struct bench_series cpus, stalls, gaps, best_shares, resident, workers;
};

/* Add a value; NaN and infinity are left out. */
void bench_series_push(struct bench_series *series, double value);
double bench_series_median(struct bench_series *series);

/* Add one stretch of consuming. */
void bench_figure_add(struct bench_figure *figure, const struct bench_window *window);

/* What its stretches say together: thread time per sample, and the limit in words. */
struct bench_stages bench_figure_stages(const struct bench_figure *figure);
void bench_figure_judge(const struct bench_figure *figure, stoker_stats *out);

/* Fill in the medians against each ceiling that was measured; returns their number. */
uint32_t bench_figure_shares(struct bench_figure *figure, struct bench_share_row *out);

/* Take the loader's error for the cell's, if it has none yet. Returns rc. */
int bench_run_explain(struct bench_run *run, int rc);
int bench_run_read_stats(struct bench_run *run);

/* Measure first epochs, by loaders of their own, and their ceilings. Does nothing for a cell without a cache. */
int bench_run_first_epochs(struct bench_run *run);

/* Fill in cell.first, when all else is. */
void bench_run_conclude_first(struct bench_run *run);

/* Choose the bare loops that do the same work as the loader with this cache, by what run->stats says;
 * run->figure notes which. */
void bench_run_find_fitting(struct bench_run *run, stoker_cache cache);

/* The ceiling that counts: the one that fits or, on a GPU, that of the way there if it is lower. */
enum bench_ceiling_kind bench_run_lowest(struct bench_run *run, struct bench_figure *figure);

/* Measure each ceiling of run->figure once. */
int bench_run_ceilings(struct bench_run *run);

/* Take the file out of the page cache, and note what stayed. */
int bench_run_evict(struct bench_run *run);

/* Copy a few batches of the consumer's loader, then hand them to it again and again for `seconds`. On a
 * GPU: the step's kernel on one batch, again and again. Errors: STOKER_ENOMEM and what loader and
 * GPU return. */
int bench_headspace_measure(const struct bench_consumer *consumer, double seconds,
                            double *samples_per_s);

/* Take the state of `loader` (two batches further on, so that it lies within an epoch where
 * there is one), start a second loader from it, and time that one from before create to its
 * first batch. Both must deliver the same samples then: STOKER_EMISMATCH if they do not. */
int bench_resume_measure(const stoker_dataset *dataset, const stoker_loader_options *options,
                         stoker_loader *loader, double *resume_ms, stoker_error *error);

#endif
