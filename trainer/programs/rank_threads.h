/* rank_threads.h - --data-parallel: a rank for each device, as threads of this program.
 *
 *   main thread   start threads ─▶ all started? ─▶ rank 0: trains, prints, saves ─▶ join ─▶ exit status
 *   thread r                         └─▶ rank r: its own trainer and loader ─────────┘
 *
 * Signals reach the main thread alone; the ranks agree on stopping. */
#ifndef STK_PROGRAMS_RANK_THREADS_H
#define STK_PROGRAMS_RANK_THREADS_H

#include "loader/cli/options.h"
#include "trainer/programs/one_rank.h"
#include "trainer/programs/rank_threads.h"
#include <stdint.h>

/* Runs a copy of `like` on each device. Returns the exit status: that of the rank whose error it
 * was. */
int rank_threads_run(const struct one_rank *like, const struct device_list *devices);

#endif
