/* reference.c - the transforms by their definition: the tests' reference.
 *
 * It works on whole images, one step and one pixel at a time, and shares only the draws and the weights of
 * taps with the fast code.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/transform/taps.h"
#include "kernels/transform/transform.h"

/* An allocated image. */
struct image {
    uint32_t height, width, channels;
    uint8_t *pixels;
};

static bool image_make(struct image *image, uint32_t height, uint32_t width, uint32_t channels)
{
    *image = (struct image){ height, width, channels, malloc((size_t)height * width * channels) };
    return image->pixels != NULL;
}

static uint8_t *at(const struct image *image, size_t y, size_t x)
{
    return image->pixels + (y * image->width + x) * image->channels;
}

static uint8_t rounded(int64_t sum)
{
    const int64_t value = (sum + STK_TAP_HALF) >> STK_TAP_BITS;
    return (uint8_t)(value > 255 ? 255 : value);
}

/* Resamples `from` to the height or the width of `to`. */
static void resample(const struct image *from, const struct image *to, bool along)
{
    for (uint32_t y = 0; y < to->height; y++) {
        for (uint32_t x = 0; x < to->width; x++) {
            const struct stk_taps taps = along ? stk_taps_at(from->width, to->width, x)
                                               : stk_taps_at(from->height, to->height, y);
            for (uint32_t channel = 0; channel < to->channels; channel++) {
                int64_t sum = 0;
                for (uint32_t tap = 0; tap < taps.count; tap++) {
                    const uint8_t *pixel =
                        along ? at(from, y, taps.first + tap) : at(from, taps.first + tap, x);
                    sum += (int64_t)stk_tap_weight(&taps, tap) * pixel[channel];
                }
                at(to, y, x)[channel] = rounded(sum);
            }
        }
    }
}

static void cut_out(const struct stk_image *image, const struct stk_frame *frame,
                    const struct image *to)
{
    for (uint32_t y = 0; y < to->height; y++)
        memcpy(at(to, y, 0),
               image->pixels +
                   ((size_t)(frame->top + y) * image->width + frame->left) * to->channels,
               (size_t)to->width * to->channels);
}

static void store(const struct stk_convert_plan *convert, uint32_t channel, uint8_t byte,
                  uint8_t *out, size_t element)
{
    if (convert->copies) {
        out[element] = byte;
        return;
    }
    /* NHWC: the period is a multiple of the channels; NCHW: it is 1 or the channels. */
    const uint32_t place = channel % convert->period;
    const float value = fmaf((float)byte, convert->factor[place], convert->bias[place]);
    if (convert->to == STOKER_DTYPE_FLOAT32) {
        memcpy(out + element * 4, &value, 4);
        return;
    }
    const uint16_t half = convert->to == STOKER_DTYPE_FLOAT16 ? stk_float16_from_float(value)
                                                              : stk_bfloat16_from_float(value);
    memcpy(out + element * 2, &half, 2);
}

static bool inside(int64_t value, int64_t from, int64_t to)
{
    return value >= from && value < to;
}

/* Returns the byte at y, x of the output, before conversion. */
static const uint8_t *seen(const struct stk_transform_plan *plan, const struct stk_frame *frame,
                           const struct image *grid, uint32_t y, uint32_t x)
{
    const int64_t width = plan->framing.out_width;
    const int64_t grid_y = (int64_t)frame->y + y;
    const int64_t grid_x = (int64_t)frame->x + (frame->flip ? width - 1 - x : x);
    if (inside(y, frame->cut_top, frame->cut_bottom) &&
        inside(x, frame->cut_left, frame->cut_right))
        return plan->fill;
    if (!inside(grid_y, 0, grid->height) || !inside(grid_x, 0, grid->width))
        return plan->fill;
    return at(grid, (size_t)grid_y, (size_t)grid_x);
}

static void write_row(const struct stk_transform_plan *plan, const struct stk_frame *frame,
                      const struct image *grid, uint8_t *out)
{
    const uint32_t height = plan->framing.out_height, width = plan->framing.out_width;
    const size_t channels = plan->channels;
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++) {
            const uint8_t *pixel = seen(plan, frame, grid, y, x);
            for (uint32_t channel = 0; channel < channels; channel++) {
                const size_t nhwc = ((size_t)y * width + x) * channels + channel;
                const size_t nchw = ((size_t)channel * height + y) * width + x;
                store(plan->convert, channel, pixel[channel], out,
                      plan->convert->layout == STOKER_LAYOUT_NCHW ? nchw : nhwc);
            }
        }
    }
}

bool stk_transform_row_reference(const struct stk_transform_plan *plan,
                                 const struct stk_image *image, uint64_t epoch, uint64_t sample,
                                 void *out)
{
    struct stk_frame frame;
    struct image part = { 0 }, narrow = { 0 }, grid = { 0 };
    const uint32_t channels = plan->channels;
    stk_frame_draw(&plan->framing, image->height, image->width, epoch, sample, &frame);
    const bool done = image_make(&part, frame.height, frame.width, channels) &&
                      image_make(&narrow, frame.height, frame.grid_width, channels) &&
                      image_make(&grid, frame.grid_height, frame.grid_width, channels);
    if (done) {
        cut_out(image, &frame, &part);
        resample(&part, &narrow, true);
        resample(&narrow, &grid, false);
        write_row(plan, &frame, &grid, out);
    }
    free(part.pixels);
    free(narrow.pixels);
    free(grid.pixels);
    return done;
}
