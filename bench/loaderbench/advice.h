/* advice.h - from the measured cells to a verdict in words and the options to paste into a
 * program. */
#ifndef BENCH_ADVICE_H
#define BENCH_ADVICE_H

#include "bench/loaderbench/arguments.h"
#include "bench/loaderbench/result.h"

/* The cell to recommend among `count` cells of one batch size. AUTO, unless another number of
 * workers is measurably faster; then that one, or one with fewer workers that does not measurably
 * differ from it. Without --step-us never 0 workers if others were measured: a consumer that does
 * nothing hides that nothing is loaded during a step. NULL if no cell was measured. */
const struct bench_cell *bench_advice_choose(const struct bench_cell *cells, size_t count,
                                             const struct bench_arguments *arguments);

/* Writes the verdict for each batch size, and the options of the first one. */
void bench_advice_write(struct bench_advice *out, const struct bench_cell *cells, size_t count,
                        const struct bench_arguments *arguments,
                        const struct bench_circumstances *circumstances);

#endif
