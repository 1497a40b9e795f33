/* shuffle_tables.h - byte shuffles that make vectors of elements from a block of eight pixels.
 *
 *   block of 8, channels last   r g b r g b r g b r g b r g b ...
 *                               └── window of 16 bytes ──┘
 *   vector 0                    r g b r g b r g         flipped: the last pixel first
 *
 *   overhang 3, low side        . . . 0 1 2 3 4│5 6 7 8 ...     flipped: 4 3 2 1 0 . . .
 *                                     └── read from here on: eight pixels that the image has
 *
 * The block at a line's start or end may overhang the image. A vector reads two windows, one for
 * its first and one for its last four elements, both in the eight pixels that are read. An element
 * outside the image is 0 and its bias is what fill becomes: 0 times a factor adds nothing, and no
 * bias is -0.
 *
 * The plan holds them for each overhang; which of them is used differs from row to row.
 */
#ifndef STK_KERNELS_TRANSFORM_SHUFFLE_TABLES_H
#define STK_KERNELS_TRANSFORM_SHUFFLE_TABLES_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/transform.h>

enum {
    STK_BLOCK_PIXELS = 8,
    STK_WINDOW_BYTES = 16 /* that a shuffle reads from; a block of one channel has only eight */
};

enum stk_side { STK_SIDE_LOW, STK_SIDE_HIGH }; /* the image's left, its right */

/* One vector of a block of eight pixels; n channels take n vectors. */
struct stk_shuffle {
    /* For vpshufb: a byte of the window, zeros above it; -1: outside the image. */
    int32_t order[STK_BLOCK_PIXELS];
    float bias[STK_BLOCK_PIXELS];
    /* First bytes of the windows of elements 0..3 and 4..7; channels last: equal. */
    int32_t low, high;
};

/* [flipped][enum stk_side][overhang in pixels; 8: all fill][number of the vector] */
typedef struct stk_shuffle stk_shuffles[2][2][STK_BLOCK_PIXELS + 1][STOKER_TRANSFORM_CHANNELS_MAX];

/* channels: 1..STOKER_TRANSFORM_CHANNELS_MAX. planes: NCHW. factor, bias and fill: one per
 * channel. */
void stk_shuffles_init(stk_shuffles shuffles, uint32_t channels, bool planes, const float *factor,
                       const float *bias, const uint8_t *fill);

#endif
