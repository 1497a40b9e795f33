/* crop_body.h - crop, flip, cutout and conversion in one pass: written once, compiled by each
 * variant.
 *
 *   image ──┬─ all of it, unchanged: one line ─────────────────────────────────┐
 *           ├─ floats in narrow lines, x86-64: blocks (narrow_avx2.h) ─────────┼──▶ row
 *           └─ all else: tile of bytes in L1 ──▶ converted ────────────────────┘
 *              fill │ pixels, maybe flipped │ fill
 *
 * A tile holds some lines of the output as bytes, so that even the lines of a small image are
 * converted as one long span. Runs are copied and filled by whole vectors: the last one overlaps
 * the one before it, so that no byte outside the output or the image is touched.
 */
#ifndef STK_KERNELS_TRANSFORM_CROP_BODY_H
#define STK_KERNELS_TRANSFORM_CROP_BODY_H

#include "kernels/transform/crop/crop_view.h"
#ifdef STK_NARROW_LINES
#include "kernels/transform/crop/narrow_avx2.h"
#endif

enum {
    CROP_TILE_BYTES = 8192,
    DIRECT_BYTES = 256, /* from this length lines are converted one by one */
    PLANE_PIXELS = 256  /* pixels split at a time */
};

static_assert(STK_LINE_ELEMENTS >= 16 * STOKER_TRANSFORM_CHANNELS_MAX + 16,
              "a vector from any phase");

/* ---- bytes: runs copied, filled, flipped ------------------------------------------ */

static ALWAYS_INLINE void copy_run(const unsigned char *in, unsigned char *out, size_t bytes)
{
    if (bytes < HALF_RUN_BYTES) {
        memcpy(out, in, bytes);
        return;
    }
    if (bytes < RUN_BYTES) {
        const size_t last = bytes - HALF_RUN_BYTES;
        memcpy(out, in, HALF_RUN_BYTES);
        memcpy(out + last, in + last, HALF_RUN_BYTES);
        return;
    }
    const size_t last = bytes - RUN_BYTES;
    for (size_t at = 0; at < last; at += RUN_BYTES)
        *(run_bytes *)(out + at) = *(const run_bytes *)(in + at);
    *(run_bytes *)(out + last) = *(const run_bytes *)(in + last);
}

/* Fills the start or the end of a line with a whole vector, which may reach into the line's pixels:
 * those are written later. */
static ALWAYS_INLINE void fill_edge(const struct stk_transform_plan *plan, unsigned char *line,
                                    size_t line_bytes, size_t from, size_t to, uint32_t channels)
{
    if (from == to)
        return;
    if (to - from > HALF_RUN_BYTES || line_bytes < HALF_RUN_BYTES) {
        fill_run(plan->fill, channels, line + from, to - from);
        return;
    }
    const size_t at = from == 0 ? 0 : to - HALF_RUN_BYTES;
    memcpy(line + at, plan->fill + at % channels, HALF_RUN_BYTES);
}

/* Reverses pixels: out[0] is the last of `pixels` at in. */
static ALWAYS_INLINE void turn(const unsigned char *in, unsigned char *out, size_t pixels,
                               uint32_t channels)
{
    size_t done = 0;
#ifdef STK_SPLIT_BYTES
    /* Reads forwards, as the hardware prefetcher expects; the last group overlaps. */
    if (channels != 2 && pixels >= REVERSE_PIXELS) {
        const size_t last = pixels - REVERSE_PIXELS;
        for (; done < pixels; done += REVERSE_PIXELS) {
            const size_t at = done < last ? done : last;
            const unsigned char *from = in + at * channels;
            unsigned char *to = out + (last - at) * channels;
            if (channels == 1)
                reverse_16_of_1(from, to);
            else if (channels == 3)
                reverse_16_of_3(from, to);
            else
                reverse_16_of_4(from, to);
        }
        return;
    }
#endif
    for (; done < pixels; done++)
        memcpy(out + done * channels, in + (pixels - 1 - done) * channels, channels);
}

