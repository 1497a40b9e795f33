/* draw.h - the words that frames are made from (frame.h, block 0), for some rows at once: one variant per
 * instruction set, all with the same words. */
#ifndef STK_KERNELS_TRANSFORM_DRAW_H
#define STK_KERNELS_TRANSFORM_DRAW_H

#include "kernels/transform/transform.h"

stk_draw_fn stk_draw_words_baseline;
stk_draw_fn stk_draw_words_avx2;

#endif
