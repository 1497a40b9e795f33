/* crop_blocks.h - rows of floats by blocks of pixels: eight in narrow lines (block_avx2.h, block_neon.h), eight or sixteen in
 * wide ones (wide_eight.h, wide_avx512.h).
 *
 *   wide     fill │ block │ block │ ... │ block, overlapping the one before │ fill
 *   narrow   block, partly fill │ block │ ... │ block │ block, partly fill
 *
 * The blocks of a wide line begin where the image does; fill is copied as the plan has it. For a small image that
 * costs too many mispredicted branches, as its place differs from row to row. So a narrow line, of 16 to 64 pixels,
 * has the same blocks for every image. Its first and last one may overhang the image by up to eight pixels: the
 * plan has shuffles for each overhang (shuffle_tables.h). Lines outside the image are read from a line of fill.
 *
 * The including file has included its block_*.h and wide_*.h.
 *
 * A store's address is always in a register: if it had to be loaded, later loads would wait for it.
 */
#ifndef STK_KERNELS_TRANSFORM_CROP_BLOCKS_H
#define STK_KERNELS_TRANSFORM_CROP_BLOCKS_H

#include "kernels/transform/crop_view.h"

enum { NARROW_BLOCKS = STK_FILL_BYTES / STOKER_TRANSFORM_CHANNELS_MAX / BLOCK_PIXELS };

static ALWAYS_INLINE bool has_blocks(const struct seen *seen)
{
    return seen->y0 < seen->y1 && seen->x0 + WIDE_PIXELS <= seen->x1;
}

/* Bytes between two pixels of a channel in the output. */
static ALWAYS_INLINE size_t pixel_bytes_of(const struct target *target)
{
    return target->pair.to_bytes * (target->planes ? 1 : target->channels);
}

/* Makes a block that overhangs the image by `overhang` pixels on a side. */
static ALWAYS_INLINE struct block block_for(const struct stk_transform_plan *plan,
                                            const struct stk_crop *crop,
                                            const struct target *target, enum stk_side side,
                                            size_t overhang)
{
    const size_t bytes = target->pair.to_bytes;
    struct block block;
    block_init(&block, plan, plan->shuffles[crop->flip][side][overhang], target->channels,
               target->planes, bytes, target->height * target->width * bytes);
    return block;
}

/* ---- wide lines ------------------------------------------------------------------- */

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

/* ---- narrow lines ------------------------------------------------------------------ */

/* The blocks of a line: its first, its last and those between. The last of these may overlap the last. */
struct narrow {
    int32_t first_beside, last_beside; /* overhang of these two, in pixels; < 0: none */
    int32_t lowest;                    /* first column of the image that is read */
    ptrdiff_t first, between, last;    /* where they are read, in bytes from there */
    size_t count;                      /* number of those between */
};

static ALWAYS_INLINE int32_t within(int32_t at, int32_t last)
{
    return at < 0 ? 0 : at > last ? last : at;
}

static ALWAYS_INLINE struct narrow narrow_of(const struct stk_crop *crop,
                                             const struct target *target)
{
    const int32_t width = (int32_t)target->width, room = crop->width - BLOCK_PIXELS;
    const int32_t left = crop->x, right = left + width - BLOCK_PIXELS; /* the outermost blocks */
    const int32_t channels = (int32_t)target->channels, lowest = within(left, room);
    const int32_t high = (within(right, room) - lowest) * channels, flip = crop->flip;
    const int32_t next = turned(flip, left + BLOCK_PIXELS, right - BLOCK_PIXELS);
    return (struct narrow){ .first_beside = turned(flip, -left, right - room),
                            .last_beside = turned(flip, right - room, -left),
                            .lowest = lowest,
                            .first = turned(flip, 0, high),
                            .between = (within(next, room) - lowest) * channels,
                            .last = turned(flip, high, 0),
                            .count = (target->width - 1) / BLOCK_PIXELS - 1 };
}

