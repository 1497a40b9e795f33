/* interrupt.h - Ctrl-C ends a sweep early instead of losing it. */
#ifndef BENCH_INTERRUPT_H
#define BENCH_INTERRUPT_H

#include <stdbool.h>

/* Returned, among the codes of the library, by what was interrupted. */
enum { BENCH_INTERRUPTED = 100 };

/* From now on the first SIGINT is remembered; a second one ends the process. */
void bench_interrupt_watch(void);

/* Returns true once SIGINT has come. Any thread. */
bool bench_interrupted(void);

#endif
