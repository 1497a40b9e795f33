/* crop_blocks.h - rows of floats by blocks of eight pixels (block_avx2.h).
 *
 *   wide     fill │ block │ block │ ... │ block, overlapping the one before │ fill
 *   narrow   the same blocks for each line and each picture, with fill mixed in
 *
 * The blocks of a wide line begin where the picture does, and fill is written first, as wide as a block.
 * For a small picture the branches of that are too dear: they differ from picture to picture, and the processor
 * guesses them wrong. So with few blocks a line it is worked out for each which bytes it takes, and
 * where it takes fill; lines beside the picture are read from a line of fill.
 *
 * The picture is read forwards even where it is turned round, as the hardware expects. Where a store goes
 * is always in a register: if it were still to be loaded, the loads behind the store would wait.
 */
#ifndef STK_KERNELS_CROP_BLOCKS_H
#define STK_KERNELS_CROP_BLOCKS_H

#include "kernels/block_avx2.h"
#include "kernels/crop_view.h"

enum { NARROW_BLOCKS = STK_FILL_BYTES / STOKER_TRANSFORM_CHANNELS_MAX / BLOCK_PIXELS };

static ALWAYS_INLINE bool is_cut(const struct stk_crop *crop)
{
    return crop->cut_bottom > crop->cut_top && crop->cut_right > crop->cut_left;
}

/* A cut that is narrower than a block is left to tiles. */
static ALWAYS_INLINE bool cut_has_blocks(const struct stk_crop *crop)
{
    return !is_cut(crop) || crop->cut_right - crop->cut_left >= BLOCK_PIXELS;
}

static ALWAYS_INLINE bool is_narrow(const struct stk_crop *crop, const struct target *target)
{
    return target->width >= BLOCK_PIXELS && target->width <= NARROW_BLOCKS * BLOCK_PIXELS &&
           crop->width >= BLOCK_PIXELS && cut_has_blocks(crop);
}

static ALWAYS_INLINE bool has_blocks(const struct stk_crop *crop, const struct seen *seen)
{
    return seen->y0 < seen->y1 && seen->x0 + BLOCK_PIXELS <= seen->x1 && cut_has_blocks(crop);
}

/* Bytes from one pixel of the output to the next, of the same channel. */
static ALWAYS_INLINE size_t pixel_bytes_of(const struct target *target)
{
    return target->pair.to_bytes * (target->planes ? 1 : target->channels);
}

static ALWAYS_INLINE struct block block_for(const struct stk_transform_plan *plan,
                                            const struct stk_crop *crop,
                                            const struct target *target)
{
    const size_t bytes = target->pair.to_bytes;
    struct block block;
    block_init(&block, plan, target->channels, target->planes, crop->flip, bytes,
               target->height * target->width * bytes);
    return block;
}

/* ---- fill ------------------------------------------------------------------------- */

/* `pixels` pixels of fill, at least a block of them: the last block overlaps. */
static ALWAYS_INLINE void fill_blocks(const struct block *block, const struct target *target,
                                      unsigned char *out, size_t pixels)
{
    const size_t pixel_bytes = pixel_bytes_of(target);
    for (size_t at = 0; at + BLOCK_PIXELS < pixels; at += BLOCK_PIXELS)
        block_fill(block, out + at * pixel_bytes, target->store);
    block_fill(block, out + (pixels - BLOCK_PIXELS) * pixel_bytes, target->store);
}

/* Paint the cut over. */
static ALWAYS_INLINE void cut_blocks(const struct block *block, const struct stk_crop *crop,
                                     const struct target *target)
{
    const size_t pixel_bytes = pixel_bytes_of(target);
    if (!is_cut(crop))
        return;
    for (size_t y = (size_t)crop->cut_top; y < (size_t)crop->cut_bottom; y++)
        fill_blocks(block, target,
                    target->out + (y * target->width + (size_t)crop->cut_left) * pixel_bytes,
                    (size_t)(crop->cut_right - crop->cut_left));
}

/* ---- wide lines ------------------------------------------------------------------- */

/* Fill on both sides, as wide as blocks: what is seen comes later. */
static ALWAYS_INLINE void fill_sides(const struct block *block, const struct target *target,
                                     const struct seen *seen, unsigned char *row)
{
    const size_t pixel_bytes = pixel_bytes_of(target), right = target->width - seen->x1;
    for (size_t x = 0; x < seen->x0; x += BLOCK_PIXELS)
        block_fill(block, row + x * pixel_bytes, target->store);
    for (size_t x = 0; x < right; x += BLOCK_PIXELS)
        block_fill(block, row + (target->width - BLOCK_PIXELS - x) * pixel_bytes, target->store);
}