/* ---- elements: adjacent bytes converted -------------------------------------------- */

/* Converts one vector, `at` elements from the first of a pixel. phase: at modulo 16 x channels, or
 * modulo channels. */
static ALWAYS_INLINE void span_vector(const struct stk_transform_plan *plan,
                                      const unsigned char *in, unsigned char *out, size_t at,
                                      size_t phase, struct pair pair)
{
    const lanes factor = lanes_load(plan->factor + phase), bias = lanes_load(plan->bias + phase);
    pair.store(out + at * pair.to_bytes, lanes_fma(pair.load(in + at), factor, bias), false);
}

/* Converts `count` elements, channels last; the first is a pixel's first. */
static ALWAYS_INLINE void span(const struct stk_transform_plan *plan, const unsigned char *in,
                               unsigned char *out, size_t count, uint32_t channels,
                               struct pair pair, struct fetching *fetching)
{
    const size_t period = (size_t)16 * channels;
    size_t at = 0;
    if (count < LANES) {
        convert_tail(in, out, count, lanes_load(plan->factor), lanes_load(plan->bias), pair);
        return;
    }
    for (; at + period <= count; at += period) {
        fetch(fetching);
        for (size_t phase = 0; phase < period; phase += LANES)
            span_vector(plan, in, out, at + phase, phase, pair);
    }
    for (size_t phase = 0; at + LANES <= count; at += LANES, phase += LANES)
        span_vector(plan, in, out, at, phase, pair);
    if (at < count)
        span_vector(plan, in, out, count - LANES, (count - LANES) % channels, pair);
}

/* Converts `count` elements of one channel. */
static ALWAYS_INLINE void plane_span(const struct stk_transform_plan *plan, uint32_t channel,
                                     const unsigned char *in, unsigned char *out, size_t count,
                                     const struct target *target)
{
    if (target->copies)
        copy_run(in, out, count);
    else
        convert_span(in, out, count, lanes_of(plan->factor[channel]), lanes_of(plan->bias[channel]),
                     target->pair);
}

/* put_fn */
static ALWAYS_INLINE void put(const struct stk_transform_plan *plan, const struct target *target,
                              const unsigned char *in, size_t place, size_t pixels,
                              struct fetching *fetching)
{
    const size_t bytes = target->pair.to_bytes;
    const uint32_t channels = target->channels;
    if (!target->planes) {
        if (target->copies)
            copy_run(in, target->out + place * channels, pixels * channels);
        else
            span(plan, in, target->out + place * channels * bytes, pixels * channels, channels,
                 target->pair, fetching);
        return;
    }
    _Alignas(64) unsigned char planes[CROP_TILE_BYTES];
    const size_t plane = CROP_TILE_BYTES / channels / 16 * 16; /* pixels, whole lanes */
    const size_t most = PLANE_PIXELS < plane ? PLANE_PIXELS : plane;
    for (size_t first = 0; first < pixels; first += most) {
        const size_t count = pixels - first < most ? pixels - first : most;
        split(planes, plane, in + first * channels, count, channels, 1);
        for (uint32_t channel = 0; channel < channels; channel++) {
            const size_t to = channel * target->height * target->width + place + first;
            for (size_t i = 0; i < count; i += LINE_BYTES)
                fetch(fetching);
            plane_span(plan, channel, planes + channel * plane, target->out + to * bytes, count,
                       target);
        }
    }
}

/* ---- tiles ---------------------------------------------------------------------- */

/* The part of the output made at a time: pixels x0..x1 of lines y0..y1, as bytes at `tile`, line
 * after line. */
struct piece {
    size_t y0, y1, x0, x1;
    unsigned char *tile;
};

