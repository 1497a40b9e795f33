/* region.c - finds the part of an image that a row needs, and the scale that will do.
 *
 *   frame ──▶ window: the visible part of the grid ──▶ taps of its edges ──▶ rows and columns of the image
 */
#include <assert.h>

#include "kernels/transform/resize/resize.h"

/* The smallest scale at which no side of the rectangle has fewer pixels than the grid; 8 unless it
 * may be scaled. */
static uint32_t scale_for(const struct stk_transform_plan *plan, const struct stk_frame *frame)
{
    if (plan->framing.scales == 0)
        return 8;
    const uint64_t high = ((uint64_t)frame->grid_height * 8 + frame->height - 1) / frame->height;
    const uint64_t wide = ((uint64_t)frame->grid_width * 8 + frame->width - 1) / frame->width;
    const uint64_t most = high > wide ? high : wide;
    return most < 8 ? (uint32_t)most : 8;
}

/* Pixels of one axis, of the image's own size, that are needed at any scale from eighths / 8 on:
 * the codec chooses one. */
static struct stk_pixel_range needs(uint32_t at, uint32_t size, uint32_t eighths, uint32_t out,
                                    uint32_t from, uint32_t count)
{
    struct stk_pixel_range all = { at + size, at };
    for (; eighths <= 8; eighths++) {
        const struct stk_pixel_range scaled =
            stk_resizer_needs(at, size, eighths, out, from, count);
        const uint64_t begin = (uint64_t)scaled.from * 8 / eighths;
        const uint64_t end = ((uint64_t)scaled.to * 8 + eighths - 1) / eighths;
        all.from = begin < all.from ? (uint32_t)begin : all.from;
        all.to = end > all.to ? (uint32_t)end : all.to;
    }
    return all;
}

static stoker_region region_of(const struct stk_transform_plan *plan, const struct stk_frame *frame,
                               const struct stk_window *window, uint32_t height, uint32_t width)
{
    const uint32_t eighths = scale_for(plan, frame);
    struct stk_pixel_range y = { frame->top + window->top, 0 };
    struct stk_pixel_range x = { frame->left + window->left, 0 };
    y.to = y.from + window->height;
    x.to = x.from + window->width;
    if (frame->grid_height != frame->height || frame->grid_width != frame->width) {
        y = needs(frame->top, frame->height, eighths, frame->grid_height, window->top,
                  window->height);
        x = needs(frame->left, frame->width, eighths, frame->grid_width, window->left,
                  window->width);
    }
    return (stoker_region){ .y = y.from,
                            .x = x.from,
                            .height = (y.to < height ? y.to : height) - y.from,
                            .width = (x.to < width ? x.to : width) - x.from,
                            .eighths = eighths };
}

void stk_transform_region(const struct stk_transform_plan *plan, uint32_t height, uint32_t width,
                          uint64_t epoch, uint64_t sample, stoker_region *out)
{
    struct stk_frame frame;
    stk_frame_draw(&plan->framing, height, width, epoch, sample, &frame);
    struct stk_window window = stk_window_of(&plan->framing, &frame);
    if (window.height == 0 || window.width == 0) /* only fill is visible: any pixel will do */
        window = (struct stk_window){ 0, 0, 1, 1 };
    *out = region_of(plan, &frame, &window, height, width);
}

void stk_transform_resize_region(const struct stk_transform_plan *plan, uint32_t height,
                                 uint32_t width, stoker_region *out)
{
    const struct stk_frame frame = { .height = height,
                                     .width = width,
                                     .grid_height = plan->framing.resize_height,
                                     .grid_width = plan->framing.resize_width };
    assert(plan->framing.resizing == STK_RESIZE_EXACT);
    *out = (stoker_region){ .height = height, .width = width, .eighths = scale_for(plan, &frame) };
}
