/* sweep.h - every combination of the lists, one cell after the other. */
#ifndef BENCH_SWEEP_H
#define BENCH_SWEEP_H

#include "cell.h"
#include "output.h"

/* Measure and print all cells, the ceilings and the advice. Returns the exit status:
 * 0, or 1 if a cell failed. */
int bench_sweep_run(struct bench_bench *bench, const struct bench_machine *machine,
                    const struct bench_form *form, FILE *file);

#endif