/* Fills the pixels outside the image. Edges are written too wide, so this comes first. */
static ALWAYS_INLINE void fill_around(const struct stk_transform_plan *plan,
                                      const struct piece *piece, const struct piece *inner,
                                      uint32_t channels)
{
    const size_t bytes = (piece->x1 - piece->x0) * channels;
    fill_run(plan->fill, channels, piece->tile, (inner->y0 - piece->y0) * bytes);
    fill_run(plan->fill, channels, piece->tile + (inner->y1 - piece->y0) * bytes,
             (piece->y1 - inner->y1) * bytes);
    if (inner->x0 == piece->x0 && inner->x1 == piece->x1)
        return;
    unsigned char *line = piece->tile + (inner->y0 - piece->y0) * bytes;
    for (size_t y = inner->y0; y < inner->y1; y++, line += bytes) {
        fill_edge(plan, line, bytes, 0, (inner->x0 - piece->x0) * channels, channels);
        fill_edge(plan, line, bytes, (inner->x1 - piece->x0) * channels, bytes, channels);
    }
}

static ALWAYS_INLINE void cut_piece(const struct stk_transform_plan *plan,
                                    const struct stk_crop *crop, const struct piece *piece,
                                    uint32_t channels)
{
    const size_t y0 = clamped((size_t)crop->cut_top, piece->y0, piece->y1);
    const size_t y1 = clamped((size_t)crop->cut_bottom, piece->y0, piece->y1);
    const size_t x0 = clamped((size_t)crop->cut_left, piece->x0, piece->x1);
    const size_t x1 = clamped((size_t)crop->cut_right, piece->x0, piece->x1);
    for (size_t y = y0; y < y1; y++)
        fill_run(plan->fill, channels,
                 piece->tile +
                     ((y - piece->y0) * (piece->x1 - piece->x0) + x0 - piece->x0) * channels,
                 (x1 - x0) * channels);
}

static ALWAYS_INLINE void make_piece(const struct stk_transform_plan *plan,
                                     const struct stk_crop *crop, const struct seen *seen,
                                     const struct piece *piece, uint32_t channels,
                                     struct fetching *fetching)
{
    const struct piece inner = { clamped(seen->y0, piece->y0, piece->y1),
                                 clamped(seen->y1, piece->y0, piece->y1),
                                 clamped(seen->x0, piece->x0, piece->x1),
                                 clamped(seen->x1, piece->x0, piece->x1), NULL };
    fill_around(plan, piece, &inner, channels);
    const size_t bytes = (piece->x1 - piece->x0) * channels, stride = crop->stride_bytes;
    const size_t pixels = inner.x1 - inner.x0;
    if (pixels == 0 || inner.y0 == inner.y1)
        return; /* seen->first may be NULL */
    const size_t skipped = crop->flip ? seen->x1 - inner.x1 : inner.x0 - seen->x0;
    const unsigned char *in = seen->first + (inner.y0 - seen->y0) * stride + skipped * channels;
    unsigned char *out =
        piece->tile + (inner.y0 - piece->y0) * bytes + (inner.x0 - piece->x0) * channels;
    if (crop->flip)
        for (size_t y = inner.y0; y < inner.y1; y++, in += stride, out += bytes) {
            fetch(fetching);
            turn(in, out, pixels, channels);
        }
    else
        for (size_t y = inner.y0; y < inner.y1; y++, in += stride, out += bytes) {
            fetch(fetching);
            copy_run(in, out, pixels * channels);
        }
}

/* A tile's bytes do not depend on type and layout: one function per number of channels. */
#define DEFINE_TILE(count)                                                                         \
    static NOINLINE void make_tile_##count(const struct stk_transform_plan *plan,                  \
                                           const struct stk_crop *crop, const struct seen *seen,   \
                                           const struct piece *piece, struct fetching *fetching)   \
    {                                                                                              \
        make_piece(plan, crop, seen, piece, count, fetching);                                      \
        cut_piece(plan, crop, piece, count);                                                       \
    }
