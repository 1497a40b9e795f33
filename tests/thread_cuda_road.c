/* thread_cuda_road.c - the road to a GPU with tiny batches and few slots, under ThreadSanitizer: late
 * copies, late kernels, and no slot or buffer that is written while they read it.
 */
#include "cuda_run.h"
#include "loader/base/fault.h"
#include "thread_check.h"

enum { SAMPLES = 200 };

static struct stk_file_set set;
static struct stk_run expected;
static struct stk_run found;

static void walk(uint64_t seed)
{
    stoker_loader_options options = stk_small_options();
    options.seed = seed;
    options.batch_size = 2 + (uint32_t)(seed % 9);
    options.num_workers = (int32_t)(seed % 4);
    options.prefetch_batches = 2 + (uint32_t)(seed / 2 % 4);
    options.cache = (stoker_cache)(1 + seed / 5 % 3);
    options.pin_memory = seed % 5 == 4 ? STOKER_OFF : STOKER_ON;
    options.non_blocking = seed % 7 != 6;
    options.device = STOKER_DEVICE_CUDA;
    standin_cuda_reset(1);
    standin_cuda_delay((uint32_t)(seed * 37 % 300));
    (void)stk_cuda_run(set.dataset, &options, (uint32_t)(seed * 53 % 200), &found);
    options.device = STOKER_DEVICE_CPU;
    options.pin_memory = STOKER_OFF;
    (void)stk_run(set.dataset, &options, &expected);
    CHECK(expected.rc == STOKER_FINISHED);
    CHECK(stk_runs_equal(&expected, &found));
    CHECK(standin_cuda_violations() == 0);
    CHECK(standin_cuda_live() == 0);
}

int main(void)
{
    const uint64_t start_ns = stk_now_ns();
    uint64_t seed = 0;
    CHECK(stk_file_set_make(&set, SAMPLES, 3, 5, 0));
    while (seed < 140 && stk_time_left(start_ns))
        walk(seed++);
    stk_file_set_remove(&set);
    standin_cuda_reset(1);
    CHECK(stk_fault_live_bytes() == 0);
    printf("%llu runs\n", (unsigned long long)seed);
    return seed >= 7 ? 0 : 1;
}
