/* cuda_bits.h - runs onto the stand-in's GPU that must have the bits of the same run on the CPU:
 * what tests of conversion and of transforms begin, compare and end with.
 */
#ifndef STK_TEST_CUDA_BITS_H
#define STK_TEST_CUDA_BITS_H

#include "cuda_kernels.h"
#include "cuda_run.h"
#include "support/leaks.h"

static inline void stk_cuda_bits_begin(int devices)
{
    standin_cuda_reset(devices);
    standin_cuda_use_kernels();
}

static inline void stk_cuda_bits_finish(void)
{
    standin_cuda_reset(1);
    cr_assert_eq(standin_cuda_live(), 0);
    stk_test_check_leaks();
}

/* Rows of that type and layout on the GPU. Those that are not bytes are normalized by channel; with
 * 0 channels, only scaled. */
static inline stoker_loader_options stk_cuda_bits_options(stoker_dtype dtype, stoker_layout layout,
                                                          uint32_t channels)
{
    static const float means[] = { 0.5F, 0.4F, 0.3F, 0.2F, 0.1F };
    static const float stds[] = { 0.2F, 0.3F, 0.4F, 0.5F, 0.6F };
    const bool normalized = dtype != STOKER_DTYPE_UINT8 && channels > 0;
    return stk_small_options(.device = STOKER_DEVICE_CUDA, .dtype = dtype, .layout = layout,
                             .mean = normalized ? means : NULL, .std = normalized ? stds : NULL,
                             .mean_count = normalized ? channels : 0);
}

/* What the run took: the batches of each side, and the kernels of the GPU's. */
struct stk_cuda_bits {
    uint64_t launches;
    uint32_t batches;
};

/* The consumer's kernels take up to work_us. */
static inline struct stk_cuda_bits stk_cuda_bits_expect(const stoker_dataset *dataset,
                                                        stoker_loader_options options,
                                                        uint32_t work_us, const char *name)
{
    static struct stk_run expected, found; /* too large for a stack */
    const uint64_t before = standin_cuda_launches();
    (void)stk_cuda_run(dataset, &options, work_us, &found);
    const uint64_t launches = standin_cuda_launches() - before;
    options.device = STOKER_DEVICE_CPU;
    options.convert_on_device = STOKER_SWITCH_AUTO;
    (void)stk_run(dataset, &options, &expected);
    cr_assert_eq(expected.rc, STOKER_FINISHED);
    cr_assert_eq(found.rc, STOKER_FINISHED, "%s: %s", name, found.error.message);
    cr_assert(stk_runs_equal(&expected, &found), "%s, %s %d", name,
              stoker_dtype_name(options.dtype), (int)options.layout);
    return (struct stk_cuda_bits){ launches, expected.batches };
}

#endif
