/* resize.h - resamples a part of a grid, two lines at a time, through a small ring of lines.
 *
 *   source lines ──two at a time──▶ resampled along the line ──▶ ring ──▶ one output line
 *                                                                ^ as many lines as one has taps
 */
#ifndef STK_KERNELS_TRANSFORM_RESIZE_H
#define STK_KERNELS_TRANSFORM_RESIZE_H

#include "kernels/transform/transform.h"

enum { STK_TAPS_PER_GROUP = 4 };

/* Working memory of one thread, laid out in the scratch on first use. */
struct stk_resizer {
    struct stk_axis x, y;
    uint8_t *ring;
    size_t ring_stride_bytes;
    uint32_t ring_lines;
    const uint8_t **lines; /* the input lines of one output line's taps */
    uint8_t *copies[2];    /* copies of lines too close to the image's end, with slack */
};

/* The wanted part of a grid. */
struct stk_window {
    uint32_t top, left, height, width; /* in the grid */
};

/* The visible part of a frame's grid; its size may be 0. */
static inline struct stk_window stk_window_of(const struct stk_framing *framing,
                                              const struct stk_frame *frame)
{
    const int32_t end_y = frame->y + (int32_t)framing->out_height;
    const int32_t end_x = frame->x + (int32_t)framing->out_width;
    const int32_t grid_height = (int32_t)frame->grid_height;
    const int32_t grid_width = (int32_t)frame->grid_width;
    const int32_t top = frame->y > 0 ? frame->y : 0, left = frame->x > 0 ? frame->x : 0;
    const int32_t bottom = end_y < grid_height ? end_y : grid_height;
    const int32_t right = end_x < grid_width ? end_x : grid_width;
    return (struct stk_window){ .top = (uint32_t)top,
                                .left = (uint32_t)left,
                                .height = bottom > top ? (uint32_t)(bottom - top) : 0,
                                .width = right > left ? (uint32_t)(right - left) : 0 };
}

/* Pixels of one axis: [from, to). */
struct stk_pixel_range {
    uint32_t from, to;
};

/* The pixels of a line, in the image at eighths / 8, that `count` pixels from `from` on need, if
 * the rectangle's `size` pixels from `at` on, of the image's own size, become `out`. */
struct stk_pixel_range stk_resizer_needs(uint32_t at, uint32_t size, uint32_t eighths, uint32_t out,
                                         uint32_t from, uint32_t count);

size_t stk_resizer_bytes(const struct stk_transform_plan *plan);

/* Lays out the resizer in `memory`, which is zeroed and aligned to 64 bytes. */
void stk_resizer_init(struct stk_resizer *resizer, const struct stk_transform_plan *plan,
                      uint8_t *memory);

/* The image must hold what stk_resizer_needs. Writes the window's pixels to out, line after line,
 * and up to STK_IMAGE_SLACK_BYTES more. */
void stk_resizer_run(struct stk_resizer *resizer, const struct stk_transform_plan *plan,
                     const struct stk_image *image, const struct stk_frame *frame,
                     const struct stk_window *window, uint8_t *out);

#endif
