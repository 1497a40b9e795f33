/* frame.h - chooses the pixels of an image that become the output's, by integer arithmetic.
 *
 *   source image                    grid: the rectangle, resampled          output
 *   ┌──────────────────────┐        ┌──────────────────────┐
 *   │   top,left           │        │            y,x       │               ┌────────┐ flipped,
 *   │   ┌────────────┐     │   ─▶   │             ┌────────┼───┐    ─▶     │  ┌─┐   │ then a
 *   │   │height,width│     │        │ grid_height │        │pad│           │  └─┘   │ square
 *   │   └────────────┘     │        │ grid_width  └────────┼───┘           └────────┘ painted over
 *   └──────────────────────┘        └──────────────────────┘               out_height x out_width
 *
 * Compiled as C and by nvcc. Doubles are only added, multiplied, divided and square-rooted, which
 * IEEE 754 defines to the bit; contraction is off in both.
 *
 * Draws are Philox of (seed, epoch, sample): block 0 holds the position of a crop (words 0, 1), the
 * flip (top bit of word 2), and the square's center (word 3, and word 2 without that bit). Blocks 1
 * to 10 are the attempts at a random rectangle: its area, aspect, top and left.
 */
#ifndef STK_KERNELS_TRANSFORM_FRAME_H
#define STK_KERNELS_TRANSFORM_FRAME_H

#include <math.h>
#include <stdint.h>

#include "kernels/transform/color/retouch.h"
#include "loader/base/rng.h"

enum stk_resizing { STK_RESIZE_NONE, STK_RESIZE_EXACT, STK_RESIZE_SHORTER, STK_RESIZE_RANDOM };
enum stk_cropping { STK_CROP_NONE, STK_CROP_CENTER, STK_CROP_RANDOM };
enum { STK_FRAME_TRIES = 10 };

#define STK_FRAME_STREAM UINT64_C(0x6672616D65) /* "frame": separates these draws from others */

/* The checked options. Plain data: copied to a GPU unchanged. */
struct stk_framing {
    uint64_t key;                         /* stk_frame_key() of the seed */
    double area_min, area_max;            /* share of the image */
    double ratio_log_min, ratio_log_max;  /* logarithm of width / height */
    double ratio_least, ratio_most;       /* stk_frame_exp() of these two */
    uint32_t resizing;                    /* enum stk_resizing */
    uint32_t resize_height, resize_width; /* SHORTER: the height is the shorter side */
    uint32_t cropping;                    /* enum stk_cropping */
    uint32_t pad;                         /* around the grid, before a random crop */
    uint32_t out_height, out_width;
    uint32_t flip;   /* 0 = never, 1 = every other image */
    uint32_t cutout; /* side of the square, 0 = none */
    uint32_t scales; /* 1 = images that shrink may be decoded smaller */
    struct stk_retouching retouch;
};

/* What is drawn for one image: crop, flip, the box to paint over. */
struct stk_frame {
    uint32_t top, left, height, width; /* the rectangle of the source */
    uint32_t grid_height, grid_width;  /* its size after resampling; equal = not resampled */
    int32_t y, x;                      /* the output's origin in the grid; may lie partly outside */
    uint32_t flip;
    /* The cutout in the output; bottom and right excluded. */
    uint32_t cut_top, cut_left, cut_bottom, cut_right;
};

STK_RNG uint64_t stk_frame_key(uint64_t seed)
{
    return stk_mix64(seed ^ STK_FRAME_STREAM);
}

/* Returns a number in 0..count-1 from a word: uniform for powers of two, else within count /
 * 2^32. */
STK_RNG uint32_t stk_frame_pick(uint32_t word, uint32_t count)
{
    return (uint32_t)(((uint64_t)word * count) >> 32);
}

/* Returns a number in [low, high) from a word. */
STK_RNG double stk_frame_between(uint32_t word, double low, double high)
{
    return low + (high - low) * ((double)word / 4294967296.0);
}

/* Returns e to the x, |x| < 5: Taylor series of x / 32, squared five times. Relative error below
 * 1e-14. Not exp(): libraries differ in its last bit. */
STK_RNG double stk_frame_exp(double x)
{
    const double small = x / 32.0;
    double sum = 1.0;
    for (int n = 10; n >= 1; n--)
        sum = 1.0 + small / (double)n * sum;
    for (int i = 0; i < 5; i++)
        sum = sum * sum;
    return sum;
}

STK_RNG uint32_t stk_frame_round(double x)
{
    return (uint32_t)(x + 0.5);
}

/* The rectangle if no attempt fitted: the largest of an allowed aspect, centerd. */
STK_RNG void stk_frame_middle(const struct stk_framing *framing, uint32_t height, uint32_t width,
                              struct stk_frame *frame)
{
    const double ratio = (double)width / (double)height;
    const double least = framing->ratio_least, most = framing->ratio_most;
    frame->height = height;
    frame->width = width;
    if (ratio < least)
        frame->height = stk_frame_round((double)width / least);
    else if (ratio > most)
        frame->width = stk_frame_round((double)height * most);
    frame->height = frame->height < 1 ? 1 : frame->height > height ? height : frame->height;
    frame->width = frame->width < 1 ? 1 : frame->width > width ? width : frame->width;
    frame->top = (height - frame->height) / 2;
    frame->left = (width - frame->width) / 2;
}

