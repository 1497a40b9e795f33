/* headspace.h - what a consumer would see if loading cost nothing. */
#ifndef BENCH_HEADSPACE_H
#define BENCH_HEADSPACE_H

#include <stdint.h>
#include <stoker/stoker.h>

/* Copy a few batches of this loader, then hand them to the consumer again and again
 * for `seconds`. Errors: STOKER_ENOMEM and what the loader returns. */
int bench_headspace_measure(stoker_loader *loader, uint64_t step_ns, double seconds,
                            double *samples_per_s);

#endif
