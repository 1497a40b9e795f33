/* timing.h - processor time, and sleeps that end on time. */
#ifndef BENCH_TIMING_H
#define BENCH_TIMING_H

#include <stdint.h>

/* Processor time of all threads of this process, user and system, in nanoseconds. */
uint64_t bench_cpu_ns(void);

/* Sleeps for duration_ns; a signal does not end it. */
void bench_sleep_ns(uint64_t duration_ns);

/* Sleeps until this process uses hardly any CPU time, for at most half a second: a loader whose
 * turn is over is still filling its ring. */
void bench_sleep_until_quiet(void);

/* Makes sleeps of this thread end on time: by default the kernel may add 50 us. */
void bench_sleep_sharply(void);

#endif
