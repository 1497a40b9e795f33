/* test_pipeline.c - the pipeline to a GPU with tiny batches and few slots, under ThreadSanitizer:
 * late copies, late kernels, and no slot or buffer that is written while they read it.
 */
#include "support/gpu/cuda_walk.h"

enum { SAMPLES = 200 };

static struct stk_file_set set;

static void step(uint64_t seed)
{
    stoker_loader_options options = stk_cuda_walk_options(seed);
    options.cache = (stoker_cache)(1 + seed / 5 % 3);
    stk_cuda_walk_compare(set.dataset, options, (uint32_t)(seed * 37 % 300),
                          (uint32_t)(seed * 53 % 200), options.cache);
}

int main(void)
{
    CHECK(stk_file_set_make(&set, SAMPLES, 3, 5, 0));
    stk_cuda_walk(step, 140);
    stk_file_set_remove(&set);
    stk_cuda_walk_end();
    return 0;
}
