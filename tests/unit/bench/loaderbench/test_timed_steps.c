/* test_timed_steps.c - the frame of every ceiling: no thread is without a rate. */
#include <criterion/criterion.h>
#include <stoker/error.h>

#include "bench/loaderbench/ceiling/timed_steps.h"

enum { THREADS = 3, RUNS = 100 };

static uint32_t counts[THREADS];

static int setup(const void *context, uint32_t thread, uint32_t threads, void **state)
{
    (void)context;
    (void)threads;
    *state = &counts[thread];
    return STOKER_OK;
}

static int64_t count(void *state)
{
    ++*(uint32_t *)state;
    return 1;
}

static void teardown(void *state)
{
    (void)state;
}

/* The time is over before most threads have begun, as on a machine that has no CPU for them. */
Test(bench_timed_steps, every_thread_does_a_step_however_late_it_gets_a_cpu)
{
    const struct bench_timed_steps steps = {
        .threads = THREADS, .seconds = 1e-9, .setup = setup, .step = count, .teardown = teardown
    };
    for (uint32_t run = 0; run < RUNS; run++) {
        uint32_t before[THREADS];
        double rate = 0;
        for (uint32_t thread = 0; thread < THREADS; thread++)
            before[thread] = counts[thread];
        cr_assert_eq(bench_timed_steps_run(&steps, &rate), STOKER_OK);
        cr_assert_gt(rate, 0);
        for (uint32_t thread = 0; thread < THREADS; thread++)
            cr_assert_gt(counts[thread], before[thread], "run %u, thread %u", run, thread);
    }
}