DEFINE_TILE(1)
DEFINE_TILE(2)
DEFINE_TILE(3)
DEFINE_TILE(4)

static ALWAYS_INLINE void make_tile(const struct stk_transform_plan *plan,
                                    const struct stk_crop *crop, const struct seen *seen,
                                    const struct piece *piece, uint32_t channels,
                                    struct fetching *fetching)
{
    if (channels == 1)
        make_tile_1(plan, crop, seen, piece, fetching);
    else if (channels == 2)
        make_tile_2(plan, crop, seen, piece, fetching);
    else if (channels == 3)
        make_tile_3(plan, crop, seen, piece, fetching);
    else
        make_tile_4(plan, crop, seen, piece, fetching);
}

/* Converts the whole image as one line. */
static ALWAYS_INLINE void put_whole(const struct stk_transform_plan *plan,
                                    const struct stk_crop *crop, const struct target *target,
                                    const struct seen *seen)
{
    struct fetching fetching = fetching_of(crop);
    target->put(plan, target->out, target->height * target->width, seen->first, 0,
                target->height * target->width, &fetching);
}

/* Converts lines that lie wholly in the image, without a tile. */
static ALWAYS_INLINE void put_whole_lines(const struct stk_transform_plan *plan,
                                          const struct stk_crop *crop, const struct target *target,
                                          const struct seen *seen)
{
    const size_t stride = crop->stride_bytes; /* for the compiler, out may alias the crop */
    const unsigned char *in = seen->first;
    struct fetching fetching = fetching_of(crop);
    for (size_t y = 0; y < target->height; y++, in += stride)
        target->put(plan, target->out, target->height * target->width, in, y * target->width,
                    target->width, &fetching);
}

static ALWAYS_INLINE void put_tiles(const struct stk_transform_plan *plan,
                                    const struct stk_crop *crop, const struct target *target,
                                    const struct seen *seen)
{
    _Alignas(64) unsigned char tile[CROP_TILE_BYTES];
    const uint32_t channels = target->channels;
    const size_t line_bytes = target->width * channels;
    const size_t lines = line_bytes < CROP_TILE_BYTES ? CROP_TILE_BYTES / line_bytes : 1;
    const size_t step = CROP_TILE_BYTES / channels; /* pixels of a line that exceeds the tile */
    struct fetching fetching = fetching_of(crop);
    for (size_t y = 0; y < target->height; y += lines) {
        for (size_t x = 0; x < target->width; x += step) {
            const struct piece piece = { y, clamped(y + lines, 0, target->height), x,
                                         clamped(x + step, 0, target->width), tile };
            make_tile(plan, crop, seen, &piece, channels, &fetching);
            target->put(plan, target->out, target->height * target->width, tile,
                        y * target->width + x, (piece.y1 - piece.y0) * (piece.x1 - piece.x0),
                        &fetching);
        }
    }
}

static ALWAYS_INLINE bool is_whole(const struct stk_crop *crop, const struct target *target,
                                   const struct seen *seen)
{
    return seen->y0 == 0 && seen->y1 == target->height && seen->x0 == 0 &&
           seen->x1 == target->width && !crop->flip && !is_cut(crop);
}

static ALWAYS_INLINE bool is_one_line(const struct stk_crop *crop, const struct target *target)
{
    return crop->stride_bytes == target->width * target->channels;
}

static ALWAYS_INLINE void make_row(const struct stk_transform_plan *plan,
                                   const struct stk_crop *crop, const struct target *target)
{
#ifdef STK_NARROW_LINES
    const struct narrow narrow = narrow_of(crop, target);
    if (!target->copies && is_narrow(crop, target, &narrow)) {
        put_narrow(plan, crop, target, &narrow);
        return;
    }
#endif
    const struct seen seen = seen_of(crop, target);
    const bool whole = is_whole(crop, target, &seen);
    if (whole && is_one_line(crop, target))
        put_whole(plan, crop, target, &seen);
    else if (whole && target->width * target->channels >= DIRECT_BYTES)
        put_whole_lines(plan, crop, target, &seen);
    else
        put_tiles(plan, crop, target, &seen);
}

