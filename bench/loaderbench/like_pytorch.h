/* like_pytorch.h - the well-known snippet for choosing num_workers, with this loader. */
#ifndef BENCH_LIKE_PYTORCH_H
#define BENCH_LIKE_PYTORCH_H

#include "bench/loaderbench/cell/cell.h"
#include <stdio.h>

enum { BENCH_PINNING_ROWS_MAX = 64, BENCH_PINNING_ON = 0, BENCH_PINNING_OFF = 1 };

/* Seconds with one number of workers; NaN = not measured. */
struct bench_pinning_row {
    int32_t workers;
    double seconds[2]; /* pinned, pageable */
};

struct bench_pinning {
    struct bench_pinning_row rows[BENCH_PINNING_ROWS_MAX];
    uint32_t count;
};

/* Reads another loader's times from `path`; NULL reads nothing. Errors are printed to standard
 * error. */
int bench_like_pytorch_beside(const char *path, struct bench_pinning *beside);

/* Prints "Finish with: S second, num_workers=W" lines. beside: the other loader's times, or NULL.
 * Returns the exit status. */
int bench_like_pytorch(const struct bench_bench *bench, const struct bench_pinning *beside,
                       FILE *file);

#endif
