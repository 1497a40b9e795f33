/* crop_avx2.c - crop, flip, cutout and conversion for AVX2 with FMA and F16C. */
#include "kernels/convert/lanes_avx2.h"
#include "kernels/convert/split_ssse3.h"
#include "kernels/transform/crop/reverse_ssse3.h"
#define STK_SPLIT_BYTES  1
#define STK_NARROW_LINES 1
#include "kernels/transform/crop/crop_body.h"

#include "kernels/transform/variants.h"

stk_crop_fn *stk_crop_choose_avx2(const struct stk_convert_plan *convert, uint32_t channels)
{
    return choose_crop(convert, channels);
}
