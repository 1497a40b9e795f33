/* together.h - a window or a ceiling of all ranks: begun together, added up. With one process
 * everything stays as it is. */
#ifndef BENCH_CELL_TOGETHER_H
#define BENCH_CELL_TOGETHER_H

#include "bench/loaderbench/cell/run.h"

/* Meet, and agree how much every rank consumes: equally many whole epochs, or, if an epoch takes
 * too long on any rank, equally long. `rate`: samples/s of this rank just before; NaN = unknown. */
int bench_together_start(struct bench_run *run, double rate, struct bench_window_limits *limits);

/* Meet before a first epoch, which every rank consumes once. */
int bench_together_first(struct bench_run *run);

/* Turn this rank's window into that of all: sums, over the time of the slowest rank. */
int bench_together_add(struct bench_run *run, struct bench_window *window);

/* bench_ceiling_measure() on all ranks at a time; *rate is the sum. */
int bench_together_ceiling(struct bench_ranks *ranks, enum bench_ceiling_kind kind,
                           const struct bench_work *work, double *rate, stoker_error *error);

/* A cell has begun here with rc, or failed. Returns what it did on all ranks; raises *bytes to the
 * most of any rank. */
int bench_together_begun(struct bench_run *run, int rc, uint64_t *bytes);

/* Samples of this rank's share of an epoch. */
uint64_t bench_together_share(const struct bench_bench *bench);

/* The ids that all ranks have checked are all those of the data set, if each has checked its whole
 * share. *verified becomes their number. STOKER_ECORRUPT, with the run's error. */
int bench_together_verify(struct bench_run *run, const struct bench_verify *verify,
                          uint64_t *verified);

#endif
