/* test_cache.c - rows kept in GPU memory while several workers make batches, under ThreadSanitizer:
 * one marks a row as held, another skips it for that reason. Bad samples included.
 */
#include "support/gpu/cuda_kernels.h"
#include "support/gpu/cuda_walk.h"
#include "support/sets/made_set.h"

enum { SAMPLES = 200, SKIP = 77 };

static struct stk_made_set set;

static enum stk_made_kind kind_of(uint64_t id)
{
    return id % 31 == 3 ? STK_MADE_BROKEN : id % 3 == 1 ? STK_MADE_MEMORY : STK_MADE_RAW;
}

static void step(uint64_t seed)
{
    stoker_loader_options options = stk_cuda_walk_options(seed);
    options.epochs = 4;
    if (seed % 3 == 0)
        options.prefetch_batches = STOKER_PREFETCH_AUTO;
    options.on_bad_sample = seed % 2 == 0 ? STOKER_ON_BAD_SUBSTITUTE : STOKER_ON_BAD_SKIP;
    options.world_size = 1 + (uint32_t)(seed / 3 % 2);
    options.dtype = STOKER_DTYPE_FLOAT32;
    options.cache = STOKER_CACHE_DEVICE;
    stk_cuda_walk_compare(set.dataset, options, (uint32_t)(seed * 37 % 200),
                          (uint32_t)(seed * 53 % 100), STOKER_CACHE_NONE);
}

int main(void)
{
    if (!stk_cuda_kernels_built()) {
        printf("no nvcc here: no kernels in the library\n");
        return SKIP;
    }
    standin_cuda_use_kernels();
    set = (struct stk_made_set){ .count = SAMPLES, .row_bytes = 45, .kind_of = kind_of };
    CHECK(stk_made_set_open(&set));
    stk_cuda_walk(step, 24);
    stk_made_set_close(&set);
    stk_cuda_walk_end();
    return 0;
}
