/* progress.h - how far the sweep is: which cell, and how long the rest will take. */
#ifndef BENCH_PROGRESS_H
#define BENCH_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/cli/progress_line.h"

struct bench_progress {
    struct cli_progress_line line;
    uint64_t begin_ns;
    uint32_t total;
    uint32_t done;
};

void bench_progress_begin(struct bench_progress *progress, uint32_t total, bool quiet);

/* Shows what is measured now. */
void bench_progress_show(struct bench_progress *progress, const char *what);

/* Counts one step of `total` as done. */
void bench_progress_advance(struct bench_progress *progress);

#endif
