/* crop_view.h - what all ways to make a row share: its target, the visible part of the image,
 * prefetching, fill. Part of the bodies that each variant compiles. */
#ifndef STK_KERNELS_TRANSFORM_CROP_VIEW_H
#define STK_KERNELS_TRANSFORM_CROP_VIEW_H

#include "kernels/convert/span_body.h"
#include "kernels/transform/transform.h"

#ifdef STK_NARROW_LINES
typedef void store_eight_fn(unsigned char *at, __m256 v);
#endif

struct fetching;

/* Converts `pixels` adjacent pixels to pixels `place` and later of the output, which has `whole`
 * pixels. It takes no target: passing its address would make its members variables. */
typedef void put_fn(const struct stk_transform_plan *plan, unsigned char *out, size_t whole,
                    const unsigned char *in, size_t place, size_t pixels,
                    struct fetching *fetching);

/* Where the row's pixels go. All members but out, height and width are compile-time constants. */
struct target {
    put_fn *put; /* not inlined: its body is long */
    struct pair pair;
#ifdef STK_NARROW_LINES
    store_eight_fn *store;
#endif
    uint32_t channels;
    bool copies; /* uint8 stays uint8 */
    bool planes; /* NCHW */
    unsigned char *out;
    size_t height, width;
};

/* ---- prefetching a later image, line by line while this one is converted ----------- */

struct fetching {
    const unsigned char *next;
    size_t left; /* bytes */
};

static ALWAYS_INLINE void fetch(struct fetching *fetching)
{
    if (fetching->left == 0)
        return;
    const size_t bytes = fetching->left < LINE_BYTES ? fetching->left : LINE_BYTES;
    __builtin_prefetch(fetching->next, 0, 3);
    fetching->next += bytes;
    fetching->left -= bytes;
}

static ALWAYS_INLINE struct fetching fetching_of(const struct stk_crop *crop)
{
    return (struct fetching){ crop->later, crop->later_bytes < PREFETCH_BYTES_MAX
                                               ? crop->later_bytes
                                               : PREFETCH_BYTES_MAX };
}

/* ---- the visible part -------------------------------------------------------------- */

/* The pixels of the output that come from the image: x0..x1 of lines y0..y1. */
struct seen {
    size_t y0, y1, x0, x1;
    const unsigned char *first; /* the image's first pixel among them */
};

/* Counts how many of `out` pixels from `at` on lie before and behind the image's `in`. */
static ALWAYS_INLINE void outside(int32_t at, int32_t in, int32_t out, int32_t *before,
                                  int32_t *behind)
{
    const int32_t beyond = at + out - in;
    *before = at < 0 ? -at : 0;
    *behind = beyond > 0 ? beyond : 0;
    if (*before + *behind < out)
        return;
    *before = out; /* none is visible */
    *behind = 0;
}

static ALWAYS_INLINE struct seen seen_of(const struct stk_crop *crop, const struct target *target)
{
    const int32_t height = (int32_t)target->height, width = (int32_t)target->width;
    int32_t above, below, left, right;
    outside(crop->y, crop->height, height, &above, &below);
    outside(crop->x, crop->width, width, &left, &right);
    if (above == height || left == width)
        return (struct seen){ target->height, target->height, target->width, target->width, NULL };
    return (struct seen){
        .y0 = (size_t)above,
        .y1 = (size_t)(height - below),
        .x0 = (size_t)(crop->flip ? right : left),
        .x1 = (size_t)(width - (crop->flip ? left : right)),
        .first = crop->pixels + (size_t)(crop->y + above) * crop->stride_bytes +
                 (size_t)(crop->x + left) * target->channels,
    };
}

static ALWAYS_INLINE bool is_cut(const struct stk_crop *crop)
{
    return crop->cut_bottom > crop->cut_top && crop->cut_right > crop->cut_left;
}

static ALWAYS_INLINE size_t clamped(size_t value, size_t low, size_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* ---- fill ------------------------------------------------------------------------ */

enum { RUN_BYTES = 32, HALF_RUN_BYTES = 16 };

/* At any address; memcpy() would use registers of half the width. */
typedef unsigned char run_bytes __attribute__((vector_size(RUN_BYTES), aligned(1), may_alias));

/* Writes `bytes` bytes of a pattern that repeats after `period` bytes; a run may begin at any of
 * them. */
static ALWAYS_INLINE void fill_run(const unsigned char *pattern, size_t period, unsigned char *out,
                                   size_t bytes)
{
    if (bytes < HALF_RUN_BYTES) {
        memcpy(out, pattern, bytes);
        return;
    }
    if (bytes < RUN_BYTES) {
        const size_t last = bytes - HALF_RUN_BYTES;
        memcpy(out, pattern, HALF_RUN_BYTES);
        memcpy(out + last, pattern + last % period, HALF_RUN_BYTES);
        return;
    }
    const size_t last = bytes - RUN_BYTES, step = RUN_BYTES % period;
    for (size_t at = 0, phase = 0; at < last; at += RUN_BYTES) {
        *(run_bytes *)(out + at) = *(const run_bytes *)(pattern + phase);
        phase = phase + step < period ? phase + step : phase + step - period;
    }
    *(run_bytes *)(out + last) = *(const run_bytes *)(pattern + last % period);
}

#endif
