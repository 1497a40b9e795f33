/* scratch.h - working memory of one thread for a transform plan, in one block.
 *
 *   | this header | window: the resampled part of an image | resizer's memory | retoucher's memory |
 */
#ifndef STK_KERNELS_TRANSFORM_SCRATCH_H
#define STK_KERNELS_TRANSFORM_SCRATCH_H

#include "kernels/transform/color/retoucher.h"
#include "kernels/transform/resize/resize.h"

struct stk_transform_scratch {
    bool made; /* false in the zeroed block, which is laid out on first use */
    uint8_t *window;
    struct stk_resizer resizer;
    struct stk_retoucher retoucher;
};

struct stk_transform_scratch *stk_transform_scratch_at(const struct stk_transform_plan *plan,
                                                       void *memory);

#endif