/* Returns whether the lines are narrow and only the outermost blocks overhang the image. */
static ALWAYS_INLINE bool is_narrow(const struct stk_crop *crop, const struct target *target,
                                    const struct narrow *narrow)
{
    const int32_t behind = (int32_t)((target->width - 1) % BLOCK_PIXELS) + 1;
    return target->width >= 2 * BLOCK_PIXELS && target->width <= NARROW_BLOCKS * BLOCK_PIXELS &&
           crop->width >= BLOCK_PIXELS && narrow->first_beside <= BLOCK_PIXELS &&
           narrow->last_beside <= behind;
}

static ALWAYS_INLINE size_t overhang_of(int32_t beside)
{
    return (size_t)within(beside, BLOCK_PIXELS);
}

/* Writes all lines, with `count` blocks between first and last: a compile-time constant if that pays. */
static ALWAYS_INLINE void put_lines(const struct stk_transform_plan *plan,
                                    const struct stk_crop *crop, const struct target *target,
                                    const struct narrow *narrow, size_t count)
{
    const enum stk_side begin = (enum stk_side)crop->flip, end = (enum stk_side) !crop->flip;
    const struct block first =
        block_for(plan, crop, target, begin, overhang_of(narrow->first_beside));
    const struct block last = block_for(plan, crop, target, end, overhang_of(narrow->last_beside));
    const struct block between = block_for(plan, crop, target, STK_SIDE_LOW, 0);
    const size_t pixel_bytes = pixel_bytes_of(target), line_bytes = target->width * pixel_bytes;
    const size_t step = BLOCK_PIXELS * pixel_bytes;
    const int32_t block_bytes = BLOCK_PIXELS * (int32_t)target->channels;
    const ptrdiff_t in_step = turned(crop->flip, block_bytes, -block_bytes);
    /* Copies, because for the compiler out may alias the crop. */
    const ptrdiff_t stride = (ptrdiff_t)crop->stride_bytes;
    const uint32_t height = (uint32_t)crop->height, top = (uint32_t)crop->y;
    const uint32_t bottom = top + (uint32_t)target->height;
    const struct narrow at = *narrow;
    const unsigned char *const image = crop->pixels + (size_t)at.lowest * target->channels;
    unsigned char *row = target->out;
    const struct fetching fetching = fetching_of(crop);
    const size_t share = share_of(fetching, target->height);
    const unsigned char *later = share > 0 ? fetching.next : plan->fill; /* no NULL + 0 */
    /* Summed up: for a product the compiler would branch to skip lines of fill. */
    ptrdiff_t offset = (ptrdiff_t)crop->y * stride;
    for (uint32_t y = top; y != bottom; y++, row += line_bytes, offset += stride) {
        const unsigned char *const from = image + offset;
        const unsigned char *const line = y < height ? from : plan->fill; /* huge if negative */
        __builtin_prefetch(later, 0, 3);
        for (size_t i = LINE_BYTES; i < share; i += LINE_BYTES)
            __builtin_prefetch(later + i, 0, 3);
        later += share;
        block_put(&first, line + at.first, row, target->store);
        const unsigned char *in = line + at.between;
        unsigned char *out = row + step;
#pragma GCC unroll 2
        for (size_t i = 0; i < count; i++, in += in_step, out += step)
            block_put(&between, in, out, target->store);
        block_put(&last, line + at.last, row + line_bytes - step, target->store);
    }
}

/* Rows of 25 to 32 pixels, such as those of CIFAR, have two blocks between. */
static ALWAYS_INLINE void put_narrow(const struct stk_transform_plan *plan,
                                     const struct stk_crop *crop, const struct target *target,
                                     const struct narrow *narrow)
{
    /* Float32 of one or three channels; more code does not pay for the rest. */
    if (narrow->count == 2 && target->channels % 2 == 1 && target->pair.to_bytes == sizeof(float))
        put_lines(plan, crop, target, narrow, 2);
    else
        put_lines(plan, crop, target, narrow, narrow->count);
    cut_pixels(plan, crop, target);
}

#endif
