/* consumer_cpu.c - see consumer_cpu.h. */
#include "loader/pipeline/work/consumer_cpu.h"

#include <stdatomic.h>

#include "loader/base/cpu/thread.h"

/* Nanoseconds between checks: elsewhere, and after a move. */
#define LOOK_NS     UINT64_C(100000)
#define AGAIN_NS    UINT64_C(500000)
#define WAIT_MAX_NS UINT64_C(500000000)

void stk_consumer_cpu_leave(struct stk_cpu_checks *checks, const struct stk_pipeline *pipeline,
                            uint64_t now_ns)
{
    if (now_ns < checks->next_ns ||
        atomic_load_explicit(&pipeline->active_workers, memory_order_relaxed) >= pipeline->cpus)
        return;
    const uint32_t cpu = atomic_load_explicit(&pipeline->slots.consumer_cpu, memory_order_relaxed);
    if (cpu != stk_cpu_here()) {
        checks->next_ns = now_ns + LOOK_NS;
        checks->wait_ns /= 2;
        return;
    }
    (void)stk_thread_leave_cpu(cpu);
    checks->wait_ns = 2 * checks->wait_ns + AGAIN_NS;
    if (checks->wait_ns > WAIT_MAX_NS)
        checks->wait_ns = WAIT_MAX_NS;
    checks->next_ns = now_ns + checks->wait_ns;
}
