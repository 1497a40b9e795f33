/* loading.h - a loader that reads records again and again, timed a window at a time. */
#ifndef BENCH_LOADING_H
#define BENCH_LOADING_H

#include "bench/material.h"
#include "unverified.h"

struct bench_loading {
    struct bench_unverified set;
    stoker_dataset *dataset;
    stoker_loader *loader;
};

/* Two workers, rows as stored, nothing kept. material must outlive it. On failure, closed. */
int bench_loading_open(struct bench_loading *loading, const struct bench_material *material,
                       bool verifies);
void bench_loading_close(struct bench_loading *loading); /* all zero is allowed */

/* *ns = nanoseconds a sample over `seconds`, after as long again: its ring was full while it rested. */
int bench_loading_turn(struct bench_loading *loading, double seconds, double *ns);

#endif
