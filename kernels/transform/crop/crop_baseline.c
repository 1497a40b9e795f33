/* crop_baseline.c - crop, flip, cutout and conversion in plain C, for any CPU.
 *
 * The convert plan's table holds the results of all 256 bytes.
 */
#include <assert.h>
#include <string.h>

#include "kernels/transform/variants.h"

/* Strides of the output, in elements. */
struct place {
    size_t line, pixel, channel;
};

static struct place place_of(const struct stk_transform_plan *plan)
{
    const size_t height = plan->framing.out_height, width = plan->framing.out_width;
    if (plan->convert->layout == STOKER_LAYOUT_NCHW)
        return (struct place){ width, 1, height * width };
    return (struct place){ width * plan->channels, plan->channels, 1 };
}

/* Returns the source of the output's pixel x in the line at `line` (NULL: a line of fill), or the
 * fill. */
static const uint8_t *source_of(const struct stk_transform_plan *plan, const struct stk_crop *crop,
                                const uint8_t *line, int32_t y, int32_t x)
{
    const int32_t width = (int32_t)plan->framing.out_width;
    const int32_t source_x = crop->x + (crop->flip ? width - 1 - x : x);
    const bool cut =
        y >= crop->cut_top && y < crop->cut_bottom && x >= crop->cut_left && x < crop->cut_right;
    if (line == NULL || cut || source_x < 0 || source_x >= crop->width)
        return plan->fill;
    return line + (size_t)source_x * plan->channels;
}

static void store_element(const struct stk_transform_plan *plan, uint32_t channel, uint8_t byte,
                          uint8_t *row, size_t element)
{
    const struct stk_convert_plan *convert = plan->convert;
    if (convert->copies) {
        row[element] = byte;
    } else if (convert->to == STOKER_DTYPE_FLOAT32) {
        memcpy(row + element * 4, &convert->table[channel % convert->table_channels][byte], 4);
    } else {
        const uint16_t half = (uint16_t)convert->table[channel % convert->table_channels][byte];
        memcpy(row + element * 2, &half, 2);
    }
}

static void crop_row(const struct stk_transform_plan *plan, const struct stk_crop *crop,
                     uint8_t *out)
{
    const struct place place = place_of(plan);
    const int32_t height = (int32_t)plan->framing.out_height;
    const int32_t width = (int32_t)plan->framing.out_width;
    for (int32_t y = 0; y < height; y++) {
        const int32_t source_y = crop->y + y;
        const uint8_t *line = source_y < 0 || source_y >= crop->height
                                  ? NULL
                                  : crop->pixels + (size_t)source_y * crop->stride_bytes;
        for (int32_t x = 0; x < width; x++) {
            const uint8_t *source = source_of(plan, crop, line, y, x);
            for (uint32_t channel = 0; channel < plan->channels; channel++)
                store_element(plan, channel, source[channel], out,
                              (size_t)y * place.line + (size_t)x * place.pixel +
                                  channel * place.channel);
        }
    }
}

stk_crop_fn *stk_crop_choose_baseline(const struct stk_convert_plan *convert, uint32_t channels)
{
    (void)convert; /* only asserted */
    (void)channels;
    assert(convert->copies || convert->table_channels > 0);
    return crop_row;
}
