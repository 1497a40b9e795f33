/* blend.h - mixes the samples of a complete batch (stoker/blend.h): draws, the fields beside,
 * arrays on the host.
 *
 *   last row done ─▶ mixing ─▶ batch hook ─▶ finish ─▶ READY   by the worker that did the last row
 *   READY ─▶ gaps of skipped rows closed ─▶ mixing ─▶ finish   by the consumer, if rows are skipped
 *
 * If a GPU converts the images, it mixes them as well (device_blend.h), from the same draw.
 */
#ifndef STK_PIPELINE_MIXING_H
#define STK_PIPELINE_MIXING_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/blend.h>

#include "kernels/transform/blend/blend.h"
#include "loader/pipeline/order/schedule.h"
#include "loader/pipeline/slots/slots.h"

enum stk_mixed { STK_MIXED_NOT, STK_MIXED_UP, STK_MIXED_CUT };

/* What is done to one batch. */
struct stk_mix_draw {
    enum stk_mixed how;
    uint32_t steps;                    /* UP: lambda x STK_MIX_STEPS */
    uint32_t top, left, bottom, right; /* CUT: pixels; bottom and right excluded */
    float lambda;
};

/* An array whose rows are mixed: images or masks. */
struct stk_mix_array {
    uint32_t field;
    bool on_device;         /* the host leaves it alone */
    enum stk_mix_type type; /* for mixup */
    size_t elements;        /* for mixup, of a row */
    /* For cutmix: a row is `planes` planes of height x width pixels. */
    uint32_t height, width, planes;
    size_t pixel_bytes;
};

/* Constant once made. All zero: nothing is mixed. */
struct stk_blend_plan {
    bool on;
    stoker_blend options;
    uint64_t seed;
    uint32_t height, width; /* pixels of an image as delivered; set for cutmix */
    struct stk_mix_array *arrays;
    uint32_t array_count;
    uint32_t label, label_b; /* fields, or both STK_NO_FIELD */
    uint32_t partner, lambda;
};

/* Returns true if the options ask for anything. */
static inline bool stk_blend_wanted(const stoker_blend *mixing)
{
    return mixing->mixup_alpha > 0.0F || mixing->cutmix_alpha > 0.0F;
}

void stk_blend_plan_destroy(struct stk_blend_plan *plan); /* all zero is allowed */

/* Draw for the batch of `rows` rows whose first one is at that position of the epoch. */
void stk_blend_draw(const struct stk_blend_plan *plan, uint64_t epoch, uint64_t position,
                    uint32_t rows, struct stk_mix_draw *draw);

/* The box of a draw in rows of an array. */
struct stk_mix_box stk_blend_box(const struct stk_mix_array *array,
                                 const struct stk_mix_draw *draw);

/* Mix a slot of `rows` rows, all of them good. One thread, before the fields are finished. */
void stk_blend_slot(const struct stk_blend_plan *plan, const struct stk_slots *slots,
                    struct stk_slot *slot, const struct stk_batch_place *place, uint32_t rows);

#endif
