/* clock.h - the one clock: monotonic nanoseconds. */
#ifndef STK_BASE_CLOCK_H
#define STK_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t stk_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static inline double stk_seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

#endif
