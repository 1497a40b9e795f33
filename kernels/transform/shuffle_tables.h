/* shuffle_tables.h - byte shuffles that make vectors of elements from a block of eight or sixteen pixels.
 *
 *   block of 8, channels last   r g b r g b r g b r g b r g b ...
 *                               └── window of 16 bytes ──┘
 *   vector 0                    r g b r g b r g         flipped: the last pixel first
 *
 * They depend on the number of channels, the layout and the flip alone, so the plan holds them.
 */
#ifndef STK_KERNELS_TRANSFORM_SHUFFLE_TABLES_H
#define STK_KERNELS_TRANSFORM_SHUFFLE_TABLES_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/transform.h>

enum {
    STK_BLOCK_PIXELS = 8,
    STK_WIDE_PIXELS = 16, /* pixels of an AVX-512 block */
    STK_WINDOW_BYTES = 16 /* that a shuffle reads from; a block of one channel has only eight */
};

/* One vector of a block of eight pixels; n channels take n vectors. */
struct stk_shuffle {
    int32_t order[STK_BLOCK_PIXELS]; /* for vpshufb: a byte of the window, zeros above it */
    /* First bytes of the windows of elements 0..3 and 4..7; channels last: equal. */
    int32_t low, high;
};

/* [flipped][number of the vector] */
typedef struct stk_shuffle stk_shuffles[2][STOKER_TRANSFORM_CHANNELS_MAX];

/* One vector of a block of sixteen pixels: each four elements have their own window, which begins at any group
 * of four bytes. */
struct stk_wide_shuffle {
    int32_t groups[STK_WIDE_PIXELS]; /* for vpermd: which four bytes of the pixels */
    int32_t order[STK_WIDE_PIXELS];  /* for vpshufb: which byte of the window, zeros above it */
};

/* [flipped][number of the vector] */
typedef struct stk_wide_shuffle stk_wide_shuffles[2][STOKER_TRANSFORM_CHANNELS_MAX];

/* channels: 1..STOKER_TRANSFORM_CHANNELS_MAX. planes: NCHW. */
void stk_shuffles_init(stk_shuffles shuffles, uint32_t channels, bool planes);
void stk_wide_shuffles_init(stk_wide_shuffles shuffles, uint32_t channels, bool planes);

#endif
