/* planned_transform.h - a transform plan for bytes with the convert plan that it needs. */
#ifndef STK_TEST_PLANNED_TRANSFORM_H
#define STK_TEST_PLANNED_TRANSFORM_H

#include "kernels/transform/transform.h"

/* The transform plan points to the convert plan: do not copy or move it. */
struct stk_planned {
    struct stk_convert_plan convert;
    struct stk_transform_plan plan;
    char why[STK_TRANSFORM_WHY_BYTES]; /* why it cannot be framed; else "" */
};

/* Plans for images of height x width, or up to that if sizes differ. Fills in the source type, the
 * elements and a missing scale of `convert`. Returns 0 or the error. */
static inline int stk_planned_make(struct stk_planned *planned, const stoker_transform *transform,
                                   uint64_t seed, uint32_t height, uint32_t width, bool mixed,
                                   struct stk_convert_options convert)
{
    struct stk_framing framing;
    planned->why[0] = '\0';
    int rc = stk_framing_init(&framing, transform, seed, height, width, mixed, planned->why);
    if (rc != 0)
        return rc;
    convert.from = STOKER_DTYPE_UINT8;
    convert.elements = (size_t)framing.out_height * framing.out_width * convert.channels;
    if (convert.scale == 0)
        convert.scale = 1.0F / 255.0F;
    rc = stk_convert_plan_init(&planned->convert, &convert);
    return rc != 0 ? rc
                   : stk_transform_plan_init(&planned->plan, &framing, transform->fill,
                                             &planned->convert, convert.channels, height, width);
}

#endif