/* ---- one function per type, layout and number of channels -------------------------- */

#ifdef STK_NARROW_LINES
#define STORE_EIGHT(to) .store = eight_to_##to,
#else
#define STORE_EIGHT(to)
#endif
#define TARGET(to, bytes, is_copy, count, in_planes, put_name, where, lines, pixels)               \
    {                                                                                              \
        .put = put_name, .pair = { lanes_from_u8, lanes_to_##to, 1, bytes, false },                \
        STORE_EIGHT(to).channels = count, .copies = is_copy, .planes = in_planes, .out = where,    \
        .height = lines, .width = pixels                                                           \
    }
#define DEFINE_CROP(name, to, bytes, is_copy, count, in_planes)                                    \
    static NOINLINE void name##_put(const struct stk_transform_plan *plan, unsigned char *where,   \
                                    size_t whole, const unsigned char *in, size_t place,           \
                                    size_t pixels, struct fetching *fetching)                      \
    {                                                                                              \
        const struct target target =                                                               \
            TARGET(to, bytes, is_copy, count, in_planes, NULL, where, 1, whole);                   \
        put(plan, &target, in, place, pixels, fetching);                                           \
    }                                                                                              \
    static void name(const struct stk_transform_plan *plan, const struct stk_crop *crop,           \
                     uint8_t *out)                                                                 \
    {                                                                                              \
        const struct target target = TARGET(to, bytes, is_copy, count, in_planes, name##_put, out, \
                                            plan->framing.out_height, plan->framing.out_width);    \
        make_row(plan, crop, &target);                                                             \
    }
/* With one channel the layouts are equal. */
#define DEFINE_CROPS(type, store, bytes, copies)                                                   \
    DEFINE_CROP(crop_##type##_1, store, bytes, copies, 1, false)                                   \
    DEFINE_CROP(crop_##type##_2, store, bytes, copies, 2, false)                                   \
    DEFINE_CROP(crop_##type##_3, store, bytes, copies, 3, false)                                   \
    DEFINE_CROP(crop_##type##_4, store, bytes, copies, 4, false)                                   \
    DEFINE_CROP(crop_##type##_2_planes, store, bytes, copies, 2, true)                             \
    DEFINE_CROP(crop_##type##_3_planes, store, bytes, copies, 3, true)                             \
    DEFINE_CROP(crop_##type##_4_planes, store, bytes, copies, 4, true)
#define CROPS_OF(type)                                                                             \
    {                                                                                              \
        { crop_##type##_1, crop_##type##_2, crop_##type##_3, crop_##type##_4 },                    \
        {                                                                                          \
            crop_##type##_1, crop_##type##_2_planes, crop_##type##_3_planes,                       \
                crop_##type##_4_planes                                                             \
        }                                                                                          \
    }

DEFINE_CROPS(f32, f32, 4, false)
DEFINE_CROPS(f16, f16, 2, false)
DEFINE_CROPS(bf16, bf16, 2, false)
DEFINE_CROPS(u8, f32, 1, true)

static stk_crop_fn *choose_crop(const struct stk_convert_plan *convert, uint32_t channels)
{
    static stk_crop_fn *const table[4][2][4] = { CROPS_OF(f32), CROPS_OF(f16), CROPS_OF(bf16),
                                                 CROPS_OF(u8) };
    assert(channels >= 1);
    assert(channels <= STOKER_TRANSFORM_CHANNELS_MAX);
    const size_t type = convert->copies ? 3 : to_index(convert->to);
    return table[type][convert->layout == STOKER_LAYOUT_NCHW][channels - 1];
}

#endif
