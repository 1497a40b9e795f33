/* clock.h - monotonic time in nanoseconds; converts a timespec to nanoseconds. */
#ifndef STK_BASE_CLOCK_H
#define STK_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t stk_timespec_ns(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static inline uint64_t stk_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)stk_timespec_ns(now);
}

static inline double stk_seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

#endif
