/* trace.h - --trace FILE: records what every thread does in two epochs of each cell.
 *
 * They run after the cell was measured, with a separate loader, so that no timed work pays for it.
 * Each cell is a process of the trace.
 */
#ifndef BENCH_TRACE_H
#define BENCH_TRACE_H

#include "bench/loaderbench/device/step.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stoker/stoker.h>

enum { BENCH_TRACE_NAME_MAX = 160 };

struct bench_trace_run;

/* All zero is empty. */
struct bench_trace {
    struct bench_trace_run *runs;
    size_t count;
    size_t events; /* in all runs */
};

/* One run: the options of the cell and of its consumer. */
struct bench_trace_options {
    const char *name;
    const stoker_dataset *dataset;
    const stoker_loader_options *loading;
    struct bench_gpu_step *gpu; /* NULL = batches stay in host memory */
    uint64_t step_ns;
    double seconds_max; /* longer epochs are cut */
};

/* Runs and records. On failure nothing is added; *error may have details. */
int bench_trace_record(struct bench_trace *trace, const struct bench_trace_options *options,
                       stoker_error *error);

/* Writes all runs as JSON. STOKER_EIO and errno, or STOKER_ENOMEM. */
int bench_trace_write(const struct bench_trace *trace, FILE *file);

void bench_trace_destroy(struct bench_trace *trace);

#endif
