/* progress.h - one line on the terminal: which cell, and how long it will still take. */
#ifndef BENCH_PROGRESS_H
#define BENCH_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct bench_progress {
    bool shown; /* standard error is a terminal, and --quiet was not given */
    uint64_t begin_ns;
    uint32_t total;
    uint32_t done;
    int width; /* of the longest line so far, to wipe it */
};

void bench_progress_begin(struct bench_progress *progress, uint32_t total, bool quiet);

/* Show what is measured now. */
void bench_progress_show(struct bench_progress *progress, const char *what);

/* Count it as done. */
void bench_progress_advance(struct bench_progress *progress);

/* Take the line away, before rows are printed and at the end. */
void bench_progress_wipe(struct bench_progress *progress);

#endif
