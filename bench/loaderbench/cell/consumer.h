/* consumer.h - stands in for a training program: touches each batch and releases it, or sleeps as
 * long as a step on an accelerator would take.
 *
 * A sleeping step leaves the CPU to the loader, like a program that waits for its accelerator; a
 * busy one would measure how two programs share the cores. On a GPU the step is a kernel on the
 * consumer's stream (device/step.h), and the consumer does not wait.
 */
#ifndef BENCH_CELL_CONSUMER_H
#define BENCH_CELL_CONSUMER_H

#include "bench/loaderbench/cell/verify.h"
#include "bench/loaderbench/device/step.h"

#include <stdint.h>
#include <stoker/stoker.h>

struct bench_consumer {
    stoker_loader *loader;
    struct bench_verify *verify; /* NULL = do not check */
    struct bench_gpu_step *gpu;  /* NULL = batches stay in host memory */
    uint64_t step_ns;            /* without gpu */
    uint64_t first_ns;           /* stk_now_ns() when the first batch came */
    uint64_t samples;            /* consumed so far */
    uint64_t bytes;              /* bytes of the images consumed so far */
};

/* Takes one batch. Returns what stoker_loader_next returned, STOKER_ECORRUPT if verify found an
 * error, or BENCH_INTERRUPTED. */
int bench_consumer_next(struct bench_consumer *consumer);

/* Waits for all work on batches on a GPU. */
int bench_consumer_finish(struct bench_consumer *consumer);

/* Reads a few bytes of a batch, in a way that the compiler cannot remove. */
void bench_consumer_touch(const void *images, size_t bytes, const uint64_t *ids);

/* One stretch of consuming, timed. */
struct bench_window {
    uint64_t samples;
    uint64_t bytes;
    uint64_t wall_ns;
    uint64_t cpu_ns;
    uint64_t gap_ns; /* from the ends of epochs to the batches after them */
    uint32_t gaps;
    stoker_stats stats; /* this stretch alone */
    bool whole_epochs;  /* started and ended at the end of an epoch */
};

struct bench_window_limits {
    uint32_t epochs;    /* minimum; 0 = one, unless it takes too long */
    double seconds;     /* minimum */
    double seconds_max; /* with epochs 0: stop even within an epoch */
};

int bench_consumer_window(struct bench_consumer *consumer, const struct bench_window_limits *limits,
                          struct bench_window *out);

/* Consumes to the end of the epoch or for `seconds`, whichever comes first, so that the pipeline
 * fills up. *epoch_end is true if the epoch ended first. */
int bench_consumer_settle(struct bench_consumer *consumer, double seconds, bool *epoch_end);

#endif
