/* color_body.h - color steps on blocks of pixels, a float array per channel: written once, compiled
 * by each variant.
 *
 * The loops over a block have no branches, so the compiler makes vectors of them. The including
 * file defines COLOR_NAME(name).
 */
#ifndef STK_KERNELS_TRANSFORM_COLOR_BODY_H
#define STK_KERNELS_TRANSFORM_COLOR_BODY_H

#include "kernels/transform/variants.h"

enum { BLOCK_PIXELS = 64 };

struct block {
    float red[BLOCK_PIXELS], green[BLOCK_PIXELS], blue[BLOCK_PIXELS];
};

static inline void split_pixels(const uint8_t *pixels, size_t count, const uint32_t channels,
                                struct block *block)
{
    for (size_t i = 0; i < count; i++) {
        block->red[i] = pixels[i * channels];
        block->green[i] = pixels[i * channels + (channels >= 3 ? 1 : 0)];
        block->blue[i] = pixels[i * channels + (channels >= 3 ? 2 : 0)];
    }
}

static inline void join_pixels(const struct block *block, size_t count, const uint32_t channels,
                               uint8_t *pixels)
{
    for (size_t i = 0; i < count; i++) {
        pixels[i * channels] = (uint8_t)(int32_t)block->red[i];
        if (channels >= 3) {
            pixels[i * channels + 1] = (uint8_t)(int32_t)block->green[i];
            pixels[i * channels + 2] = (uint8_t)(int32_t)block->blue[i];
        }
    }
}

static inline void split_block(const uint8_t *pixels, size_t count, uint32_t channels,
                               struct block *block)
{
    if (channels == 3 && count == BLOCK_PIXELS)
        split_pixels(pixels, BLOCK_PIXELS, 3, block);
    else
        split_pixels(pixels, count, channels, block);
}

static inline void join_block(const struct block *block, size_t count, uint32_t channels,
                              uint8_t *pixels)
{
    if (channels == 3 && count == BLOCK_PIXELS)
        join_pixels(block, BLOCK_PIXELS, 3, pixels);
    else
        join_pixels(block, count, channels, pixels);
}

static inline void apply_to_block(struct block *block, const uint32_t step, float amount,
                                  float mean, const int gray)
{
    for (int i = 0; i < BLOCK_PIXELS; i++)
        stk_color_apply(step, amount, mean, gray, &block->red[i], &block->green[i],
                        &block->blue[i]);
}

/* Constant arguments choose the loop. */
static void apply_step(struct block *block, uint32_t step, const struct stk_colors *colors,
                       bool gray)
{
    const float amount = colors->amount[step];
    if (step == STK_COLOR_BRIGHTNESS)
        apply_to_block(block, STK_COLOR_BRIGHTNESS, amount, 0.0F, 0);
    else if (step == STK_COLOR_CONTRAST)
        apply_to_block(block, STK_COLOR_CONTRAST, amount, colors->mean, 0);
    else if (step == STK_COLOR_SATURATION && !gray)
        apply_to_block(block, STK_COLOR_SATURATION, amount, 0.0F, 0);
    else if (step == STK_COLOR_HUE && !gray)
        apply_to_block(block, STK_COLOR_HUE, amount, 0.0F, 0);
}

static size_t block_count(size_t left)
{
    return left < BLOCK_PIXELS ? left : BLOCK_PIXELS;
}

void COLOR_NAME(stk_color)(const struct stk_colors *colors, uint8_t *pixels, size_t count,
                           uint32_t channels)
{
    struct block block = { .red = {
                               0 } }; /* a last block that is not full has old values behind it */
    for (size_t at = 0; at < count; at += BLOCK_PIXELS) {
        const size_t in_block = block_count(count - at);
        split_block(pixels + at * channels, in_block, channels, &block);
        for (uint32_t i = 0; i < colors->count; i++)
            apply_step(&block, colors->steps[i], colors, channels < 3);
        join_block(&block, in_block, channels, pixels + at * channels);
    }
}

uint64_t COLOR_NAME(stk_gray)(const struct stk_colors *colors, const uint8_t *pixels, size_t count,
                              uint32_t channels)
{
    struct block block = { .red = { 0 } };
    uint64_t sum = 0;
    for (size_t at = 0; at < count; at += BLOCK_PIXELS) {
        const size_t in_block = block_count(count - at);
        int32_t gray[BLOCK_PIXELS];
        split_block(pixels + at * channels, in_block, channels, &block);
        for (uint32_t i = 0; i < colors->count; i++)
            apply_step(&block, colors->steps[i], colors, channels < 3);
        for (int i = 0; i < BLOCK_PIXELS; i++)
            gray[i] = (int32_t)(channels < 3
                                    ? block.red[i]
                                    : stk_color_gray(block.red[i], block.green[i], block.blue[i]));
        for (size_t i = 0; i < in_block; i++)
            sum += (uint32_t)gray[i];
    }
    return sum;
}

#endif