static ALWAYS_INLINE void put_seen(const struct block *block, const struct stk_crop *crop,
                                   const struct target *target, const struct seen *seen)
{
    const size_t pixel_bytes = pixel_bytes_of(target), line_bytes = target->width * pixel_bytes;
    const size_t stride = crop->stride_bytes, lines = seen->y1 - seen->y0;
    const size_t pixels = seen->x1 - seen->x0, blocks = pixels / BLOCK_PIXELS;
    const size_t low = seen->x0 * pixel_bytes, high = (seen->x1 - BLOCK_PIXELS) * pixel_bytes;
    const size_t first = crop->flip ? high : low, last = crop->flip ? low : high;
    const size_t step = BLOCK_PIXELS * pixel_bytes, in_step = BLOCK_PIXELS * target->channels;
    struct fetching fetching = fetching_of(crop);
    const size_t fetches = (fetching.left / LINE_BYTES + lines) / lines;
    const unsigned char *line = seen->first;
    unsigned char *row = target->out + seen->y0 * line_bytes;
    for (size_t y = 0; y < lines; y++, line += stride, row += line_bytes) {
        for (size_t i = 0; i < fetches; i++)
            fetch(&fetching);
        fill_sides(block, target, seen, row);
        unsigned char *out = row + first;
        for (size_t i = 0; i < blocks; i++, out = crop->flip ? out - step : out + step)
            block_put(block, line + i * in_step, out, target->store);
        if (pixels % BLOCK_PIXELS != 0)
            block_put(block, line + (pixels - BLOCK_PIXELS) * target->channels, row + last,
                      target->store);
    }
}

static ALWAYS_INLINE void put_wide(const struct stk_transform_plan *plan,
                                   const struct stk_crop *crop, const struct target *target,
                                   const struct seen *seen)
{
    const size_t line_bytes = target->width * pixel_bytes_of(target);
    const struct block block = block_for(plan, crop, target);
    if (seen->y0 > 0)
        fill_blocks(&block, target, target->out, seen->y0 * target->width);
    put_seen(&block, crop, target, seen);
    if (seen->y1 < target->height)
        fill_blocks(&block, target, target->out + seen->y1 * line_bytes,
                    (target->height - seen->y1) * target->width);
    cut_blocks(&block, crop, target);
}

/* ---- narrow lines ------------------------------------------------------------------ */

/* The vectors of a line, block by block. Their windows begin at pixel `lowest` of the picture's line. */
struct narrow {
    int32_t lowest;
    struct placed *last; /* the last block's */
    struct placed vectors[NARROW_BLOCKS * VECTORS_MAX];
};

static ALWAYS_INLINE void narrow_init(struct narrow *narrow, const struct stk_transform_plan *plan,
                                      const struct block *block, const struct stk_crop *crop,
                                      const struct target *target)
{
    const int32_t last = (int32_t)target->width - BLOCK_PIXELS, room = crop->width - BLOCK_PIXELS;
    const int32_t channels = (int32_t)target->channels, flip = crop->flip;
    struct placed *next = narrow->vectors;
    narrow->lowest = within(crop->x, room);
    for (int32_t x = 0; x < last + BLOCK_PIXELS; x += BLOCK_PIXELS, next += channels) {
        const int32_t at = x < last ? x : last;
        const int32_t from = crop->x + at + flip * (last - 2 * at); /* turned: last - at */
        const int32_t begin = within(from, room);
#pragma GCC unroll 4
        for (int32_t number = 0; number < channels; number++)
            place_vector(&next[number], block, (uint32_t)number, plan->fill,
                         (begin - narrow->lowest) * channels, (from - begin) * channels);
    }
    narrow->last = next - channels;
}

/* As many bytes of a later picture's as are fetched with each line, past its end the last one again: no
 * branch. */
static ALWAYS_INLINE void fetch_share(const struct stk_crop *crop, size_t from, size_t lines)
{
    for (size_t i = 0; i < lines; i++, from += LINE_BYTES)
        __builtin_prefetch(crop->later + (from < crop->later_bytes ? from : crop->later_bytes - 1),
                           0, 3);
}

static ALWAYS_INLINE void put_narrow(const struct stk_transform_plan *plan,
                                     const struct stk_crop *crop, const struct target *target)
{
    const size_t pixel_bytes = pixel_bytes_of(target), line_bytes = target->width * pixel_bytes;
    const size_t step = BLOCK_PIXELS * pixel_bytes, last = line_bytes - step;
    const struct block block = block_for(plan, crop, target);
    const size_t fetched = fetching_of(crop).left;
    const size_t share = fetched == 0 ? 0 : fetched / LINE_BYTES / target->height + 1;
    const size_t height = (size_t)crop->height, stride = crop->stride_bytes;
    struct narrow narrow;
    narrow_init(&narrow, plan, &block, crop, target);
    const unsigned char *const picture = crop->pixels + (size_t)narrow.lowest * target->channels;
    unsigned char *row = target->out;
    for (size_t y = 0; y < target->height; y++, row += line_bytes) {
        const size_t source = (size_t)(crop->y + (ptrdiff_t)y); /* huge where it is negative */
        const unsigned char *const line = source < height ? picture + source * stride : plan->fill;
        unsigned char *out = row;
        fetch_share(crop, y * share * LINE_BYTES, share);
        for (const struct placed *one = narrow.vectors; one < narrow.last; out += step) {
            placed_put(one, &block, line, out, target->store);
            one += target->channels;
        }
        placed_put(narrow.last, &block, line, row + last, target->store);
    }
    cut_blocks(&block, crop, target);
}

#endif