STK_RNG void stk_frame_rectangle(const struct stk_framing *framing, uint32_t height, uint32_t width,
                                 uint64_t epoch, uint64_t sample, struct stk_frame *frame)
{
    const double whole = (double)height * (double)width;
    for (uint64_t i = 1; i <= STK_FRAME_TRIES; i++) {
        const struct stk_random draw = stk_philox(framing->key + i, epoch, sample);
        const double area =
            whole * stk_frame_between(draw.word[0], framing->area_min, framing->area_max);
        const double ratio = stk_frame_exp(
            stk_frame_between(draw.word[1], framing->ratio_log_min, framing->ratio_log_max));
        const uint32_t wide = stk_frame_round(sqrt(area * ratio));
        const uint32_t high = stk_frame_round(sqrt(area / ratio));
        if (wide < 1 || wide > width || high < 1 || high > height)
            continue;
        frame->height = high;
        frame->width = wide;
        frame->top = stk_frame_pick(draw.word[2], height - high + 1);
        frame->left = stk_frame_pick(draw.word[3], width - wide + 1);
        return;
    }
    stk_frame_middle(framing, height, width, frame);
}

/* Sets the size of the grid from the rectangle. The products fit in 31 bits: sides of the source
 * are below 2^16, those of the grid at most 2^14. */
STK_RNG void stk_frame_grid(const struct stk_framing *framing, struct stk_frame *frame)
{
    const uint32_t height = frame->height, width = frame->width;
    const uint32_t side = framing->resize_height;
    frame->grid_height = height;
    frame->grid_width = width;
    if (framing->resizing == STK_RESIZE_SHORTER) {
        frame->grid_height = height <= width ? side : side * height / width;
        frame->grid_width = height <= width ? side * width / height : side;
    } else if (framing->resizing != STK_RESIZE_NONE) {
        frame->grid_height = framing->resize_height;
        frame->grid_width = framing->resize_width;
    }
}

STK_RNG int32_t stk_frame_place(const struct stk_framing *framing, uint32_t word, uint32_t grid,
                                uint32_t out)
{
    const int32_t room = (int32_t)grid - (int32_t)out;
    if (framing->cropping ==
        STK_CROP_CENTER) /* room >= 0; half of it, rounded half to even as torchvision does */
        return (room + (room / 2 & 1)) / 2;
    const int32_t pad = (int32_t)framing->pad;
    return (int32_t)stk_frame_pick(word, (uint32_t)(room + 2 * pad + 1)) - pad;
}

/* Cuts from center - side / 2 on, clipped to the output. */
STK_RNG void stk_frame_cut(uint32_t center, uint32_t side, uint32_t out, uint32_t *from,
                           uint32_t *to)
{
    *from = center > side / 2 ? center - side / 2 : 0;
    *to = center - side / 2 + side < out ? center - side / 2 + side : out;
}

/* Returns true if anything is drawn from block 0. */
STK_RNG int stk_frame_is_drawn(const struct stk_framing *framing)
{
    return framing->cropping == STK_CROP_RANDOM || framing->flip != 0 || framing->cutout != 0;
}

/* Returns block 0 of a sample in an epoch; zeros if nothing is drawn from it. */
STK_RNG struct stk_random stk_frame_words(const struct stk_framing *framing, uint64_t epoch,
                                          uint64_t sample)
{
    const struct stk_random none = { { 0, 0, 0, 0 } };
    return stk_frame_is_drawn(framing) ? stk_philox(framing->key, epoch, sample) : none;
}

/* Sets the rectangle to a whole image. */
STK_RNG void stk_frame_whole(uint32_t height, uint32_t width, struct stk_frame *frame)
{
    frame->top = frame->left = 0;
    frame->height = height;
    frame->width = width;
}

/* Sets the crop, the flip and the cutout; the grid is set. Integers only: every GPU kernel does it.
 * draw: the sample's block 0. */
STK_RNG void stk_frame_place_output(const struct stk_framing *framing, struct stk_random draw,
                                    struct stk_frame *frame)
{
    frame->y = frame->x = 0;
    if (framing->cropping != STK_CROP_NONE) {
        frame->y = stk_frame_place(framing, draw.word[0], frame->grid_height, framing->out_height);
        frame->x = stk_frame_place(framing, draw.word[1], frame->grid_width, framing->out_width);
    }
    frame->flip = framing->flip != 0 ? draw.word[2] >> 31 : 0;
    frame->cut_top = frame->cut_left = frame->cut_bottom = frame->cut_right = 0;
    if (framing->cutout != 0) {
        stk_frame_cut(stk_frame_pick(draw.word[3], framing->out_height), framing->cutout,
                      framing->out_height, &frame->cut_top, &frame->cut_bottom);
        stk_frame_cut(stk_frame_pick(draw.word[2] << 1, framing->out_width), framing->cutout,
                      framing->out_width, &frame->cut_left, &frame->cut_right);
    }
}

/* Computes the frame of a sample, an image of height x width, in an epoch. draw: its block 0. */
STK_RNG void stk_frame_take(const struct stk_framing *framing, uint32_t height, uint32_t width,
                            uint64_t epoch, uint64_t sample, struct stk_random draw,
                            struct stk_frame *frame)
{
    stk_frame_whole(height, width, frame);
    if (framing->resizing == STK_RESIZE_RANDOM)
        stk_frame_rectangle(framing, height, width, epoch, sample, frame);
    stk_frame_grid(framing, frame);
    stk_frame_place_output(framing, draw, frame);
}

/* Draw the frame of an image, block 0 of the random words included. */
STK_RNG void stk_frame_draw(const struct stk_framing *framing, uint32_t height, uint32_t width,
                            uint64_t epoch, uint64_t sample, struct stk_frame *frame)
{
    const struct stk_random draw = stk_frame_words(framing, epoch, sample);
    stk_frame_take(framing, height, width, epoch, sample, draw, frame);
}

#endif
