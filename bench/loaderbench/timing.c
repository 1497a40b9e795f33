/* timing.c - see timing.h. */
#include "bench/loaderbench/timing.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "loader/base/clock.h"

static const uint64_t second_ns = 1000000000;

static uint64_t from_timeval(struct timeval value)
{
    return (uint64_t)value.tv_sec * second_ns + (uint64_t)value.tv_usec * 1000;
}

uint64_t bench_cpu_ns(void)
{
    struct rusage usage = { 0 };
    getrusage(RUSAGE_SELF, &usage);
    return from_timeval(usage.ru_utime) + from_timeval(usage.ru_stime);
}

void bench_sleep_ns(uint64_t duration_ns)
{
    uint64_t end_ns = stk_now_ns() + duration_ns;
    struct timespec end = { .tv_sec = (time_t)(end_ns / second_ns),
                            .tv_nsec = (long)(end_ns % second_ns) };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
        continue;
}

void bench_sleep_until_quiet(void)
{
    enum { STEP_NS = 4000000, STEPS_MAX = 125, BUSY_PART = 10 };
    uint64_t used_ns = 0;
    uint64_t before_ns = bench_cpu_ns();
    for (uint32_t step = 0; step == 0 || (step < STEPS_MAX && used_ns > STEP_NS / BUSY_PART);
         step++) {
        bench_sleep_ns(STEP_NS);
        used_ns = bench_cpu_ns() - before_ns;
        before_ns += used_ns;
    }
}

void bench_sleep_sharply(void)
{
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}
