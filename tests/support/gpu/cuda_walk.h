/* cuda_walk.h - a walk over the settings of a loader onto the stand-in's GPU, for ThreadSanitizer
 * to watch: late copies, late kernels, few slots, tiny batches; each run delivers what it does on
 * the CPU.
 */
#ifndef STK_TEST_CUDA_WALK_H
#define STK_TEST_CUDA_WALK_H

#include "cuda_run.h"
#include "loader/base/fault.h"
#include "support/thread_check.h"

/* What every walk varies. */
static inline stoker_loader_options stk_cuda_walk_options(uint64_t seed)
{
    return stk_small_options(.seed = seed, .batch_size = 2 + (uint32_t)(seed % 9),
                             .num_workers = (int32_t)(seed % 4),
                             .prefetch_batches = 2 + (uint32_t)(seed / 2 % 4),
                             .pin_memory = seed % 5 == 4 ? STOKER_SWITCH_OFF : STOKER_SWITCH_ON,
                             .non_blocking = seed % 7 != 6, .device = STOKER_DEVICE_CUDA);
}

/* Copies are up to delay_us late and the consumer's kernels take up to work_us. On the CPU, rows
 * are kept as cpu_cache says. */
static inline void stk_cuda_walk_compare(const stoker_dataset *dataset,
                                         stoker_loader_options options, uint32_t delay_us,
                                         uint32_t work_us, stoker_cache cpu_cache)
{
    static struct stk_run expected, found; /* too large for a stack */
    standin_cuda_reset(1);
    standin_cuda_delay(delay_us);
    (void)stk_cuda_run(dataset, &options, work_us, &found);
    options.device = STOKER_DEVICE_CPU;
    options.pin_memory = STOKER_SWITCH_OFF;
    options.cache = cpu_cache;
    (void)stk_run(dataset, &options, &expected);
    CHECK(expected.rc == STOKER_FINISHED);
    CHECK(stk_runs_equal(&expected, &found));
    CHECK(standin_cuda_violations() == 0);
    CHECK(standin_cuda_live() == 0);
}

/* One step for each of the first 7 seeds, after which the options repeat; then for more, while
 * there is time. */
static inline void stk_cuda_walk(void (*step)(uint64_t seed), uint64_t seeds)
{
    const uint64_t start_ns = stk_now_ns();
    uint64_t seed = 0;
    CHECK(seeds >= 7);
    while (seed < 7 || (seed < seeds && stk_time_left(start_ns)))
        step(seed++);
    printf("%llu runs\n", (unsigned long long)seed);
}

static inline void stk_cuda_walk_end(void)
{
    standin_cuda_reset(1);
    CHECK(stk_fault_live_bytes() == 0);
}

#endif
