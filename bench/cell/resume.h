/* resume.h - how long it takes to go on where another loader stands. */
#ifndef BENCH_CELL_RESUME_H
#define BENCH_CELL_RESUME_H

#include <stoker/stoker.h>

/* Take the state of `loader` (two batches further on, so that it lies within an epoch where
 * there is one), start a second loader from it, and time that one from before create to its
 * first batch. Both must deliver the same samples then: STOKER_EMISMATCH if they do not. */
int bench_resume_measure(const stoker_dataset *dataset, const stoker_loader_options *options,
                         stoker_loader *loader, double *resume_ms, stoker_error *error);

#endif
