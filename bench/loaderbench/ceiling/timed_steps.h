/* timed_steps.h - one step repeated by several threads for a while: the frame of every ceiling.
 *
 *   setup --> (warm steps) --> gate --> step step step ... --> teardown
 *
 * Only the steps between gate and stop are timed; each thread stamps its own.
 */
#ifndef BENCH_CEILING_TIMED_STEPS_H
#define BENCH_CEILING_TIMED_STEPS_H

#include <stdint.h>

#include "loader/base/cpu/thread_team.h"

enum { BENCH_THREADS_MAX = STK_THREAD_TEAM_MAX - 1 }; /* one keeps the time */

struct bench_timed_steps {
    const void *context; /* shared, read only */
    uint32_t threads;    /* 1..BENCH_THREADS_MAX */
    uint32_t warm_steps; /* untimed, per thread */
    double seconds;      /* 0 = until every thread's step returns 0 */

    /* Makes the state of one thread, on that thread. < 0 = a stoker_err. */
    int (*setup)(const void *context, uint32_t thread, uint32_t threads, void **state);
    /* Does one batch. Returns its number of samples, 0 = nothing is left, < 0 = a stoker_err. */
    int64_t (*step)(void *state);
    void (*teardown)(void *state);
};

/* Runs the steps once; writes the samples per second of all threads. Errors: STOKER_ENOMEM,
 * STOKER_ETHREAD and what setup and step return. */
int bench_timed_steps_run(const struct bench_timed_steps *steps, double *samples_per_s);

#endif
