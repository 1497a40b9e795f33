/* thread_cuda_cache.c - rows kept in GPU memory while several workers make batches, under ThreadSanitizer:
 * who says that a row is held, and who leaves it out for that. Bad samples included.
 */
#include "cuda_run.h"
#include "cuda_twins.h"
#include "loader/base/fault.h"
#include "made_set.h"
#include "thread_check.h"

enum { SAMPLES = 200, SKIP = 77 };

static struct stk_made_set set;
static struct stk_run expected;
static struct stk_run found;

static enum stk_made_kind kind_of(uint64_t id)
{
    return id % 31 == 3 ? STK_MADE_BROKEN : id % 3 == 1 ? STK_MADE_MEMORY : STK_MADE_RAW;
}

static void walk(uint64_t seed)
{
    stoker_loader_options options = stk_small_options();
    options.seed = seed;
    options.epochs = 4;
    options.batch_size = 2 + (uint32_t)(seed % 9);
    options.num_workers = (int32_t)(seed % 4);
    options.prefetch_batches = seed % 3 == 0 ? 0 : 2 + (uint32_t)(seed / 2 % 4);
    options.on_bad_sample = seed % 2 == 0 ? STOKER_BAD_SUBSTITUTE : STOKER_BAD_SKIP;
    options.world_size = 1 + (uint32_t)(seed / 3 % 2);
    options.pin_memory = seed % 5 == 4 ? STOKER_OFF : STOKER_ON;
    options.non_blocking = seed % 7 != 6;
    options.dtype = STOKER_FLOAT32;
    options.device = STOKER_DEVICE_CUDA;
    options.cache = STOKER_CACHE_DEVICE;
    standin_cuda_reset(1);
    standin_cuda_delay((uint32_t)(seed * 37 % 200));
    (void)stk_cuda_run(set.dataset, &options, (uint32_t)(seed * 53 % 100), &found);
    options.device = STOKER_DEVICE_CPU;
    options.pin_memory = STOKER_OFF;
    options.cache = STOKER_CACHE_NONE;
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
    size_t bytes;
    if (stk_kernels_fatbin(&bytes) == NULL) {
        printf("no nvcc here: no kernels in the library\n");
        return SKIP;
    }
    stk_cuda_use_twins();
    set = (struct stk_made_set){ .count = SAMPLES, .row_bytes = 45, .kind_of = kind_of };
    CHECK(stk_made_set_open(&set));
    while (seed < 24 && stk_time_left(start_ns))
        walk(seed++);
    stk_made_set_close(&set);
    standin_cuda_reset(1);
    CHECK(stk_fault_live_bytes() == 0);
    printf("%llu runs\n", (unsigned long long)seed);
    return seed >= 7 ? 0 : 1;
}
