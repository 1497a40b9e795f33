/* transform_row.c - one picture becomes one row: its frame drawn, resampled if need be, cropped. */
#include <assert.h>
#include <stddef.h>

#include "kernels/transform_scratch.h"

static int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* The part of the grid that the output sees; its size may be 0. */
static struct stk_window window_of(const struct stk_framing *framing, const struct stk_frame *frame)
{
    const int32_t top = larger(frame->y, 0), left = larger(frame->x, 0);
    const int32_t bottom =
        smaller(frame->y + (int32_t)framing->out_height, (int32_t)frame->grid_height);
    const int32_t right =
        smaller(frame->x + (int32_t)framing->out_width, (int32_t)frame->grid_width);
    return (struct stk_window){ .top = (uint32_t)top,
                                .left = (uint32_t)left,
                                .height = (uint32_t)larger(bottom - top, 0),
                                .width = (uint32_t)larger(right - left, 0) };
}

/* Resample what is seen; the crop then looks at that. */
static void resample(const struct stk_transform_plan *plan, struct stk_transform_scratch *scratch,
                     const struct stk_image *picture, const struct stk_frame *frame,
                     struct stk_crop *crop)
{
    const struct stk_window window = window_of(&plan->framing, frame);
    crop->pixels = scratch->window;
    crop->stride_bytes = (size_t)window.width * plan->channels;
    crop->height = (int32_t)window.height;
    crop->width = (int32_t)window.width;
    crop->y = frame->y - (int32_t)window.top;
    crop->x = frame->x - (int32_t)window.left;
    if (window.height > 0 && window.width > 0)
        stk_resizer_run(&scratch->resizer, plan, picture, frame, &window, scratch->window);
}

void stk_transform_row(const struct stk_transform_plan *plan, void *scratch,
                       const struct stk_image *picture, uint64_t epoch, uint64_t sample,
                       const struct stk_image *later, void *out)
{
    struct stk_transform_scratch *parts = stk_transform_scratch_at(plan, scratch);
    struct stk_frame frame;
    assert(picture->height <= plan->height_max);
    assert(picture->width <= plan->width_max);
    stk_frame_draw(&plan->framing, picture->height, picture->width, epoch, sample, &frame);

    const size_t stride = (size_t)picture->width * plan->channels;
    struct stk_crop crop = {
        .pixels = picture->pixels + frame.top * stride + (size_t)frame.left * plan->channels,
        .stride_bytes = stride,
        .height = (int32_t)frame.height,
        .width = (int32_t)frame.width,
        .y = frame.y,
        .x = frame.x,
        .flip = frame.flip != 0,
        .cut_top = (int32_t)frame.cut_top,
        .cut_left = (int32_t)frame.cut_left,
        .cut_bottom = (int32_t)frame.cut_bottom,
        .cut_right = (int32_t)frame.cut_right,
        .later = later == NULL ? NULL : later->pixels,
        .later_bytes = later == NULL ? 0 : (size_t)later->height * later->width * plan->channels,
    };
    if (frame.grid_height != frame.height || frame.grid_width != frame.width)
        resample(plan, parts, picture, &frame, &crop);
    plan->crop(plan, &crop, out);
}

void stk_transform_resize(const struct stk_transform_plan *plan, void *scratch,
                          const struct stk_image *picture, uint8_t *out)
{
    struct stk_transform_scratch *parts = stk_transform_scratch_at(plan, scratch);
    assert(plan->framing.resizing == STK_RESIZE_EXACT);
    const struct stk_frame frame = { .height = picture->height,
                                     .width = picture->width,
                                     .grid_height = plan->framing.resize_height,
                                     .grid_width = plan->framing.resize_width };
    const struct stk_window window = { 0, 0, frame.grid_height, frame.grid_width };
    stk_resizer_run(&parts->resizer, plan, picture, &frame, &window, out);
}
