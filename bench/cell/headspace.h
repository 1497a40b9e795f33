/* headspace.h - what a consumer would see if loading cost nothing. */
#ifndef BENCH_CELL_HEADSPACE_H
#define BENCH_CELL_HEADSPACE_H

#include "bench/cell/consumer.h"

/* Copy a few batches of the consumer's loader, then hand them to it again and again for `seconds`. On a
 * GPU: the step's kernel on one batch, again and again. Errors: STOKER_ENOMEM and what loader and
 * GPU return. */
int bench_headspace_measure(const struct bench_consumer *consumer, double seconds,
                            double *samples_per_s);

#endif
