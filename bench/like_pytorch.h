/* like_pytorch.h - the snippet everybody runs to choose num_workers, with this loader. */
#ifndef BENCH_LIKE_PYTORCH_H
#define BENCH_LIKE_PYTORCH_H

#include "cell.h"

#include <stdio.h>

/* Prints "Finish with: S second, num_workers=W" lines. Returns the exit status. */
int bench_like_pytorch(const struct bench_bench *bench, FILE *file);

#endif
