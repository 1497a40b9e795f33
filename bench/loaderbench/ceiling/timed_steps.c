/* timed_steps.c - starts the threads together, stops them together, adds up what they did.
 *
 * With a time limit the rates of the threads are added, each over its own time, so
 * that the tail of a slow thread does not count against the others. Without one
 * (a fixed amount of work) the time is that of all threads together.
 */
#include "bench/loaderbench/ceiling/timed_steps.h"
#include "bench/loaderbench/timing.h"
#include "loader/base/clock.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stoker/error.h>

struct tally {
    int rc;
    uint64_t samples;
    uint64_t begin_ns;
    uint64_t end_ns;
};

struct run {
    const struct bench_timed_steps *steps;
    struct stk_thread_team *team;
    atomic_bool stop;
    struct tally tallies[BENCH_THREADS_MAX];
};

static int warm_up(const struct bench_timed_steps *steps, void *state)
{
    for (uint32_t step = 0; step < steps->warm_steps; step++) {
        int64_t done = steps->step(state);
        if (done <= 0)
            return (int)done;
    }
    return STOKER_OK;
}

static void keep_time(struct run *run)
{
    stk_thread_team_barrier(run->team);
    if (run->steps->seconds > 0) {
        bench_sleep_ns((uint64_t)(run->steps->seconds * 1e9));
        atomic_store_explicit(&run->stop, true, memory_order_relaxed);
    }
}

static void repeat(struct run *run, uint32_t thread)
{
    const struct bench_timed_steps *steps = run->steps;
    struct tally *tally = &run->tallies[thread];
    void *state = NULL;
    tally->rc = steps->setup(steps->context, thread, steps->threads, &state);
    if (tally->rc == STOKER_OK)
        tally->rc = warm_up(steps, state);

    stk_thread_team_barrier(run->team);
    uint64_t samples = 0; /* not in the tally: its neighbors share the cache line */
    tally->begin_ns = stk_now_ns();
    while (tally->rc == STOKER_OK) {
        int64_t done = steps->step(state);
        if (done < 0)
            tally->rc = (int)done;
        if (done <= 0)
            break;
        samples += (uint64_t)done;
        if (atomic_load_explicit(&run->stop, memory_order_relaxed))
            break; /* not before the step: a thread that got no CPU until now would have no rate */
    }
    tally->end_ns = stk_now_ns();
    tally->samples = samples;
    if (state != NULL)
        steps->teardown(state);
}

static void work(void *argument, uint32_t thread)
{
    if (thread == 0)
        keep_time(argument);
    else
        repeat(argument, thread - 1);
}

static double add_up(const struct tally *tallies, uint32_t count, bool timed)
{
    double rate = 0;
    uint64_t samples = 0, begin_ns = UINT64_MAX, end_ns = 0;
    for (uint32_t index = 0; index < count; index++) {
        const struct tally *tally = &tallies[index];
        uint64_t own_ns = tally->end_ns - tally->begin_ns;
        rate += own_ns > 0 ? (double)tally->samples * 1e9 / (double)own_ns : 0;
        samples += tally->samples;
        begin_ns = tally->begin_ns < begin_ns ? tally->begin_ns : begin_ns;
        end_ns = tally->end_ns > end_ns ? tally->end_ns : end_ns;
    }
    if (timed)
        return rate;
    return end_ns > begin_ns ? (double)samples * 1e9 / (double)(end_ns - begin_ns) : 0;
}

static int first_error(const struct tally *tallies, uint32_t count)
{
    for (uint32_t index = 0; index < count; index++)
        if (tallies[index].rc != STOKER_OK)
            return tallies[index].rc;
    return STOKER_OK;
}

int bench_timed_steps_run(const struct bench_timed_steps *steps, double *samples_per_s)
{
    assert(steps->threads >= 1);
    assert(steps->threads <= BENCH_THREADS_MAX);
    struct run run = { .steps = steps };
    atomic_init(&run.stop, false);
    int rc = stk_thread_team_create(&run.team, "loaderbench", steps->threads + 1);
    if (rc != STOKER_OK)
        return rc;
    stk_thread_team_run(run.team, work, &run);
    stk_thread_team_destroy(run.team);
    rc = first_error(run.tallies, steps->threads);
    if (rc == STOKER_OK)
        *samples_per_s = add_up(run.tallies, steps->threads, steps->seconds > 0);
    return rc;
}
