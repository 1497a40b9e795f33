/* blend.c - see blend.h. */
#include "loader/pipeline/batch/blend.h"

#include <math.h>
#include <string.h>

#include "loader/base/memory/memory.h"
#include "loader/base/rng.h"
#include "loader/pipeline/batch/beta.h"

void stk_blend_plan_destroy(struct stk_blend_plan *plan)
{
    stk_free(plan->arrays);
    *plan = (struct stk_blend_plan){ .on = false };
}

/* ---- draws ---- */

/* From center - half to center + half, within 0..size. */
static void cut_side(uint32_t center, uint32_t half, uint32_t size, uint32_t *from, uint32_t *to)
{
    *from = center > half ? center - half : 0;
    *to = half < size - center ? center + half : size;
}

static void draw_box(const struct stk_blend_plan *plan, stoker_rng *rng, double lambda,
                     struct stk_mix_draw *draw)
{
    const double share = 0.5 * sqrt(1.0 - lambda); /* half of the box, as a share of a side */
    const uint32_t x = (uint32_t)stoker_rng_below(rng, plan->width);
    const uint32_t y = (uint32_t)stoker_rng_below(rng, plan->height);
    cut_side(x, (uint32_t)(share * plan->width), plan->width, &draw->left, &draw->right);
    cut_side(y, (uint32_t)(share * plan->height), plan->height, &draw->top, &draw->bottom);
    const double cut = (double)(draw->bottom - draw->top) * (double)(draw->right - draw->left);
    draw->lambda = (float)(1.0 - cut / ((double)plan->width * (double)plan->height));
}

void stk_blend_draw(const struct stk_blend_plan *plan, uint64_t epoch, uint64_t position,
                    uint32_t rows, struct stk_mix_draw *draw)
{
    const stoker_blend *options = &plan->options;
    stoker_rng rng;
    *draw = (struct stk_mix_draw){ .how = STK_MIXED_NOT, .lambda = 1.0F };
    stoker_rng_init(&rng, plan->seed, epoch, position, STK_RNG_OWN(STK_RNG_MIX));
    const bool mixes = stoker_rng_double(&rng) < (double)options->probability;
    bool cuts = stoker_rng_double(&rng) < (double)options->cutmix_share;
    if (!mixes || rows < 2)
        return;
    if (options->mixup_alpha == 0.0F || options->cutmix_alpha == 0.0F)
        cuts = options->cutmix_alpha > 0.0F;
    const double lambda =
        stk_beta(&rng, (double)(cuts ? options->cutmix_alpha : options->mixup_alpha));
    if (cuts) {
        draw->how = STK_MIXED_CUT;
        draw_box(plan, &rng, lambda, draw);
        return;
    }
    draw->how = STK_MIXED_UP;
    draw->steps = (uint32_t)(lambda * STK_MIX_STEPS + 0.5);
    draw->lambda = (float)draw->steps / (float)STK_MIX_STEPS;
}

struct stk_mix_box stk_blend_box(const struct stk_mix_array *array, const struct stk_mix_draw *draw)
{
    const size_t line_bytes = array->width * array->pixel_bytes;
    return (struct stk_mix_box){
        .first_bytes = draw->top * line_bytes + draw->left * array->pixel_bytes,
        .line_bytes = line_bytes,
        .plane_bytes = array->height * line_bytes,
        .run_bytes = (draw->right - draw->left) * array->pixel_bytes,
        .lines = draw->bottom - draw->top,
        .planes = array->planes,
    };
}

/* ---- a slot ---- */

static uint8_t *row_of(const struct stk_slots *slots, const struct stk_slot *slot, uint32_t field,
                       uint32_t row)
{
    return stk_slot_field_row(&slots->fields.each[field], slot->images, row);
}

/* The fields beside: labels are as stored still, at the distance of rows in the type that they
 * get. */
static void write_numbers(const struct stk_blend_plan *plan, const struct stk_slots *slots,
                          const struct stk_slot *slot, const struct stk_mix_draw *draw,
                          uint32_t rows)
{
    for (uint32_t row = 0; row < rows; row++) {
        const uint32_t other = draw->how == STK_MIXED_NOT ? row : (row > 0 ? row - 1 : rows - 1);
        const int64_t partner = other;
        memcpy(row_of(slots, slot, plan->partner, row), &partner, sizeof(partner));
        memcpy(row_of(slots, slot, plan->lambda, row), &draw->lambda, sizeof(draw->lambda));
        if (plan->label != STK_NO_FIELD)
            memcpy(row_of(slots, slot, plan->label_b, row), row_of(slots, slot, plan->label, other),
                   slots->fields.each[plan->label].stride_bytes);
    }
}

static void mix_array(const struct stk_mix_array *array, const struct stk_mix_rows *rows,
                      const struct stk_mix_draw *draw)
{
    if (draw->how == STK_MIXED_UP) {
        stk_mixup_rows(array->type, rows, array->elements, draw->steps);
    } else {
        const struct stk_mix_box box = stk_blend_box(array, draw);
        stk_cutmix_rows(rows, &box);
    }
}

void stk_blend_slot(const struct stk_blend_plan *plan, const struct stk_slots *slots,
                    struct stk_slot *slot, const struct stk_batch_place *place, uint32_t rows)
{
    struct stk_mix_draw draw;
    stk_blend_draw(plan, place->epoch, place->position, rows, &draw);
    write_numbers(plan, slots, slot, &draw, rows);
    for (uint32_t i = 0; i < plan->array_count && draw.how != STK_MIXED_NOT; i++) {
        const struct stk_mix_array *array = &plan->arrays[i];
        const struct stk_slot_field *field = &slots->fields.each[array->field];
        const struct stk_mix_rows all = { .at = slot->images + field->at,
                                          .stride_bytes = field->stride_bytes,
                                          .count = rows };
        if (!array->on_device)
            mix_array(array, &all, &draw);
    }
}
