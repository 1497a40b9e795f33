/* consumer_cpu.h - keeps workers off the CPU that the consumer waits on.
 *
 * The scheduler places a woken thread where it last ran and may leave it there with its waker for
 * tens of ms although another CPU is idle (measured on Linux 6.18: half the throughput meanwhile).
 * So the consumer publishes its CPU, and a worker that finds itself there moves away.
 */
#ifndef STK_PIPELINE_CONSUMER_CPU_H
#define STK_PIPELINE_CONSUMER_CPU_H

#include <stdint.h>

#include "loader/pipeline/plan/pipeline.h"

/* When one worker checks again. All zero at the start. */
struct stk_cpu_checks {
    uint64_t next_ns;
    uint64_t wait_ns; /* from that check to the one after it */
};

/* Leave the consumer's CPU, if there is a CPU for each worker beside it, and if it is time to
 * check. If no move helps, the checks become rarer. Worker's thread. */
void stk_consumer_cpu_leave(struct stk_cpu_checks *checks, const struct stk_pipeline *pipeline,
                            uint64_t now_ns);

/* Publish the CPU that the consumer runs on. */
static inline void stk_consumer_cpu_note(struct stk_slots *slots)
{
    const uint32_t cpu = stk_cpu_here();
    if (atomic_load_explicit(&slots->consumer_cpu, memory_order_relaxed) != cpu)
        atomic_store_explicit(&slots->consumer_cpu, cpu, memory_order_relaxed);
}

#endif
