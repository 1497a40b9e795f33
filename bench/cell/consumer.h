/* consumer.h - the training program that loaderbench plays: it touches each batch and
 * lets it go, or sleeps as long as a step on an accelerator would take.
 *
 * A sleeping step leaves the processor to the loader, as a program that waits for its
 * accelerator does; a busy one would measure how two programs share the cores. On a GPU the step is
 * a kernel on the consumer's stream, and the consumer waits for nothing: gpu_step.h.
 */
#ifndef BENCH_CELL_CONSUMER_H
#define BENCH_CELL_CONSUMER_H

#include "bench/cell/verify.h"
#include "bench/device/step.h"

#include <stdint.h>
#include <stoker/stoker.h>

struct bench_consumer {
    stoker_loader *loader;
    struct bench_verify *verify; /* NULL = do not check */
    struct bench_gpu_step *gpu;  /* NULL = batches stay in host memory */
    uint64_t step_ns;            /* without gpu */
    uint64_t first_ns;           /* stk_now_ns() when the first batch came */
    uint64_t samples;            /* consumed so far */
    uint64_t bytes;              /* of images */
};

/* Take one batch. Returns what stoker_loader_next returned, STOKER_ECORRUPT when verify found something
 * wrong, or BENCH_INTERRUPTED. */
int bench_consumer_next(struct bench_consumer *consumer);

/* Wait until all that was done with batches on a GPU is over. */
int bench_consumer_finish(struct bench_consumer *consumer);

/* Read a few bytes of a batch, so that nobody can leave them out. */
void bench_consumer_touch(const void *images, size_t bytes, const uint64_t *ids);

/* One stretch of consuming, timed. */
struct bench_window {
    uint64_t samples;
    uint64_t bytes;
    uint64_t wall_ns;
    uint64_t cpu_ns;
    uint64_t gap_ns;    /* from the ends of epochs to the batches after them */
    uint32_t gaps;      /* how many that were */
    stoker_stats stats; /* of this stretch alone: its stalls, its limit, its verdict */
    bool whole_epochs;  /* began and ended at the end of an epoch */
};

struct bench_window_limits {
    uint32_t epochs;    /* at least so many; 0 = one, unless it takes too long */
    double seconds;     /* at least so long */
    double seconds_max; /* with epochs 0: stop even within an epoch */
};

int bench_consumer_window(struct bench_consumer *consumer, const struct bench_window_limits *limits,
                          struct bench_window *out);

/* Consume to the end of the epoch, or for `seconds`, whichever comes first, so that the pipeline
 * is as full as it will be. *epoch_end says which it was. */
int bench_consumer_settle(struct bench_consumer *consumer, double seconds, bool *epoch_end);

#endif
