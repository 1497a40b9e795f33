/* crew.h - one step repeated by several threads for a while: the frame of every ceiling.
 *
 *   setup --> (warm steps) --> gate --> step step step ... --> teardown
 *
 * Only the steps between gate and stop are timed; each thread stamps its own.
 */
#ifndef BENCH_CREW_H
#define BENCH_CREW_H

#include <stdbool.h>
#include <stdint.h>

enum { BENCH_THREADS_MAX = 256 };

struct bench_crew {
    const void *context; /* shared, read only */
    uint32_t threads;    /* 1..BENCH_THREADS_MAX */
    uint32_t warm_steps; /* untimed, per thread */
    double seconds;      /* 0 = until every thread's step returns 0 */

    /* Make one thread's state, on that thread. < 0 = a stoker_err. */
    int (*setup)(const void *context, uint32_t thread, uint32_t threads, void **state);
    /* Do one batch; returns its samples, 0 = nothing is left, < 0 = a stoker_err. */
    int64_t (*step)(void *state);
    void (*teardown)(void *state);
};

/* Run it once: samples per second over all threads. Errors: STOKER_ETHREAD and what
 * setup and step return. */
int bench_crew_run(const struct bench_crew *crew, double *samples_per_s);

#endif
