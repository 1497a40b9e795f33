/* crop_pairs.h - rows of floats of one channel whose lines have 28 pixels: a digit's.
 *
 *   line      │ P 0-7 │ P 8-15│ Q 4-11│ Q 12-15 : next line's
 *   next      P 0-3   │ P 4-11│ Q 0-7 │ Q 8-15│                 P, Q: windows of its first and last 16 pixels
 *
 * Three vectors and a half make a line, so two lines are made at once: seven vectors, none of which overlaps another, or
 * lies in two cache lines where the row begins with one. A line is read by two loads. What a window's
 * elements are made of, the plan knows (picks.h), so that a picture costs little but its vectors.
 */
#ifndef STK_KERNELS_TRANSFORM_CROP_PAIRS_H
#define STK_KERNELS_TRANSFORM_CROP_PAIRS_H

#include "kernels/transform/block_avx2.h"
#include "kernels/transform/crop_view.h"

enum { PAIR_PIXELS = 28, PAIR_ELEMENTS = 2 * PAIR_PIXELS };

/* One vector: which elements of a window, and what is added to them. */
struct portion {
    __m256i order;
    __m256 bias;
};

/* Whether a pair's windows lie beside the picture on their own side alone, and not farther than picks know. */
static ALWAYS_INLINE bool has_pairs(const struct stk_crop *crop, const struct target *target)
{
    const int32_t left = crop->x,
                  right = left + PAIR_PIXELS; /* the line's first pixel and its end */
    return target->channels == 1 && target->width == PAIR_PIXELS && target->height % 2 == 0 &&
           left >= -STK_BLOCK_PIXELS && left + STK_WINDOW_PIXELS <= crop->width &&
           right >= STK_WINDOW_PIXELS && right <= crop->width + STK_BLOCK_PIXELS;
}

static ALWAYS_INLINE struct portion portion_of(const struct stk_window_pick *pick)
{
    return (struct portion){ _mm256_loadu_si256((const __m256i_u *)pick->order),
                             _mm256_loadu_ps(pick->bias) };
}

/* The end of one window, and the begin of another, as one vector. */
static ALWAYS_INLINE struct portion portion_between(struct portion end, struct portion begin)
{
    return (struct portion){ _mm256_permute2x128_si256(end.order, begin.order, 0x21),
                             _mm256_permute2f128_ps(end.bias, begin.bias, 0x21) };
}

static ALWAYS_INLINE __m256i window_at(const unsigned char *in)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i_u *)in));
}

/* Vector `number` of a pair. */
static ALWAYS_INLINE void portion_put(struct portion portion, __m256i window, __m256 factor,
                                      const struct target *target, unsigned char *row,
                                      size_t number)
{
    const __m256 numbers = _mm256_cvtepi32_ps(_mm256_shuffle_epi8(window, portion.order));
    target->store(row + number * BLOCK_PIXELS * target->pair.to_bytes,
                  _mm256_fmadd_ps(numbers, factor, portion.bias));
}

static ALWAYS_INLINE void put_pairs(const struct stk_transform_plan *plan,
                                    const struct stk_crop *crop, const struct target *target)
{
    const int32_t room = crop->width - STK_WINDOW_PIXELS, flip = crop->flip;
    const int32_t left = crop->x, right = left + PAIR_PIXELS - STK_WINDOW_PIXELS;
    const int32_t low = left < 0 ? 0 : left, high = right > room ? room : right; /* as read */
    const struct stk_window_pick *const p =
        plan->window_picks[flip][flip][turned(flip, low - left, right - high)];
    const struct stk_window_pick *const q =
        plan->window_picks[flip][!flip][turned(flip, right - high, low - left)];
    const struct portion p0 = portion_of(p), p4 = portion_of(p + 1), p8 = portion_of(p + 2);
    const struct portion q0 = portion_of(q), q4 = portion_of(q + 1), q8 = portion_of(q + 2);
    const struct portion between = portion_between(q8, p0);
    const __m256 factor = _mm256_set1_ps(plan->factor[0]);

    /* out may alias the crop, for all C knows */
    const ptrdiff_t stride = (ptrdiff_t)crop->stride_bytes;
    const ptrdiff_t at_p = turned(flip, 0, high - low), at_q = turned(flip, high - low, 0);
    const uint32_t height = (uint32_t)crop->height, top = (uint32_t)crop->y;
    const uint32_t bottom = top + (uint32_t)target->height;
    const unsigned char *line = crop->pixels + low + crop->y * stride;
    const unsigned char *const fill = plan->fill;
    unsigned char *row = target->out;
    const struct fetching fetching = fetching_of(crop);
    const size_t share = share_of(fetching, target->height / 2);
    const unsigned char *later = share > 0 ? fetching.next : fill; /* no NULL + 0 */
    for (uint32_t y = top; y != bottom; y += 2, row += PAIR_ELEMENTS * target->pair.to_bytes) {
        const unsigned char *const one = y < height ? line : fill; /* y is huge where negative */
        const unsigned char *const next = y + 1 < height ? line + stride : fill;
        line += 2 * stride;
        __builtin_prefetch(later, 0, 3);
        for (size_t i = LINE_BYTES; i < share; i += LINE_BYTES)
            __builtin_prefetch(later + i, 0, 3);
        later += share;
        const __m256i one_q = window_at(one + at_q), one_p = window_at(one + at_p);
        const __m256i next_p = window_at(next + at_p), next_q = window_at(next + at_q);
        portion_put(p0, one_p, factor, target, row, 0);
        portion_put(p8, one_p, factor, target, row, 1);
        portion_put(q4, one_q, factor, target, row, 2);
        portion_put(between, _mm256_blend_epi32(one_q, next_p, 0xf0), factor, target, row, 3);
        portion_put(p4, next_p, factor, target, row, 4);
        portion_put(q0, next_q, factor, target, row, 5);
        portion_put(q8, next_q, factor, target, row, 6);
    }
    cut_pixels(plan, crop, target);
}

#endif
