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

/* Two workers; on failure, closed.
 *
 * Rows as stored, nothing kept. material must outlive it. */
int bench_loading_open(struct bench_loading *loading, const struct bench_material *material,
                       bool verifies);

/* Rows as float32, held in memory by the time this returns: decoded ones are cached. */
int bench_loading_open_held(struct bench_loading *loading, const char *spec, uint32_t batch_size);

void bench_loading_close(struct bench_loading *loading); /* all zero is allowed */

/* *ns = nanoseconds a sample over `seconds`, after as long again: its ring was full while it rested. */
int bench_loading_turn(struct bench_loading *loading, double seconds, double *ns);

#endif
