/* picks.h - which bytes of a block of eight pixels become a vector of eight elements; and of sixteen, sixteen.
 *
 *   overhang 3, on the picture's left side        straight          turned round
 *   block       │. . . 0 1 2 3 4│ 5 6 7 8 ...     . . . 0 1 2 3 4   4 3 2 1 0 . . .
 *                      └── read from here: eight pixels that the picture has
 *
 * A vector takes its elements from two windows of 16 bytes, one for the first four and one for the last; both lie in
 * the eight pixels that are read. An element beside the picture is a 0 whose bias is what fill becomes: 0 times
 * a factor adds nothing, and no bias is -0.
 *
 * All there is for a number of channels and a layout is worked out with the plan: what differs from one picture to
 * the next is which of these is used.
 */
#ifndef STK_KERNELS_TRANSFORM_PICKS_H
#define STK_KERNELS_TRANSFORM_PICKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/transform.h>

enum {
    STK_BLOCK_PIXELS = 8,
    STK_WINDOW_BYTES = 16 /* that a shuffle takes from: eight where a block has no more */
};

enum stk_side { STK_SIDE_LOW, STK_SIDE_HIGH }; /* of the picture: its left, its right */

/* One vector: n of them make a block of n channels. */
struct stk_pick {
    int32_t order
        [STK_BLOCK_PIXELS]; /* for vpshufb: a byte of the window, zeros above it; -1 = beside the picture */
    float bias[STK_BLOCK_PIXELS];
    int32_t low,
        high; /* the windows' first bytes, from the first that is read; channels last: the same */
};

/* [turned round][enum stk_side][pixels beside the picture, 8 = the block is fill][number of the vector] */
typedef struct stk_pick stk_picks[2][2][STK_BLOCK_PIXELS + 1][STOKER_TRANSFORM_CHANNELS_MAX];

/* A vector of sixteen elements out of sixteen pixels that all are the picture's: each four elements from a window of
 * their own, which begins with any group of four bytes. */
enum { STK_WIDE_PIXELS = 16 };
struct stk_wide_pick {
    int32_t groups[STK_WIDE_PIXELS]; /* for vpermd: which four bytes of the pixels */
    int32_t order[STK_WIDE_PIXELS];  /* for vpshufb: which byte of the window, zeros above it */
};

/* [turned round][number of the vector] */
typedef struct stk_wide_pick stk_wide_picks[2][STOKER_TRANSFORM_CHANNELS_MAX];

void stk_wide_picks_init(stk_wide_picks picks, uint32_t channels, bool planes);

/* factor, bias and fill: one for each channel, 1..STOKER_TRANSFORM_CHANNELS_MAX. planes: NCHW. */
void stk_picks_init(stk_picks picks, uint32_t channels, bool planes, const float *factor,
                    const float *bias, const uint8_t *fill);

#endif
