/* variants.h - the functions of a transform that exist once per instruction set; all variants give
 * the same bits. */
#ifndef STK_KERNELS_TRANSFORM_VARIANTS_H
#define STK_KERNELS_TRANSFORM_VARIANTS_H

#include "kernels/transform/transform.h"

/* The crop function for the types, layout and channels of a valid plan; never NULL. */
stk_crop_fn *stk_crop_choose_baseline(const struct stk_convert_plan *convert, uint32_t channels);
stk_crop_fn *stk_crop_choose_avx2(const struct stk_convert_plan *convert, uint32_t channels);
stk_crop_fn *stk_crop_choose_avx512(const struct stk_convert_plan *convert, uint32_t channels);
stk_crop_fn *stk_crop_choose_neon(const struct stk_convert_plan *convert, uint32_t channels);

stk_resize_lines_fn stk_resize_lines_baseline, stk_resize_lines_avx2, stk_resize_lines_neon;
stk_resize_column_fn stk_resize_column_baseline, stk_resize_column_avx2, stk_resize_column_neon;

stk_color_fn stk_color_baseline, stk_color_avx2;
stk_gray_fn stk_gray_baseline, stk_gray_avx2;
stk_blur_fn stk_blur_baseline, stk_blur_avx2, stk_blur_neon;

stk_draw_fn stk_draw_words_baseline, stk_draw_words_avx2;

#endif
