/* row.c - turns images into rows: draws their frames, resamples them if needed, and crops them. */
#include <assert.h>
#include <stddef.h>

#include "kernels/transform/scratch.h"

enum {
    GROUP_ROWS = 16,         /* rows drawn and prefetched at a time */
    TOUCHED_BYTES_MAX = 4096 /* largest row whose ends are prefetched early */
};

static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* Resamples the visible part, which then is the crop's image. */
static void resample(const struct stk_transform_plan *plan, struct stk_transform_scratch *scratch,
                     const struct stk_image *image, const struct stk_frame *frame,
                     struct stk_crop *crop)
{
    const struct stk_window window = stk_window_of(&plan->framing, frame);
    crop->pixels = scratch->window;
    crop->stride_bytes = (size_t)window.width * plan->channels;
    crop->height = (int32_t)window.height;
    crop->width = (int32_t)window.width;
    crop->y = frame->y - (int32_t)window.top;
    crop->x = frame->x - (int32_t)window.left;
    if (window.height > 0 && window.width > 0)
        stk_resizer_run(&scratch->resizer, plan, image, frame, &window, scratch->window);
}

/* The frame of an image, or of the image that it is a part of. */
static void draw_frame(const struct stk_transform_plan *plan, const struct stk_image *image,
                       uint64_t epoch, uint64_t sample, struct stk_frame *frame)
{
    const bool is_part = image->eighths != 0;
    const uint32_t height = is_part ? image->whole_height : image->height;
    const uint32_t width = is_part ? image->whole_width : image->width;
    assert(height <= plan->height_max);
    assert(width <= plan->width_max);
    stk_frame_draw(&plan->framing, height, width, epoch, sample, frame);
}

/* Take the stored pixels of the frame's rectangle as the crop's image. */
static void crop_rectangle(const struct stk_transform_plan *plan, const struct stk_image *image,
                           const struct stk_frame *frame, struct stk_crop *crop)
{
    const uint32_t below = image->y > frame->top ? image->y - frame->top : 0;
    const uint32_t beside = image->x > frame->left ? image->x - frame->left : 0;
    const uint32_t top = frame->top + below - image->y, left = frame->left + beside - image->x;
    assert(image->eighths == 0 || image->eighths == 8);
    crop->pixels = image->pixels + top * crop->stride_bytes + (size_t)left * plan->channels;
    crop->height = smaller((int32_t)(frame->height - below), (int32_t)(image->height - top));
    crop->width = smaller((int32_t)(frame->width - beside), (int32_t)(image->width - left));
    crop->y = frame->y - (int32_t)below;
    crop->x = frame->x - (int32_t)beside;
}

static bool is_resampled(const struct stk_frame *frame)
{
    return frame->grid_height != frame->height || frame->grid_width != frame->width;
}

void stk_transform_row(const struct stk_transform_plan *plan, void *scratch,
                       const struct stk_image *image, uint64_t epoch, uint64_t sample,
                       const struct stk_image *later, void *out)
{
    struct stk_transform_scratch *parts = stk_transform_scratch_at(plan, scratch);
    struct stk_frame frame;
    draw_frame(plan, image, epoch, sample, &frame);
    struct stk_crop crop = {
        .stride_bytes = (size_t)image->width * plan->channels,
        .flip = frame.flip != 0,
        .cut_top = (int32_t)frame.cut_top,
        .cut_left = (int32_t)frame.cut_left,
        .cut_bottom = (int32_t)frame.cut_bottom,
        .cut_right = (int32_t)frame.cut_right,
        .later = later == NULL ? NULL : later->pixels,
        .later_bytes = later == NULL ? 0 : (size_t)later->height * later->width * plan->channels,
    };
    if (is_resampled(&frame))
        resample(plan, parts, image, &frame, &crop);
    else
        crop_rectangle(plan, image, &frame, &crop);
    if (stk_retouching_any(&plan->framing.retouch))
        stk_retoucher_run(&parts->retoucher, plan, epoch, sample, &crop);
    plan->crop(plan, &crop, out);
}

/* Prefetches the ends of several later rows: each may need a page walk, and the CPU runs several at
 * once. A row's other lines are prefetched while an earlier row is made. */
static void touch_rows(const void *const *images, uint32_t count, size_t bytes)
{
    for (uint32_t k = 0; k < count; k++) {
        const uint8_t *image = images[k];
        __builtin_prefetch(image, 0, 3);
        __builtin_prefetch(image + bytes - 1, 0, 3);
    }
}

