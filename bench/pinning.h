/* pinning.h - the effect of page-locking on the num_workers experiment, ours and another loader's.
 */
#ifndef BENCH_PINNING_H
#define BENCH_PINNING_H

#include <stdint.h>
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

/* Adds one time; ignores it if the table is full. */
void bench_pinning_add(struct bench_pinning *pinning, int side, int32_t workers, double seconds);

/* Reads "pin_memory=True" and "Finish with: 1.5 second, num_workers=5" lines and skips others.
 * STOKER_EINVAL: there was none. */
int bench_pinning_read(struct bench_pinning *out, FILE *file);

/* Prints a row per number of workers and a verdict. beside: NULL = ours alone. */
void bench_pinning_print(const struct bench_pinning *ours, const struct bench_pinning *beside,
                         FILE *file);

#endif
