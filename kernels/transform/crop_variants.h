/* crop_variants.h - crop, flip, cutout and conversion, one variant per instruction set; all give the
 * same bits. */
#ifndef STK_KERNELS_TRANSFORM_CROP_VARIANTS_H
#define STK_KERNELS_TRANSFORM_CROP_VARIANTS_H

#include "kernels/transform/transform.h"

/* The function for the types, layout and channels of a valid plan; never NULL. */
stk_crop_fn *stk_crop_choose_baseline(const struct stk_convert_plan *convert, uint32_t channels);
stk_crop_fn *stk_crop_choose_avx2(const struct stk_convert_plan *convert, uint32_t channels);
stk_crop_fn *stk_crop_choose_avx512(const struct stk_convert_plan *convert, uint32_t channels);

#endif
