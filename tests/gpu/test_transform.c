/* test_transform.c - every kernel of the transforms on a GPU gives the bits of its source in order
 * on the CPU: the launches that run from the kernels' source elsewhere
 * (tests/unit/kernels/threads), and all transforms with 1 to 4 channels, in each type and
 * layout. */
#include "kernel_case_on_gpu.h"

#include "support/gpu/transform_kernel_cases.h"

static void each_type_and_layout(const struct transform_case *it, uint32_t channels)
{
    static const stoker_dtype types[] = { STOKER_DTYPE_FLOAT32, STOKER_DTYPE_FLOAT16,
                                          STOKER_DTYPE_BFLOAT16, STOKER_DTYPE_UINT8 };
    for (size_t type = 0; type < COUNT_OF(types); type++) {
        each_step_case(check, it, channels, types[type], STOKER_LAYOUT_NHWC, false);
        each_step_case(check, it, channels, types[type], STOKER_LAYOUT_NCHW, false);
    }
}

int main(int count, char **words)
{
    size_t bytes;
    const int skip = begin(stk_kernels_fatbin(&bytes), count, words);
    if (skip != 0)
        return skip;
    for (size_t i = 0; i < TRANSFORM_CASES && !gpu.quick; i++)
        for (uint32_t channels = 1; channels <= 4; channels++)
            each_type_and_layout(&transform_cases[i], channels);
    each_picture_case(check);
    return end(stk_kernels);
}
