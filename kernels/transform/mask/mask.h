/* mask.h - a mask takes the geometry that was drawn for its image, and nothing else: resize, crop,
 * flip and rotation, by the nearest pixel; cutout and what lies outside are filled. Colors, blur,
 * scale and type leave it alone.
 *
 *   output pixel ─▶ not rotated ─▶ not flipped ─▶ position in the grid ─▶ nearest pixel of the source rectangle
 *
 * Each step takes the nearest pixel of the one before, so that a mask's pixel is always one of the
 * source's, with whatever bytes it has. The mask has its image's height and width.
 *
 * Compiled as C and by nvcc.
 */
#ifndef STK_KERNELS_TRANSFORM_MASK_H
#define STK_KERNELS_TRANSFORM_MASK_H

#include "kernels/transform/frame/frame.h"

enum { STK_MASK_PIXEL_BYTES_MAX = 32 };

/* What was drawn for one image. */
struct stk_mask_frame {
    struct stk_frame frame;
    struct stk_rotation rotation;
};

STK_RNG void stk_mask_draw(const struct stk_framing *framing, uint32_t height, uint32_t width,
                           uint64_t epoch, uint64_t sample, struct stk_mask_frame *drawn)
{
    struct stk_retouch retouch;
    stk_frame_draw(framing, height, width, epoch, sample, &drawn->frame);
    if (framing->retouch.rotates == 0)
        return;
    stk_retouch_turn(stk_retouch_angle(&framing->retouch, epoch, sample), &retouch);
    drawn->rotation = stk_rotation_of(&retouch, framing->out_height, framing->out_width);
}

/* Returns the source's coordinate for coordinate `at` of the grid, from the rectangle's `first` on,
 * or -1 outside. */
STK_RNG int32_t stk_mask_nearest(int32_t at, uint32_t grid, uint32_t first, uint32_t count)
{
    if (at < 0 || at >= (int32_t)grid)
        return -1;
    return (int32_t)(first +
                     (uint32_t)((2 * (uint64_t)(uint32_t)at + 1) * count / (2 * (uint64_t)grid)));
}

/* The source's line of line y of the cropped image, or -1. */
STK_RNG int32_t stk_mask_line(const struct stk_frame *frame, uint32_t y)
{
    return stk_mask_nearest(frame->y + (int32_t)y, frame->grid_height, frame->top, frame->height);
}

/* The source's column of column x of the cropped and flipped image, or -1. */
STK_RNG int32_t stk_mask_column(const struct stk_framing *framing, const struct stk_frame *frame,
                                uint32_t x)
{
    const uint32_t turned = frame->flip != 0 ? framing->out_width - 1 - x : x;
    return stk_mask_nearest(frame->x + (int32_t)turned, frame->grid_width, frame->left,
                            frame->width);
}

/* The nearest pixel of a position in steps of 2^-33. */
STK_RNG int32_t stk_mask_pixel(int64_t steps)
{
    return (int32_t)((steps + (INT64_C(1) << 32)) >> 33);
}

STK_RNG int stk_mask_is_cut(const struct stk_frame *frame, uint32_t y, uint32_t x)
{
    return y >= frame->cut_top && y < frame->cut_bottom && x >= frame->cut_left &&
           x < frame->cut_right;
}

/* Returns the number of the source's pixel for the output's pixel (y, x), counted line by line in
 * images of `width` pixels, or -1 for fill. */
STK_RNG int64_t stk_mask_source(const struct stk_framing *framing,
                                const struct stk_mask_frame *drawn, uint32_t width, uint32_t y,
                                uint32_t x)
{
    const struct stk_rotation *turn = &drawn->rotation;
    if (stk_mask_is_cut(&drawn->frame, y, x))
        return -1;
    if (framing->retouch.rotates != 0) {
        const int32_t from_y = stk_mask_pixel(turn->y + y * turn->y_by_y + x * turn->y_by_x);
        const int32_t from_x = stk_mask_pixel(turn->x + y * turn->x_by_y + x * turn->x_by_x);
        if (from_y < 0 || from_x < 0 || from_y >= (int32_t)framing->out_height ||
            from_x >= (int32_t)framing->out_width)
            return -1;
        y = (uint32_t)from_y;
        x = (uint32_t)from_x;
    }
    const int32_t line = stk_mask_line(&drawn->frame, y);
    const int32_t column = stk_mask_column(framing, &drawn->frame, x);
    return line < 0 || column < 0 ? -1 : (int64_t)line * width + column;
}

#ifndef __CUDACC__

#include "kernels/transform/transform.h"

/* How masks are made for one framing. */
struct stk_mask_plan {
    struct stk_framing framing; /* that of the images; its seed makes both the same */
    uint32_t pixel_bytes;       /* channels x bytes of an element */
    uint8_t fill[STK_MASK_PIXEL_BYTES_MAX];
};

/* fill: a pixel of padding, cutout and what a rotation leaves empty. Returns STOKER_ELIMIT if a
 * pixel has no bytes or more than STK_MASK_PIXEL_BYTES_MAX. */
int stk_mask_plan_init(struct stk_mask_plan *plan, const struct stk_framing *framing,
                       uint32_t pixel_bytes, const void *fill);

/* Bytes of one output: out_height x out_width pixels, and of the scratch of one thread, aligned to
 * 4 bytes. */
size_t stk_mask_bytes(const struct stk_mask_plan *plan);
size_t stk_mask_scratch_bytes(const struct stk_mask_plan *plan);

/* Writes the mask of a sample in an epoch. mask: its pixels in lines, with the height and width of
 * the sample's image. */
void stk_mask_row(const struct stk_mask_plan *plan, void *scratch, const struct stk_image *mask,
                  uint64_t epoch, uint64_t sample, void *out);

/* The same by its definition, one pixel at a time: the tests' reference. */
void stk_mask_row_reference(const struct stk_mask_plan *plan, const struct stk_image *mask,
                            uint64_t epoch, uint64_t sample, void *out);

#endif
#endif
