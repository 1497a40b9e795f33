/* clock.h - time on the wall and on the processor. */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC. */
uint64_t bench_clock_ns(void);

/* Processor time of all threads of this process, user and system. */
uint64_t bench_cpu_ns(void);

/* Sleep that long, signals notwithstanding. */
void bench_sleep_ns(uint64_t duration_ns);

/* Let sleeps of this thread end on time: by default the kernel may add 50 us. */
void bench_sleep_sharply(void);

#endif
