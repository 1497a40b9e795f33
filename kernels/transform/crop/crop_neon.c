/* crop_neon.c - crop, flip, cutout and conversion for 64-bit ARM. */
#include "kernels/convert/lanes_neon.h"
#include "kernels/convert/split_neon.h"
#include "kernels/transform/crop/reverse_neon.h"
#define STK_SPLIT_BYTES 1
#include "kernels/transform/crop/crop_body.h"

#include "kernels/transform/variants.h"

stk_crop_fn *stk_crop_choose_neon(const struct stk_convert_plan *convert, uint32_t channels)
{
    return choose_crop(convert, channels);
}