static uint32_t at_most(uint32_t value, uint32_t most)
{
    return value < most ? value : most;
}

/* Makes rows without resampling. A digit is so little work that everything common to the rows is
 * computed once and the frame stays in registers. */
__attribute__((flatten)) static void crop_rows(const struct stk_transform_plan *plan,
                                               const void *const *images, uint32_t height,
                                               uint32_t width, uint32_t count, uint32_t ahead,
                                               uint64_t epoch, const uint64_t *samples,
                                               uint8_t *out)
{
    const struct stk_framing *framing = &plan->framing;
    const size_t stride = (size_t)width * plan->channels, bytes = height * stride;
    const uint32_t known = count + ahead, distance = plan->convert->prefetch_rows;
    const bool touches = distance > 0 && bytes <= TOUCHED_BYTES_MAX;
    struct stk_random words[GROUP_ROWS] = { 0 };
    const bool is_drawn = stk_frame_is_drawn(framing);
    struct stk_crop crop = { .stride_bytes = stride,
                             .height = (int32_t)height,
                             .width = (int32_t)width,
                             .later_bytes = bytes };
    for (uint32_t k = 0; k < count; k++, out += plan->convert->to_bytes) {
        if (k % GROUP_ROWS == 0) {
            if (touches && distance < known - k)
                touch_rows(images + k + distance, at_most(known - k - distance, GROUP_ROWS), bytes);
            if (is_drawn)
                plan->draw_words(framing->key, epoch, samples + k, at_most(count - k, GROUP_ROWS),
                                 words);
        }
        struct stk_frame frame;
        stk_frame_take(framing, height, width, epoch, samples[k], words[k % GROUP_ROWS], &frame);
        crop.pixels = images[k];
        crop.later = images[distance < known - k ? k + distance : k];
        crop.y = frame.y;
        crop.x = frame.x;
        crop.flip = frame.flip != 0;
        crop.cut_top = (int32_t)frame.cut_top;
        crop.cut_left = (int32_t)frame.cut_left;
        crop.cut_bottom = (int32_t)frame.cut_bottom;
        crop.cut_right = (int32_t)frame.cut_right;
        plan->crop(plan, &crop, out);
    }
}

void stk_transform_rows(const struct stk_transform_plan *plan, void *scratch,
                        const void *const *images, uint32_t height, uint32_t width, uint32_t count,
                        uint32_t ahead, uint64_t epoch, const uint64_t *samples, void *out)
{
    assert(height <= plan->height_max);
    assert(width <= plan->width_max);
    if (plan->framing.resizing == STK_RESIZE_NONE && !stk_retouching_any(&plan->framing.retouch)) {
        crop_rows(plan, images, height, width, count, ahead, epoch, samples, out);
        return;
    }
    const uint32_t known = count + ahead, distance = plan->convert->prefetch_rows;
    uint8_t *row_out = out;
    for (uint32_t k = 0; k < count; k++, row_out += plan->convert->to_bytes) {
        const uint32_t next = distance < known - k ? k + distance : k;
        const struct stk_image image = { .pixels = images[k], .height = height, .width = width };
        const struct stk_image later = { .pixels = images[next], .height = height, .width = width };
        stk_transform_row(plan, scratch, &image, epoch, samples[k], &later, row_out);
    }
}

/* A whole image, to be resized to the size of RESIZE_EXACT. */
static struct stk_frame whole_frame(const struct stk_transform_plan *plan, uint32_t height,
                                    uint32_t width)
{
    assert(plan->framing.resizing == STK_RESIZE_EXACT);
    return (struct stk_frame){ .height = height,
                               .width = width,
                               .grid_height = plan->framing.resize_height,
                               .grid_width = plan->framing.resize_width };
}

void stk_transform_resize(const struct stk_transform_plan *plan, void *scratch,
                          const struct stk_image *image, uint8_t *out)
{
    struct stk_transform_scratch *parts = stk_transform_scratch_at(plan, scratch);
    const bool is_part = image->eighths != 0;
    const struct stk_frame frame = whole_frame(plan, is_part ? image->whole_height : image->height,
                                               is_part ? image->whole_width : image->width);
    const struct stk_window window = { 0, 0, frame.grid_height, frame.grid_width };
    stk_resizer_run(&parts->resizer, plan, image, &frame, &window, out);
}
