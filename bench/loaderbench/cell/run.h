/* run.h - one cell while it runs: shared by the files of this folder. */
#ifndef BENCH_CELL_RUN_H
#define BENCH_CELL_RUN_H

#include "bench/loaderbench/cell/cell.h"
#include "bench/loaderbench/cell/consumer.h"

#include <stddef.h>

enum { BENCH_SERIES_MAX = 4 * BENCH_REPEATS_MAX }; /* a cold repeat evicts up to three times */

struct bench_series {
    double values[BENCH_SERIES_MAX];
    size_t count;
};

/* The rate of one kind of epoch, with the ceilings that belong to it. */
struct bench_figure {
    struct bench_series rates, byte_rates;
    stoker_stats total; /* sums over all stretches */
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
    /* Makes the delivered rows; with transforms, from images of the output's shape. */
    struct stk_convert_plan plan;
    struct bench_transform transform;
    bool transforms;
    struct stk_convert_plan stored_plan; /* converts nothing */
    struct stk_convert_plan bytes_plan;  /* copies encoded samples as read */
    struct bench_consumer consumer;
    stoker_stats stats;
    struct bench_window_limits limits;
    int rc;   /* first failure of a repeat; no repeat after it */
    bool cut; /* epochs are too long to be timed whole */
    /* The first epoch of a loader with a cache, and all other epochs. */
    struct bench_figure first, later;
    struct bench_figure *figure;     /* the one that is measured now */
    enum bench_ceiling_kind copying; /* on a GPU: the ceiling of the copies */
    bool has_copying;
    struct bench_series cpus, stalls, gaps, resident, workers;
    uint64_t bytes;     /* what the loader holds when the cell has begun, the most of all ranks */
    double *rank_rates; /* several ranks: sum over all windows of each rank's samples/s */
};

/* Adds a value; ignores NaN and infinity. */
void bench_series_push(struct bench_series *series, double value);
double bench_series_median(struct bench_series *series);

/* Adds one stretch of consuming. */
void bench_figure_add(struct bench_figure *figure, const struct bench_window *window);

/* Sums up the stretches: thread time per sample, and the limit in words. */
struct bench_stages bench_figure_stages(const struct bench_figure *figure);
void bench_figure_judge(const struct bench_figure *figure, stoker_stats *out);

/* Fills in the medians against each measured ceiling; returns their number. */
uint32_t bench_figure_shares(struct bench_figure *figure, struct bench_share_row *out);

/* Makes the loader's error the cell's if it has none yet. Returns rc. */
int bench_run_explain(struct bench_run *run, int rc);
int bench_run_read_stats(struct bench_run *run);

/* Measures first epochs, with separate loaders, and their ceilings. Does nothing without a
 * cache. */
int bench_run_first_epochs(struct bench_run *run);

/* Fills in cell.first; call it last. */
void bench_run_conclude_first(struct bench_run *run);

/* Chooses the bare loops that do the same work as the loader with this cache, from run->stats, and
 * notes them in run->figure. */
void bench_run_find_fitting(struct bench_run *run, stoker_cache cache);

/* The ceiling that counts: the one that fits or, on a GPU, that of the copies if it is lower. */
enum bench_ceiling_kind bench_run_lowest(struct bench_run *run, struct bench_figure *figure);

/* Measures each ceiling of run->figure once. */
int bench_run_ceilings(struct bench_run *run);

/* Drops the file from the page cache, and notes what stayed. */
int bench_run_evict(struct bench_run *run);

/* The rate if loading cost nothing: copies a few batches and hands them to the consumer repeatedly
 * for `seconds`. On a GPU, runs the step's kernel on one batch instead. Errors: STOKER_ENOMEM and
 * those of loader and GPU. */
int bench_headspace_measure(const struct bench_consumer *consumer, double seconds,
                            double *samples_per_s);

/* Takes the state of `loader` two batches further (within an epoch, if epochs are long enough),
 * resumes a second loader from it and times that one from before create to its first batch.
 * STOKER_EMISMATCH if the two then deliver different samples. */
int bench_resume_measure(const stoker_dataset *dataset, const stoker_loader_options *options,
                         stoker_loader *loader, double *resume_ms, stoker_error *error);

#endif
