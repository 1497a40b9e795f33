/* plan.c - makes a transform plan: functions, tables, fill, and the layout of the scratch. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernels/convert/variants.h"
#include "kernels/transform/color/retoucher.h"
#include "kernels/transform/resize/resize.h"
#include "kernels/transform/scratch.h"
#include "kernels/transform/variants.h"

const struct stk_transform_variant stk_transform_variants[STK_TRANSFORM_VARIANTS_MAX + 1] = {
#ifdef STK_KERNELS_X86
    { "avx512", stk_convert_runs_on_avx512, stk_draw_words_avx2, stk_crop_choose_avx512,
      stk_resize_lines_avx2, stk_resize_column_avx2, stk_color_avx2, stk_gray_avx2, stk_blur_avx2 },
    { "avx2", stk_convert_runs_on_avx2, stk_draw_words_avx2, stk_crop_choose_avx2,
      stk_resize_lines_avx2, stk_resize_column_avx2, stk_color_avx2, stk_gray_avx2, stk_blur_avx2 },
#endif
#ifdef STK_KERNELS_NEON
    { "neon", stk_convert_runs_anywhere, stk_draw_words_baseline, stk_crop_choose_neon,
      stk_resize_lines_neon, stk_resize_column_neon, stk_color_baseline, stk_gray_baseline,
      stk_blur_neon },
#endif
    { "baseline", stk_convert_runs_anywhere, stk_draw_words_baseline, stk_crop_choose_baseline,
      stk_resize_lines_baseline, stk_resize_column_baseline, stk_color_baseline, stk_gray_baseline,
      stk_blur_baseline },
    { .name = NULL },
};

static int check_plan(const struct stk_framing *framing, const struct stk_convert_plan *convert,
                      uint32_t channels)
{
    if (convert->from != STOKER_DTYPE_UINT8 || convert->widen != NULL || channels < 1 ||
        channels > STOKER_TRANSFORM_CHANNELS_MAX)
        return STOKER_ETYPE;
    const size_t elements = (size_t)framing->out_height * framing->out_width * channels;
    const bool shaped = convert->elements == elements &&
                        (convert->layout == STOKER_LAYOUT_NHWC || convert->channels == channels) &&
                        (convert->table_channels <= 1 || convert->table_channels == channels);
    return shaped ? STOKER_OK : STOKER_EINVAL;
}

void stk_transform_plan_choose(struct stk_transform_plan *plan,
                               const struct stk_transform_variant *variant)
{
    plan->draw_words = variant->draw_words;
    plan->crop = variant->choose_crop(plan->convert, plan->channels);
    plan->resize_lines = variant->resize_lines;
    plan->resize_column = variant->resize_column;
    plan->color = variant->color;
    plan->gray = variant->gray;
    plan->blur = variant->blur;
}

/* Writes one element of fill as the output has it; returns its size in bytes. */
static uint32_t fill_element(const struct stk_transform_plan *plan, uint32_t channel, uint8_t *out)
{
    const struct stk_convert_plan *convert = plan->convert;
    const float value =
        fmaf((float)plan->fill[channel], plan->factor[channel], plan->bias[channel]);
    if (convert->copies) {
        *out = plan->fill[channel];
        return 1;
    }
    if (convert->to == STOKER_DTYPE_FLOAT32) {
        memcpy(out, &value, sizeof(value));
        return sizeof(value);
    }
    const uint16_t half = convert->to == STOKER_DTYPE_FLOAT16 ? stk_float16_from_float(value)
                                                              : stk_bfloat16_from_float(value);
    memcpy(out, &half, sizeof(half));
    return sizeof(half);
}

/* Repeats a pixel of fill, or one channel of it for each plane. */
static void make_filled(struct stk_transform_plan *plan)
{
    const bool planes = plan->convert->layout == STOKER_LAYOUT_NCHW;
    plan->filled_planes = planes ? plan->channels : 1;
    for (uint32_t channel = 0; channel < plan->channels; channel++) {
        uint8_t element[sizeof(float)];
        const uint32_t bytes = fill_element(plan, channel, element);
        uint8_t *filled = plan->filled[planes ? channel : 0];
        plan->filled_bytes = planes ? bytes : bytes * plan->channels;
        for (uint32_t at = planes ? 0 : bytes * channel; at + bytes <= STK_FILLED_BYTES;
             at += plan->filled_bytes)
            memcpy(filled + at, element, bytes);
    }
}

int stk_transform_plan_init(struct stk_transform_plan *plan, const struct stk_framing *framing,
                            const uint8_t fill[STOKER_TRANSFORM_CHANNELS_MAX],
                            const struct stk_convert_plan *convert, uint32_t channels,
                            uint32_t height_max, uint32_t width_max)
{
    int rc = check_plan(framing, convert, channels);
    if (rc != STOKER_OK)
        return rc;
    *plan = (struct stk_transform_plan){ .framing = *framing,
                                         .convert = convert,
                                         .channels = channels,
                                         .height_max = height_max,
                                         .width_max = width_max };
    for (uint32_t i = 0; i < STK_FILL_BYTES; i++)
        plan->fill[i] = fill[i % channels];
    for (uint32_t i = 0; i < STK_LINE_ELEMENTS; i++) {
        const uint32_t channel = i % channels;
        plan->factor[i] = convert->factor[channel % convert->period];
        plan->bias[i] = convert->bias[channel % convert->period];
    }
    make_filled(plan);
    const bool planes = convert->layout == STOKER_LAYOUT_NCHW && channels > 1;
    stk_shuffles_init(plan->shuffles, channels, planes, plan->factor, plan->bias, plan->fill);
    const struct stk_transform_variant *variant = stk_transform_variants;
    while (!variant->runs_here())
        variant++;
    assert(variant->name != NULL);
    stk_transform_plan_choose(plan, variant);
    return STOKER_OK;
}

static size_t window_bytes(const struct stk_transform_plan *plan)
{
    const size_t pixels = (size_t)plan->framing.out_height * plan->framing.out_width;
    return plan->framing.resizing == STK_RESIZE_NONE
               ? 0
               : (pixels * plan->channels + STK_IMAGE_SLACK_BYTES + 63) / 64 * 64;
}

static const size_t header_bytes = (sizeof(struct stk_transform_scratch) + 63) / 64 * 64;

size_t stk_transform_scratch_bytes(const struct stk_transform_plan *plan)
{
    return header_bytes + window_bytes(plan) + stk_resizer_bytes(plan) + stk_retoucher_bytes(plan);
}

struct stk_transform_scratch *stk_transform_scratch_at(const struct stk_transform_plan *plan,
                                                       void *memory)
{
    struct stk_transform_scratch *scratch = memory;
    if (scratch->made)
        return scratch;
    scratch->made = true;
    scratch->window = (uint8_t *)memory + header_bytes;
    if (plan->framing.resizing != STK_RESIZE_NONE)
        stk_resizer_init(&scratch->resizer, plan, scratch->window + window_bytes(plan));
    stk_retoucher_init(&scratch->retoucher, plan,
                       scratch->window + window_bytes(plan) + stk_resizer_bytes(plan));
    return scratch;
}
