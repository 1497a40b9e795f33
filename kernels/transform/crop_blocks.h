/* crop_blocks.h - rows of floats by blocks of pixels: eight with AVX2 (wide_avx2.h), sixteen with AVX-512
 * (wide_avx512.h).
 *
 *   fill │ block │ block │ ... │ block, overlapping the one before │ fill
 *
 * Blocks begin where the image does; fill is copied as the plan has it. The lines of a small image have few
 * blocks and many mispredicted branches, so it goes through a tile instead (crop_body.h).
 *
 * A store's address is always in a register: if it had to be loaded, later loads would wait for it.
 */
#ifndef STK_KERNELS_TRANSFORM_CROP_BLOCKS_H
#define STK_KERNELS_TRANSFORM_CROP_BLOCKS_H

#include "kernels/transform/block_avx2.h"
#include "kernels/transform/crop_view.h"

enum { BLOCK_LINE_PIXELS = 65 }; /* tiles are faster for narrower rows */

static ALWAYS_INLINE bool has_blocks(const struct target *target, const struct seen *seen)
{
    return target->width >= BLOCK_LINE_PIXELS && seen->y0 < seen->y1 &&
           seen->x0 + WIDE_PIXELS <= seen->x1;
}

/* Bytes between two pixels of a channel in the output. */
static ALWAYS_INLINE size_t pixel_bytes_of(const struct target *target)
{
    return target->pair.to_bytes * (target->planes ? 1 : target->channels);
}

static ALWAYS_INLINE void put_seen(const struct stk_transform_plan *plan,
                                   const struct stk_crop *crop, const struct target *target,
                                   const struct seen *seen)
{
    const size_t bytes = target->pair.to_bytes;
    struct wide block;
    wide_init(&block, plan, crop->flip, target->channels, target->planes, bytes,
              target->height * target->width * bytes);
    const size_t pixel_bytes = pixel_bytes_of(target), line_bytes = target->width * pixel_bytes;
    const size_t stride = crop->stride_bytes, lines = seen->y1 - seen->y0;
    const size_t pixels = seen->x1 - seen->x0, blocks = pixels / WIDE_PIXELS;
    const size_t low = seen->x0 * pixel_bytes, high = (seen->x1 - WIDE_PIXELS) * pixel_bytes;
    const size_t first = crop->flip ? high : low, last = crop->flip ? low : high;
    const ptrdiff_t block_bytes = (ptrdiff_t)(WIDE_PIXELS * pixel_bytes);
    const ptrdiff_t step = crop->flip ? -block_bytes : block_bytes;
    struct fetching fetching = fetching_of(crop);
    const size_t fetches = (fetching.left / LINE_BYTES + lines) / lines;
    const unsigned char *line = seen->first;
    unsigned char *row = target->out + seen->y0 * line_bytes;
    /* Reads forwards even if the image is flipped, as the hardware prefetcher expects. */
    for (size_t y = 0; y < lines; y++, line += stride, row += line_bytes) {
        for (size_t i = 0; i < fetches; i++)
            fetch(&fetching);
        wide_put_line(&block, line, blocks, row + first, step, target->store, target->pair);
        if (pixels % WIDE_PIXELS != 0)
            wide_put(&block, line + (pixels - WIDE_PIXELS) * target->channels, row + last,
                     target->store, target->pair);
    }
}

/* Fills all pixels outside the image. */
static ALWAYS_INLINE void fill_beside(const struct stk_transform_plan *plan,
                                      const struct target *target, const struct seen *seen)
{
    const size_t width = target->width, whole = target->height * width;
    fill_pixels(plan, target->out, whole, 0, seen->y0 * width);
    fill_pixels(plan, target->out, whole, seen->y1 * width, (target->height - seen->y1) * width);
    if (seen->x1 - seen->x0 == width)
        return;
    for (size_t y = seen->y0; y < seen->y1; y++) {
        fill_pixels(plan, target->out, whole, y * width, seen->x0);
        fill_pixels(plan, target->out, whole, y * width + seen->x1, width - seen->x1);
    }
}

static ALWAYS_INLINE void put_wide(const struct stk_transform_plan *plan,
                                   const struct stk_crop *crop, const struct target *target,
                                   const struct seen *seen)
{
    fill_beside(plan, target, seen);
    put_seen(plan, crop, target, seen);
    cut_pixels(plan, crop, target);
}

#endif
