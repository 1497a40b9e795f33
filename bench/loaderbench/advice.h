/* advice.h - from the measured cells to a verdict in words and the options to paste into a
 * program. */
#ifndef BENCH_ADVICE_H
#define BENCH_ADVICE_H

#include "bench/loaderbench/arguments.h"
#include "bench/loaderbench/result.h"

/* The cell to recommend: the fastest, or one at most 3 % slower that needs less processor
 * time. NULL if no cell was measured. */
const struct bench_cell *bench_advice_choose(const struct bench_cell *cells, size_t count);

/* Writes the choice in words and in C. */
void bench_advice_write(struct bench_advice *out, const struct bench_cell *cells, size_t count,
                        const struct bench_arguments *arguments);

#endif
