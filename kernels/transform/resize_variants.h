/* resize_variants.h - resampling, one variant per instruction set; all give the same bytes. */
#ifndef STK_KERNELS_TRANSFORM_RESIZE_VARIANTS_H
#define STK_KERNELS_TRANSFORM_RESIZE_VARIANTS_H

#include "kernels/transform/transform.h"

stk_resize_lines_fn stk_resize_lines_baseline, stk_resize_lines_avx2;
stk_resize_column_fn stk_resize_column_baseline, stk_resize_column_avx2;

#endif
