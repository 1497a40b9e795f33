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

size_t stk_resizer_bytes(const struct stk_transform_plan *plan);

/* Lays out the resizer in `memory`, which is zeroed and aligned to 64 bytes. */
void stk_resizer_init(struct stk_resizer *resizer, const struct stk_transform_plan *plan,
                      uint8_t *memory);

/* Writes the window's pixels to out, line after line, and up to STK_IMAGE_SLACK_BYTES more. */
void stk_resizer_run(struct stk_resizer *resizer, const struct stk_transform_plan *plan,
                     const struct stk_image *image, const struct stk_frame *frame,
                     const struct stk_window *window, uint8_t *out);

#endif
