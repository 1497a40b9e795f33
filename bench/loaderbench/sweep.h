/* sweep.h - measures every combination of the lists. */
#ifndef BENCH_SWEEP_H
#define BENCH_SWEEP_H

#include "bench/loaderbench/cell/cell.h"
#include "bench/loaderbench/output/output.h"

enum {
    BENCH_SWEEP_GOOD = 0,
    BENCH_SWEEP_FAILED = 1,        /* a cell failed */
    BENCH_SWEEP_BUSY = 3,          /* with --strict: the figures are not usable */
    BENCH_SWEEP_INTERRUPTED = 130, /* some cells are left out, or have fewer repeats */
    BENCH_SWEEP_NOTHING = 131      /* interrupted before the first cell had a repeat */
};

/* Measures all cells and prints them, the ceilings and the advice to each sheet, of which form and
 * file are set. The first SIGINT from now on ends the measuring, and is reported. */
int bench_sweep_run(struct bench_bench *bench, const struct bench_machine *machine,
                    struct bench_sheet *sheets, uint32_t sheet_count);

#endif
