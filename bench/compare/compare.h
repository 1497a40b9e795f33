/* compare.h - two results of --format json side by side: what became faster, and what slower. */
#ifndef BENCH_COMPARE_H
#define BENCH_COMPARE_H

#include <stdio.h>

enum {
    BENCH_COMPARE_GOOD = 0,
    BENCH_COMPARE_FAILED = 1, /* a file cannot be read, or no cell is in both */
    BENCH_COMPARE_SLOWER = 3  /* at least one cell is slower beyond its spread */
};

/* Prints a line for each kind of epoch of each cell that both files have; errors to standard error. */
int bench_compare(const char *old_path, const char *new_path, FILE *file);

#endif
